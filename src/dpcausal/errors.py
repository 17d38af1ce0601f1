"""Every error that the library raises.

::

    DpCausalError
    ├── ParameterError            a public argument is out of its range (also a ValueError)
    │   ├── CallError             arguments that a function does not take, or needs (also a TypeError)
    │   └── LossError             a privacy amount is malformed or of a kind the method cannot pay in
    ├── SchemaError               the schema, or a column's declared type, does not fit (also a ValueError)
    ├── RowLimitError             more rows would be collected than the stated limit
    ├── BudgetExceededError       the ledger refuses: carries requested, spent and left
    ├── LedgerError               the ledger cannot be used as asked
    │   └── LedgerDamagedError    the ledger's file is truncated, altered, foreign or newer
    ├── FenceError                a value that must never reach the noise was stopped in front of it
    ├── HiddenAnswerError         a private object was asked to leave the process (pickle, copy)
    ├── UnprovenError             a method without a valid proof was called without consent
    ├── InfeasibleError           public numbers alone show that the answer would be worthless
    └── MissingDependencyError    an optional package is needed: names the extra (also an ImportError)

``NotCachedWarning`` is a warning: an answer was paid for and is not in the ledger.

Each error carries ``argument``, ``rule``, ``value`` and ``hint``, so that Python, a study file and the command each
write the arguments of its hint in their own way, and a test can match the rule instead of the text.

Messages carry public information only: names, rules, declared bounds, sizes that are public.  None is ever
built from a record, a count of bad values or a row number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, TypeAlias, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

Language: TypeAlias = Literal["python", "toml", "command"]

_language: ContextVar[Language] = ContextVar("language", default="python")


@contextmanager
def hints_in(language: Language) -> Iterator[None]:
    """Write the arguments of hints as a study file or the command has them: in errors, and in texts of results."""
    token = _language.set(language)
    try:
        yield
    finally:
        _language.reset(token)


@dataclass(frozen=True)
class Setting:
    """An argument with its value, or its name alone, for the hint of an error or in the text of a result.

    Without a name it is a column's declaration, whose ``options`` are keys of a schema file.

    Examples
    --------
    >>> for language in ("python", "toml", "command"):
    ...     print(Setting("method", "gcm", options={"blocks": 40}, kind="dpc.methods.Gcm").written(language))
    method=dpc.methods.Gcm(blocks=40)
    method = { name = "gcm", blocks = 40 }
    --method gcm --blocks 40
    >>> Setting("alpha", 1).written("command"), Setting("partial", True).written("command")
    ('--alpha 1', '--partial')
    >>> scale = Setting(kind="Bounded", options={"lower": 1, "upper": 5})
    >>> scale.written("python"), scale.written("command")
    ('Bounded(1, 5)', 'lower = 1, upper = 5')
    """

    name: str = ""
    value: Any = ...
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""

    def written(self, language: Language) -> str:
        """Return it as an argument of Python, a key of a study file or an option of the command."""
        return {"python": self._python, "toml": self._toml, "command": self._command}[language]()

    def _python(self) -> str:
        if self.name in CALLS:
            return f".{self.name}()"
        if self.kind:
            texts = {name: _python_text(value) for name, value in self.options.items()}
            options = ", ".join(text if name in BY_PLACE else f"{name}={text}" for name, text in texts.items())
            return f"{self.name}{'=' if self.name else ''}{self.kind}({options})"
        return f"{self.name}={'' if self.value is ... else _python_text(self.value)}"

    def _toml(self) -> str:
        if self.name in RUN_OPTIONS:
            return f"dpcausal run {self._command()}"
        if self.name in PREDICATES:
            return PREDICATES[self.name]
        if not self.name:
            return ", ".join(f"{name} = {_toml_text(value)}" for name, value in self.options.items())
        if self.value is ...:
            return self.name
        if self.kind:
            options = {"name": self.value, **self.options}
            return (
                f"{self.name} = {{ {', '.join(f'{name} = {_toml_text(value)}' for name, value in options.items())} }}"
            )
        amounts = getattr(self.value, "amounts", {self.name: self.value})
        return ", ".join(f"{name} = {_toml_text(value)}" for name, value in amounts.items())

    def _command(self) -> str:
        if not self.name or self.name in (*STUDY_KEYS, *PREDICATES):
            return self._toml()
        amounts = getattr(self.value, "amounts", {self.name: self.value})
        options = {**amounts, **self.options}.items()
        return " ".join(_flag(name) if value is ... or value is True else f"{_flag(name)} {_as_text(value)}"
                        for name, value in options)  # fmt: skip


OPTIONS = {"expected_head": "fingerprint"}
"""Options of the command that have another name than the argument."""

RUN_OPTIONS = ("refresh", "partial", "new_ledger")
"""Arguments of a run, which a study file has no key for."""

CALLS = ("details",)
"""Options of the command that Python has a method of the result for."""

PREDICATES = {"at_least": ">=", "at_most": "<=", "among": "in [...]"}
"""Arguments of Python that a predicate of ``where`` writes by a sign."""

BY_PLACE = ("lower", "upper", "levels")
"""Keys of a declaration that Python takes by place."""

STUDY_KEYS = ("robust_for",)
"""Arguments that a study file has a key for, and the command no option."""

Hint: TypeAlias = str | Setting | tuple[str | Setting, ...]
"""What to do: text, with arguments that each language writes in its own way."""


def _python_text(value: Any) -> str:
    return "..." if value is ... else repr(value)


def _toml_text(value: Any) -> str:
    if value is ...:
        return "..."
    if isinstance(value, (str, bool, list, tuple)):
        return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
    return _as_text(value)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else f"{float(value):.12g}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


class Advice(str):
    """A text of a result with settings in it: as a string it has them as Python does, printed as ``hints_in`` says.

    Examples
    --------
    >>> text = Advice("use more subsets (", Setting("blocks"), ")")
    >>> print(text)
    use more subsets (blocks=)
    >>> with hints_in("command"):
    ...     print(text)
    use more subsets (--blocks)
    """

    parts: tuple[str | Setting, ...]

    def __new__(cls, *parts: str | Setting) -> Advice:
        flat = [one for part in parts for one in (part.parts if isinstance(part, Advice) else (part,))]
        text = super().__new__(cls, "".join(one if isinstance(one, str) else one.written("python") for one in flat))
        text.parts = tuple(flat)
        return text

    def __str__(self) -> str:
        language = _language.get()
        return "".join(one if isinstance(one, str) else one.written(language) for one in self.parts)

    def __format__(self, form: str) -> str:
        return format(str(self), form)


def nearest(name: object, known: Iterable[str]) -> str:
    """Return the question after the known public name, whatever its case, that is nearest; empty if none is near.

    Examples
    --------
    >>> nearest("Gmc", ["gcm", "crt"]), nearest("z", ["gcm"])
    ("; did you mean 'gcm'?", '')
    >>> nearest("age", ["sex", "Age (years)"])
    "; did you mean 'Age (years)'?"
    """
    from difflib import get_close_matches

    folded = {one.casefold(): one for one in reversed(list(known))}
    text = name.casefold() if isinstance(name, str) and len(name) < 200 else ""
    close = get_close_matches(text, folded, n=1) or [one for one in folded if len(text) > 2 and text in one]
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


def _public(value: Any) -> Any:
    """Return a loss, a truth value or ``None``; of anything else the type's name, since it may be a record's value."""
    known = value is None or isinstance(value, bool) or hasattr(type(value), "amounts")
    return value if known else type(value).__name__


class DpCausalError(Exception):
    """Base of all errors of this library.

    Parameters
    ----------
    text : str
        What is wrong.
    argument : str
        The argument that is wrong; empty where it is none.
    rule : str
        A short name of the rule that was broken, which stays the same whatever the text says.
    value : object
        The loss, truth value or ``None`` that broke it.  Of anything else the name of its type alone, since it may be
        a value of a record that was given for an argument.
    hint : str, Setting or tuple of both
        What to do.
    """

    def __init__(
        self, text: str = "", *, argument: str = "", rule: str = "", value: Any = None, hint: Hint = ""
    ) -> None:
        self.text, self.argument, self.rule, self.value, self.hint = text, argument, rule, _public(value), hint
        super().__init__(text)

    def message(self, language: Language | None = None) -> str:
        """Return the text and the hint, arguments written as Python, a study file or the command has them.

        Without a language it is that of ``hints_in``, by default Python.
        """
        language = language or _language.get()
        hint = (self.hint,) if isinstance(self.hint, (str, Setting)) else self.hint
        parts = [one.written(language) if isinstance(one, Setting) else one for one in hint]
        option = language == "command" and self.argument and self.text.startswith(f"{self.argument} must ")
        named = _flag(OPTIONS.get(self.argument, self.argument))
        text = named + self.text.removeprefix(self.argument) if option else self.text
        return f"{text}{': ' if text and any(parts) else ''}{''.join(parts)}"

    def __str__(self) -> str:
        return self.message()


class ParameterError(DpCausalError, ValueError):
    """A public argument is outside its stated range."""


class CallError(ParameterError, TypeError):
    """A function was called with arguments that it does not take, or without those that it needs."""


def with_signature_errors(function: Function) -> Function:
    """Give a public function an error that names the arguments that a call misses or has too many."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # from inside
        raise CallError(_signature_error(function, arguments, named), rule="signature")

    return cast(Function, call)


def _signature_error(function: Callable[..., Any], arguments: tuple[Any, ...], named: Iterable[str]) -> str:
    from inspect import Parameter, signature  # slow to load

    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[-1]
    taken = {one: part for one, part in signature(function).parameters.items() if part.kind is not part.VAR_KEYWORD}
    places = [one for one, part in taken.items() if part.kind is Parameter.POSITIONAL_OR_KEYWORD]
    taken = {one: part for one, part in taken.items() if one not in ("self", "cls")}
    needed = [one for one, part in taken.items() if part.default is Parameter.empty]
    written = ", ".join(one if one in places else f"{one}=..." for one in needed)
    unknown = next((one for one in named if one not in taken), None)
    lacking = [one for one in needed if one not in {*places[: len(arguments)], *named}]
    twice = next((one for one in named if one in places[: len(arguments)]), None)
    if unknown in ("epsilon", "delta", "rho") and "loss" in taken:
        problem = f"{name} has no argument {unknown!r}; the cost is given as loss=, for example PureDP(1)"
    elif unknown is not None:
        problem = f"{name} has no argument {unknown!r}{nearest(unknown, taken) or '; it takes ' + ', '.join(taken)}"
    elif len(arguments) > len(places):
        problem = f"{name} takes other arguments by name, {', '.join(one for one in taken if one not in places)}"
    else:
        problem = f"{name} has {twice!r} twice" if twice else f"{name} needs {', '.join(lacking)}"
    return f"{problem}: {name}({written})"


class LossError(ParameterError):
    """A privacy amount is malformed, or of a kind that the method cannot pay in."""


class SchemaError(DpCausalError, ValueError):
    """The schema is malformed, or a column's declared type does not fit it."""


class RowLimitError(DpCausalError):
    """The table has more rows than the stated limit for collecting them."""


class BudgetExceededError(DpCausalError):
    """The ledger refuses a spend; nothing was spent and no data was read.

    Attributes
    ----------
    requested, spent, left : str
        The amounts as text, for example ``"ε = 0.5"``.
    """

    def __init__(self, requested: str, spent: str, left: str, reason: str = "", hint: Hint = "") -> None:
        self.requested, self.spent, self.left, self.reason = requested, spent, left, reason
        why = f" ({reason})" if reason else ""
        text = f"not enough budget, nothing was spent: requested {requested}, spent {spent}, left {left}{why}"
        super().__init__(text, argument="loss", rule="budget", hint=hint)
        self.args = requested, spent, left, reason, hint


class LedgerError(DpCausalError):
    """The ledger cannot be used as asked."""


class LedgerDamagedError(LedgerError):
    """The ledger's file is truncated, altered, foreign, newer or unreadable."""


class FenceError(DpCausalError):
    """A NaN, an infinity, a zero scale or a wrong type was stopped in front of the noise."""


class HiddenAnswerError(DpCausalError, TypeError):
    """A table, ledger or query was asked to leave the process."""


class UnprovenError(DpCausalError):
    """A method without a valid proof runs only with ``accept_unproven=True``."""


class InfeasibleError(DpCausalError):
    """Public numbers alone show that the answer would be worthless."""


class NotCachedWarning(UserWarning):
    """An answer was paid for and is not in the ledger, as on a full disk: the caller has its only copy.

    Attributes
    ----------
    spend : int
        The number of its spend.
    rule : str
        Why it could not be written.
    answer : Any
        The answer, for where warnings are raised as errors.
    """

    def __init__(self, spend: int, rule: str, answer: Any = None) -> None:
        self.spend, self.rule, self.answer = spend, rule, answer
        super().__init__(
            f"the answer of spend {spend} is not in the ledger and cannot be read again: save it now ({rule})"
        )

    def __reduce__(self) -> tuple[type[NotCachedWarning], tuple[int, str, Any]]:
        return type(self), (self.spend, self.rule, self.answer)


class MissingDependencyError(DpCausalError, ImportError):
    """A package is not installed, or cannot be imported."""

    def __init__(self, package: str, extra: str = "") -> None:
        self.package, self.extra = package, extra
        text = f"{package} is needed for this: pip install 'dpcausal{f'[{extra}]' if extra else ''}'"
        super().__init__(text, rule="missing-package")
        self.args = package, extra
