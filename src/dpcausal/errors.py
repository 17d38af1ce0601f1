"""Every error that the library raises.

::

    DpCausalError
    ├── ParameterError            a public argument is out of its range (also a ValueError)
    │   └── LossError             a privacy amount is malformed or of a kind the method cannot pay in
    ├── SchemaError               the schema, or a column's declared type, does not fit (also a ValueError)
    ├── RowLimitError             more rows would be collected than the stated limit
    ├── BudgetExceededError       the ledger refuses: carries asked, spent and left
    ├── LedgerError               the ledger cannot be used as asked
    │   └── LedgerDamagedError    the ledger's file is truncated, altered, foreign or newer
    ├── FenceError                a value that must never reach the noise was stopped in front of it
    ├── HiddenAnswerError         a private object was asked to leave the process (pickle, copy)
    ├── UnprovenError             a method without a valid proof was called without consent
    ├── InfeasibleError           public numbers alone show that the answer would be worthless
    └── MissingDependencyError    an optional package is needed: names the extra (also an ImportError)

Messages carry public information only: names, rules, declared bounds, sizes that are public.  None is ever
built from a record, a count of bad values or a row number.
"""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: object, known: Iterable[str]) -> str:
    """Return the question after the known public name, whatever its case, that is nearest; empty if none is near.

    Examples
    --------
    >>> nearest("Gmc", ["gcm", "crt"]), nearest("z", ["gcm"])
    ("; did you mean 'gcm'?", '')
    """
    from difflib import get_close_matches

    folded = {one.casefold(): one for one in reversed(list(known))}
    found = get_close_matches(name.casefold(), folded, n=1) if isinstance(name, str) and len(name) < 200 else []
    return f"; did you mean {folded[found[0]]!r}?" if found else ""


class DpCausalError(Exception):
    """Base of all errors of this library."""


class ParameterError(DpCausalError, ValueError):
    """A public argument is outside its stated range."""


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
    asked, spent, left : str
        The amounts in words, for example ``"PureDP(0.5)"``.
    """

    def __init__(self, asked: str, spent: str, left: str, reason: str = "") -> None:
        self.asked, self.spent, self.left, self.reason = asked, spent, left, reason
        why = f" ({reason})" if reason else ""
        super().__init__(f"budget refused, nothing was spent: asked {asked}, spent {spent}, left {left}{why}")

    def __reduce__(self) -> tuple[type[BudgetExceededError], tuple[str, str, str, str]]:
        return type(self), (self.asked, self.spent, self.left, self.reason)


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


class MissingDependencyError(DpCausalError, ImportError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(f"{package} is needed for this: pip install 'dpcausal[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingDependencyError], tuple[str, str]]:
        return type(self), (self.package, self.extra)
