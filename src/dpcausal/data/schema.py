"""What is declared in public about each column: bounds or levels, never learnt from the data."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeAlias

from dpcausal.errors import SchemaError

if TYPE_CHECKING:
    from dpcausal.data.check import SchemaCheck


def _short(number: float) -> str:
    return repr(int(number)) if number == int(number) and abs(number) < 1e16 else repr(number)


@dataclass(frozen=True, init=False, repr=False)
class Bounded:
    """A number between two public bounds.

    A record's value is x ↦ min(max(x, lower), upper); ±inf counts as the nearer bound.  A null or a NaN is
    missing: see ``missing`` of ``Table``.

    Parameters
    ----------
    lower, upper : number
        Finite, lower < upper, upper − lower finite and not subnormal in float64; in the column's own unit.
        There is no default: a bound taken from the data would be a release.
    cuts : list of numbers, optional
        Points strictly between the bounds, increasing, at which methods for discrete data cut the range: bin k
        holds the values with exactly k cuts at or below them.

    Examples
    --------
    >>> age = Bounded(0, 110)
    >>> age, age.midpoint
    (Bounded(0, 110), 55.0)
    >>> Bounded(0, 110, cuts=[18, 65]).cuts
    (18.0, 65.0)
    """

    lower: float
    upper: float
    cuts: tuple[float, ...] | None

    def __init__(self, lower: float, upper: float, cuts: Iterable[float] | None = None) -> None:
        from dpcausal.data.declaration import BoundedShape, checked

        shape = checked(BoundedShape, {"lower": lower, "upper": upper, "cuts": cuts})
        object.__setattr__(self, "lower", shape.lower)
        object.__setattr__(self, "upper", shape.upper)
        object.__setattr__(self, "cuts", None if shape.cuts is None else tuple(shape.cuts))

    @property
    def width(self) -> float:
        """upper − lower, in float64."""
        return self.upper - self.lower

    @property
    def midpoint(self) -> float:
        """What a missing value counts as where it is imputed."""
        return self.lower + self.width / 2  # lower + upper could overflow

    def to_dict(self) -> dict[str, object]:
        """Return the declaration as the TOML table that would make it."""
        fields: dict[str, object] = {"lower": self.lower, "upper": self.upper}
        return fields if self.cuts is None else {**fields, "cuts": list(self.cuts)}

    def __repr__(self) -> str:
        cuts = "" if self.cuts is None else f", cuts=[{', '.join(map(_short, self.cuts))}]"
        return f"Bounded({_short(self.lower)}, {_short(self.upper)}{cuts})"


@dataclass(frozen=True, init=False, repr=False)
class Levels:
    """One of a public list of levels.

    A record's value becomes the code of its level: its place in ``labels``.  A null or a value outside the list
    counts as ``other`` if one is declared, otherwise it is missing: see ``missing`` of ``Table``.

    Parameters
    ----------
    values : list of text, integers or booleans
        All of one type, all different, at least one; order matters, since codes and the substitute follow it.
    other : level, optional
        The level that nulls and unseen values count as.  A name that is not among ``values`` is declared as one
        more level, after them; for integer or boolean levels it may be a text that no record can hold.

    Notes
    -----
    Matching is by exact value and type: text by its code points (no trimming, no change of case), an integer by
    its number (a float column holds the level 1 as 1.0, as pandas stores integers with nulls), a boolean only as
    a boolean.  The text "1" is not the integer 1.  A CSV file holds only text; there an integer level matches
    every plain way of writing it ("1", "+1", "1.0") and a boolean matches true or false in any case.

    Examples
    --------
    >>> smoker = Levels(["no", "yes"], other="unknown")
    >>> smoker.labels, smoker.substitute
    (('no', 'yes', 'unknown'), 2)
    >>> Levels([0, 1]).substitute
    0
    """

    values: tuple[str | int | bool, ...]
    other: str | int | bool | None
    kind: str  # keeps Levels([0, 1]) apart from Levels([False, True]), which Python calls equal

    def __init__(
        self, values: Iterable[str | int | bool], other: str | int | bool | None = None
    ) -> None:
        from dpcausal.data.declaration import LevelsShape, checked

        shape = checked(LevelsShape, {"levels": values, "other": other})
        object.__setattr__(self, "values", tuple(shape.levels))
        object.__setattr__(self, "other", shape.other)
        names = {str: "text", bool: "boolean", int: "integer"}
        object.__setattr__(self, "kind", names[type(shape.levels[0])])

    @property
    def labels(self) -> tuple[str | int | bool, ...]:
        """Every level a code can stand for, in the order of the codes."""
        extra = self.other is not None and self.other not in self.values
        return (*self.values, self.other) if extra and self.other is not None else self.values

    @property
    def substitute(self) -> int:
        """The code of ``other``, or of the first level: what a missing value counts as where it is imputed."""
        return 0 if self.other is None else self.labels.index(self.other)

    def __len__(self) -> int:
        return len(self.labels)

    def to_dict(self) -> dict[str, object]:
        """Return the declaration as the TOML table that would make it."""
        fields: dict[str, object] = {"levels": list(self.values)}
        return fields if self.other is None else {**fields, "other": self.other}

    def __repr__(self) -> str:
        return f"Levels({list(self.values)!r}{'' if self.other is None else f', other={self.other!r}'})"


Column: TypeAlias = Bounded | Levels


def _instead(given: object) -> str:
    """Return what was given in place of a declaration, and what a pair of numbers may have been meant as."""
    told = f"got {type(given).__name__}"
    if not isinstance(given, (tuple, list)) or [type(end) in (int, float) for end in given] != [True, True]:
        return told
    lower, upper = given
    return f"{told}; Bounded({lower!r}, {upper!r})?" if lower < upper else told


def _column(name: object, declared: object) -> Column:
    """Return one column's declaration; every error names the column."""
    if not isinstance(name, str) or not name:
        raise SchemaError("a column's name must be a text that is not empty")
    if isinstance(declared, (Bounded, Levels)):
        return declared
    if not isinstance(declared, Mapping):
        raise SchemaError(f"column {name!r}: must be Bounded(lower, upper) or Levels([...]), {_instead(declared)}")
    from dpcausal.data.declaration import BoundedShape, LevelsShape, checked

    rule = ""
    try:
        if "levels" in declared:
            levels = checked(LevelsShape, declared)
            return Levels(levels.levels, levels.other)
        if "lower" in declared or "upper" in declared:
            bounded = checked(BoundedShape, declared)
            return Bounded(bounded.lower, bounded.upper, bounded.cuts)
        rule = "needs lower and upper, or levels"
    except SchemaError as error:
        rule = str(error)
    raise SchemaError(f"column {name!r}: {rule}")


def _meant(name: str, names: tuple[str, ...]) -> str:
    """Return the question after the declared name, whatever its case, that is nearest to an unknown one."""
    from difflib import get_close_matches

    declared = {known.casefold(): known for known in reversed(names)}
    nearest = get_close_matches(name.casefold(), declared, n=1)
    return f"; did you mean {declared[nearest[0]]!r}?" if nearest else ""


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

    __slots__ = ("_columns",)
    _columns: dict[str, Column]

    def __init__(self, columns: Mapping[str, Column | Mapping[str, object]]) -> None:
        if not isinstance(columns, Mapping):
            raise SchemaError("a schema is a mapping from column names to Bounded or Levels")
        if not columns:
            raise SchemaError("a schema needs at least one column")
        declared = {name: _column(name, column) for name, column in columns.items()}
        object.__setattr__(self, "_columns", declared)

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Schema:
        """Read a schema from a TOML file with one table per column.

        ``[age]`` holds ``lower``, ``upper`` and perhaps ``cuts``; ``[smoker]`` holds ``levels`` and perhaps
        ``other``.  A column whose name has a dot or a space is quoted: ``["blood pressure"]``.
        """
        # A bare number would be taken for a file descriptor, and that file closed after reading.
        if not isinstance(path, (str, PathLike)) or not isinstance(fspath(path), str):
            raise SchemaError("the path of a schema file must be text or a path")
        rule = ""
        try:
            with open(path, "rb") as file:
                columns = tomllib.load(file)
        except FileNotFoundError:
            raise SchemaError(f"there is no file {fspath(path)!r}") from None
        except tomllib.TOMLDecodeError as error:
            rule = f"is not TOML: {error}"
        except (OSError, ValueError):  # a ValueError: no UTF-8, or a path that no file can have
            rule = "cannot be read as a text file in UTF-8"
        if rule:
            raise SchemaError(f"schema file {fspath(path)!r} {rule}")
        return cls(columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the declared order."""
        return tuple(self._columns)

    def column(self, name: str) -> Column:
        """Return a column's declaration; a SchemaError if there is none."""
        if not isinstance(name, str):  # perhaps a column itself: its words are its values
            raise SchemaError(f"a {type(name).__name__} is not in the schema: a column is named by a text")
        if name not in self._columns:
            told = f"column {name!r} is not in the schema, which has {', '.join(self.names)}"
            raise SchemaError(told + _meant(name, self.names))
        return self._columns[name]

    def check(self, frame: Any) -> SchemaCheck:
        """Return the share of each column's values that the schema clips or substitutes.  *NOT PRIVATE.*

        For the curator alone, to find a wrong unit or a level spelled otherwise before anything is spent.  Never share
        it: the shares are exact.  Bounds or levels that are chosen by it are chosen from the data.

        Parameters
        ----------
        frame : frame, mapping or path
            As for ``Table``.

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
        from dpcausal.data.check import check

        return check(frame, self)

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

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a schema is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a schema is frozen")

    def __reduce__(self) -> tuple[type[Schema], tuple[dict[str, Column]]]:
        return type(self), (dict(self._columns),)

    def __repr__(self) -> str:
        return f"Schema({self._columns!r})"
