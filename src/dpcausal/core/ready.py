"""What a call needs is at hand before it is paid for: the packages that it imports, and the rows that it reads.

Between the spend and the answer nothing is imported and no source is opened: a package that is broken, a file that is
gone or a busy connection refuses a call that costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

from dpcausal.core.method import Method, PlannedCall
from dpcausal.data.panels.panel import Panel
from dpcausal.data.sources.held import held_panel, held_table
from dpcausal.data.table import Table
from dpcausal.errors import MissingDependencyError
from dpcausal.privacy.noise import draw_once, simulated
from dpcausal.privacy.sandbox import isolated

MODULES = (
    "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats", "sklearn.base", "sklearn.ensemble",
    "threadpoolctl",
)  # fmt: skip
"""What functions below here import when they are called; the sampler's package brings most of them anyway."""


class Ready:
    """The plans of one call, and the same on rows in memory once it was called: just before the spend."""

    def __init__(self, plans: Sequence[PlannedCall[Any]]) -> None:
        self.plans = list(plans)

    def __call__(self) -> None:
        """Load packages and rows; an error of ours if that fails, and nothing is spent."""
        if not simulated():  # then nothing is paid for
            _load()
        for method in {type(one): one for plan in self.plans for one in _methods(plan.method)}.values():
            _tried(method.load, method.name)
        self.plans = isolated(lambda: held(self.plans))


@lru_cache(maxsize=1)
def _load() -> None:
    for name in MODULES:
        _tried(partial(import_module, name), name)
    _tried(draw_once, "opendp")


def _tried(action: Callable[[], object], name: str) -> None:
    try:
        action()
        return
    except Exception:  # a broken package may raise anything
        pass
    raise MissingDependencyError(name)


def held(plans: Sequence[PlannedCall[Any]]) -> list[PlannedCall[Any]]:
    """Return plans of one table or panel on rows that are in memory, where they fit."""
    subject = plans[0].subject
    if isinstance(subject, Panel):
        panel = held_panel(subject)
        return [plan.about(panel) for plan in plans]
    if not isinstance(subject, Table):
        return list(plans)
    named = {*_texts([(plan.question, plan.method) for plan in plans])}
    in_memory = any(plan.exactly or plan.method.needs_all_rows(plan.question) for plan in plans)
    table = held_table(subject, [name for name in subject.schema if name in named], in_memory)
    return [plan.about(table) for plan in plans]


def _methods(method: Method[Any]) -> Iterator[Method[Any]]:
    yield method
    for field in fields(method):
        option = getattr(method, field.name)
        if isinstance(option, Method):
            yield from _methods(option)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Table, Panel)):
        return
    elif isinstance(value, Mapping):
        yield from _texts([*value.keys(), *value.values()])
    elif isinstance(value, (Sequence, Set)):
        for part in value:
            yield from _texts(part)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _texts([getattr(value, field.name) for field in fields(value)])
        yield from _texts(list(getattr(value, "names", ())))
