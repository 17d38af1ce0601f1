"""What is declared in public about the columns of a table, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from dpcausal.data.coding import check_name
from dpcausal.data.columns import Bounded, Column, Levels
from dpcausal.data.panels.dates import PERIODS, periods_between
from dpcausal.data.toml_text import text_of, toml_in
from dpcausal.errors import SchemaError, Setting, nearest

if TYPE_CHECKING:
    from dpcausal.data.curator.profile import SchemaCheck

__all__ = ["Bounded", "Column", "Levels", "Schema"]


def _suggestion(given: object) -> tuple[str | Setting, ...]:
    if not isinstance(given, (tuple, list)) or [type(end) in (int, float) for end in given] != [True, True]:
        bounds = Setting(kind="Bounded", options={"lower": ..., "upper": ...})
        return "declare ", bounds, " or ", Setting(kind="Levels", options={"levels": ...})
    lower, upper = given
    bounds = Setting(kind="Bounded", options={"lower": lower, "upper": upper})
    return ("did you mean ", bounds, "?") if lower < upper else ()


def _declared_column(name: object, declared: object) -> Column:
    check_name(name)
    if isinstance(declared, (Bounded, Levels)):
        return declared
    if not isinstance(declared, Mapping):
        text = f"column {name!r}: needs bounds or levels, got {type(declared).__name__}"
        raise SchemaError(text, argument="schema", rule="column", hint=_suggestion(declared))
    rule = ""
    try:
        if "levels" in declared:
            return Levels(*_fields(declared, ("levels",), ("other", "missing", "period", "spellings")))
        if "period" in declared:
            lower, upper, period, other, missing = _fields(declared, ("lower", "upper", "period"), ("other", "missing"))
            bounds = Bounded(lower, upper)
            if not bounds.dates or period not in PERIODS:
                raise SchemaError(f"period must be one of {', '.join(PERIODS)}, and lower and upper must be dates")
            return Levels(periods_between(bounds.lower, bounds.upper, period), other, missing, period)
        if "lower" in declared or "upper" in declared:
            return Bounded(*_fields(declared, ("lower", "upper"), ("cuts", "missing")))
        rule = "needs lower and upper, or levels"
    except SchemaError as error:
        rule = str(error)
    raise SchemaError(f"column {name!r}: {rule}")


def _fields(declared: Mapping[str, Any], needed: tuple[str, ...], optional: tuple[str, ...]) -> list[Any]:
    known = (*needed, *optional)
    absent = [f"{name} is missing" for name in needed if name not in declared]
    strange = [f"{name} is not a key of this kind of column" for name in declared if name not in known]
    if absent or strange:
        raise SchemaError("; ".join([*absent, *strange]))
    return [declared.get(name) for name in known]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Schema(Mapping[str, Column]):
    """The declared columns of a table, in order: a frozen mapping from name to ``Bounded`` or ``Levels``.

    Parameters
    ----------
    columns : mapping from column name to Bounded, Levels, or the TOML table of one
        At least one column.  The whole schema is public.

    Examples
    --------
    >>> schema = Schema({"age": Bounded(0, 110), "smoker": Levels(["no", "yes"])})
    >>> schema.names, schema["age"].upper
    (('age', 'smoker'), 110.0)
    >>> Schema(schema.to_dict()) == schema
    True
    """

    _columns: dict[str, Column]

    def __init__(self, columns: Mapping[str, Column | Mapping[str, object]]) -> None:
        if not isinstance(columns, Mapping):
            raise SchemaError("a schema is a mapping from column names to Bounded or Levels")
        if not columns:
            raise SchemaError("a schema needs at least one column")
        declared = {name: _declared_column(name, column) for name, column in columns.items()}
        object.__setattr__(self, "_columns", declared)

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Schema:
        """Read a schema from a TOML file with one table per column.

        ``[age]`` holds ``lower``, ``upper`` and perhaps ``cuts``; ``[smoker]`` holds ``levels`` and perhaps
        ``other``; both may hold ``missing``, the codes of a missing answer.  Dates have dates as bounds; with
        ``period = "month"`` (``"quarter"``, ``"year"``) the months between the bounds are the levels.  A column whose
        name has a dot or a space is quoted: ``["blood pressure"]``.
        """
        text = text_of(path, error=SchemaError)
        return cls(toml_in(text, f"schema file {fspath(path)!r}", SchemaError))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the declared order."""
        return tuple(self._columns)

    def column(self, name: str) -> Column:
        """Return a column's declaration; a SchemaError if there is none."""
        if not isinstance(name, str):  # perhaps a column itself: its words are its values
            raise SchemaError(f"a {type(name).__name__} is not in the schema: a column is named by a text")
        if name not in self._columns:
            message = f"column {name!r} is not in the schema, which has {', '.join(self.names)}"
            raise SchemaError(message + nearest(name, self.names))
        return self._columns[name]

    def check(
        self, frame: Any, *, weight: tuple[str, float] | None = None, person: str | None = None
    ) -> SchemaCheck:
        """Return the share of each column's values that the schema clips or substitutes.  *NOT PRIVATE.*

        For the curator alone, to find a wrong unit or a level spelled otherwise before anything is spent.  Never share
        it: the shares are exact.  Bounds or levels that are chosen by it are chosen from the data.

        Parameters
        ----------
        frame : frame, mapping or path
            As for ``Table``.
        weight : (str, float), optional
            As for ``Table``: how many weights lie above their largest is reported, too.
        person : str, optional
            As for ``Table``: ids of one person that are spelled in several ways are reported, too.

        Notes
        -----
        *Guarantee*: none.  It costs nothing and touches no ledger; the result is stamped and refuses to be pickled.

        Examples
        --------
        >>> import numpy as np
        >>> found = Schema({"age": Bounded(0, 110)}).check({"age": np.array([31.0, np.nan, 200.0, 4.0])})
        >>> found.columns[0].above, found.columns[0].substituted
        (0.25, 0.25)
        """
        from dpcausal.data.curator.profile import check

        return check(frame, self, weight, person=person)

    def to_dict(self) -> dict[str, dict[str, object]]:
        """Return the schema as plain lists, numbers and text, as its TOML file has it."""
        return {name: column.to_dict() for name, column in self._columns.items()}

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __hash__(self) -> int:
        return hash(frozenset(self._columns.items()))

    def __repr__(self) -> str:
        return f"Schema({self._columns!r})"
