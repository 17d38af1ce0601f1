"""Kinds of commands: an option that holds one value is given once, since the last of two would ask something else.

One that asks works out its options when it is called, so that ``--help`` of the program does not wait for the methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

Function = TypeVar("Function", bound=Callable[..., Any])


class SingleValueCommand(TyperCommand):
    """A command that refuses an option given twice, unless the option collects its values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # The parser returns every parameter as often as it was given; what it makes of them is left to the base class.
        given: Counter[Any] = Counter(self.make_parser(ctx).parse_args(args=list(args))[2])
        rest: list[str] = super().parse_args(ctx, args)
        for parameter, times in given.items():
            if parameter.param_type_name == "option" and times > 1 and not parameter.multiple:
                raise typer.BadParameter(f"may be given only once, not {times} times", ctx=ctx, param=parameter)
        return rest


class LazyCommand(SingleValueCommand):
    """A command that another stands for, made when it is called."""

    made: Callable[[], Any]

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        return type(self).made().make_context(*arguments, **more)

    def invoke(self, ctx: Any) -> Any:
        return ctx.command.invoke(ctx)


class Program(typer.Typer):
    """A program, or a part of one, all of whose commands are of this kind."""

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **settings: Any
    ) -> Callable[[Function], Function]:
        return super().command(name, cls=cls or SingleValueCommand, **settings)
