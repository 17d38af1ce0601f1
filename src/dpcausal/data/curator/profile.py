"""How much of a frame a schema changes: for the curator alone, before anything is spent.  NOT PRIVATE.

The shares are exact: they are not protected, cost nothing, and touch no ledger.  A record far outside shows in them.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, compress
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.coding import MISSING, check_declared, check_named, level_codes, raw_numbers, without_codes
from dpcausal.data.columns import Bounded, Column, Levels, missing_texts
from dpcausal.data.curator.suspects import (
    DECLARE,
    like_code,
    likely_forms,
    likely_spellings,
    spellings_line,
    suspects_of_levels,
    suspects_of_numbers,
    suspects_of_texts,
)
from dpcausal.data.persons import checked_weight, names_of
from dpcausal.data.source import Collected, Kind, Source, guarded_read
from dpcausal.data.sources.origin import opened
from dpcausal.errors import Advice, HiddenAnswerError, SchemaError, Setting

STAMP = "NOT PRIVATE, NOT FOR PUBLICATION: exact shares of the data, for your eyes only"

UNDECODED, BYTE = re.compile(r"\\udc([89a-f][0-9a-f])"), r"\\x\1"
"""Bytes that are no UTF-8, as a repr writes them, and as they are shown."""
USE = (
    "Use it to find mistakes: a wrong unit, another spelling of a category, a file read wrongly. Do not choose "
    "bounds from it: that would be a release without protection."
)


MUCH_MISSING, MUCH_OUTSIDE = 0.05, 0.01
"""Shares from which on a column is worth a look."""

LIKE_ID = re.compile(
    r"(?i)(.*[_ .-])?(p?id|uu?id|mrn|seqn|ssn|ident|caseid|person|patient|subject|participant|respondent|client|"
    r"student|user|household)"
    r"([_ .-]?(id|no|nr))?"
)

PERSON = Advice(Setting("person"))
SPELLINGS = (
    "{number:,} ids differ from another only in case, blanks or zeros, as 1, 01 and 1.0. Each spelling counts as a "
    "person. Write each id one way: a person with two ids is protected only in part"
)
MOST_NAMED = 5
"""Undeclared values that are named."""


@dataclass(frozen=True)
class ColumnCheck:
    """What the schema does to one column, as shares of the rows, and in ``notes`` what to look at. ``below``,
    ``above``: outside the bounds, ±inf included, counted as the bound; ``substituted``: missing or no level."""

    name: str
    declared: Column
    below: float
    above: float
    substituted: float
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> float:
        return self.below + self.above + self.substituted


@dataclass(frozen=True, repr=False)
class SchemaCheck:
    """What a schema does to a frame, column by column.  NOT PRIVATE: see ``Schema.check``. ``persons``: columns that
    look like ids and repeat, with the number of their distinct values.  ``spellings``: columns of ids, with the number
    of ids that differ from another in spelling alone."""

    rows: int
    columns: tuple[ColumnCheck, ...]
    persons: Mapping[str, int] = field(default_factory=dict)
    spellings: Mapping[str, int] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        notes = [f"{one.name}: {UNDECODED.sub(BYTE, note)}" for one in self.columns for note in one.notes]
        persons, spellings = self.persons.items(), self.spellings.items()
        notes += [f"{name}: it looks like the id of persons, with {distinct:,} values in {self.rows:,} rows, and no "
                  f"person is declared: say {PERSON} to protect a person and not a row"
                  for name, distinct in persons]  # fmt: skip
        return (*notes, *(f"{name}: {SPELLINGS.format(number=number)}" for name, number in spellings))

    def summary(self) -> str:
        """Return the shares as text, stamped in its first line."""
        width = max(len("column"), *(len(one.name) for one in self.columns))
        wide = min(max(len("declared"), *(len(_declared(one.declared)) for one in self.columns)), 30)
        head = f"{'column':<{width}}  {'declared':<{wide}}  {'missing or other':>16}  {'below':>8}  {'above':>8}  note"
        lines = [
            f"{one.name:<{width}}  {_declared(one.declared)[:wide]:<{wide}}  {_percent(one.substituted):>16}  "
            f"{_percent(one.below):>8}  {_percent(one.above):>8}  {'LOOK' if one.notes else 'ok'}"
            for one in self.columns
        ]
        notes = [f"warning: {note}" for note in self.notes] or ["No problems found."]
        return "\n".join([f"{STAMP}.", USE, "", f"{self.rows:,} rows.", head, *lines, "", *notes])

    def to_dict(self) -> dict[str, Any]:
        """Return the shares as plain numbers, stamped in the first entry."""
        return {
            "private": False,
            "notice": f"{STAMP}. {USE}",
            "rows": self.rows,
            "columns": {
                one.name: {"below": one.below, "above": one.above, "substituted": one.substituted}
                for one in self.columns
            },
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return f"SchemaCheck({len(self.columns)} columns: {STAMP})"

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise HiddenAnswerError("the check of a schema holds exact shares of private records: it cannot be pickled")


def check(
    frame: Any, schema: Mapping[str, Column], weight: tuple[str, float] | None = None,
    meanings: Mapping[str, Mapping[str, str]] = MappingProxyType({}), person: str | None = None,
) -> SchemaCheck:  # fmt: skip
    source, _ = opened(frame)
    check_named(schema, source.names)
    for name, column in schema.items():
        check_declared(name, column, source.declared(name))
    rows = source.count()
    if rows < 1:
        raise SchemaError("a table needs at least one row")
    columns = tuple(_checked(source, name, column, rows, meanings.get(name, {})) for name, column in schema.items())
    columns += () if weight is None else (_checked_weight(source, checked_weight(weight, source), rows),)
    check_named([] if person is None else [person], source.names)
    ids = {name: _ids(source, name) for name in source.names if name == person or LIKE_ID.fullmatch(name)}
    persons = {name: len(set(known)) for name, known in ids.items() if person is None and len(set(known)) < len(known)}
    respelled = {name: _respelled(set(known)) for name, known in ids.items() if name == person or name in persons}
    return SchemaCheck(rows, columns, persons, {name: number for name, number in respelled.items() if number})


def _ids(source: Source, name: str) -> list[str]:
    """Return the id of each row that has one, empty if the column is of a type that no ids have."""
    kind = source.declared(name).kind
    if kind not in (Kind.TEXT, Kind.INTEGER, Kind.OBJECT, Kind.FIELD):
        return []
    places, texts = guarded_read(
        lambda: names_of(source.collect([name]), name, kind is Kind.FIELD), "the column of ids cannot be read"
    )
    return [text for text in map(texts.__getitem__, places.tolist()) if text is not None]


def _respelled(ids: set[str]) -> int:
    """Return how many ids are those of others but for case, blanks, zeros around digits and forms of Unicode."""
    plain = (unicodedata.normalize("NFKC", one).strip().casefold() for one in ids)
    return len(ids) - len({one.removesuffix(".0").lstrip("0") for one in plain})


def _checked(source: Source, name: str, column: Column, rows: int, meanings: Mapping[str, str]) -> ColumnCheck:
    collected = source.collect([name])  # one at a time: all together may not fit in memory
    if len(collected) != rows:
        raise SchemaError("the frame no longer has the rows that were counted")
    is_field = source.declared(name).kind is Kind.FIELD
    checked = partial(_checked_number, collected, name, column, is_field) if isinstance(column, Bounded) else partial(
        _checked_level, collected, name, column, is_field, meanings)  # fmt: skip
    return guarded_read(checked, f"the {source.backend} columns cannot be read")


def _checked_number(collected: Collected, name: str, column: Bounded, is_field: bool) -> ColumnCheck:
    numbers = raw_numbers(collected, name, column)
    raw, unread = without_codes(numbers, column), np.isnan(numbers)
    texts = tuple(map(str, _values(collected, name, unread))) if is_field else ()
    outside = float((raw < column.lower).mean()), float((raw > column.upper).mean())
    absent = float(np.isnan(raw).mean())
    notes = (*_notes_of_numbers(raw, column, sum(outside), absent), *suspects_of_numbers(raw, column),
             *suspects_of_texts(texts, len(raw), column), *likely_forms(texts))  # fmt: skip
    return ColumnCheck(name, column, *outside, absent, notes)


def _checked_level(
    collected: Collected, name: str, column: Levels, is_field: bool, meanings: Mapping[str, str]
) -> ColumnCheck:
    codes = level_codes(collected, name, column, fields=is_field)
    unread = codes == MISSING
    absent, values = float(unread.mean()), _values(collected, name, unread) if unread.any() else []
    notes = (*_notes_of_levels(codes, column, absent), *suspects_of_levels(codes, column, meanings),
             *_undeclared(values, len(codes), column), *(likely_forms(values) if is_field else ()))  # fmt: skip
    return ColumnCheck(name, column, 0.0, 0.0, absent, notes)


def _values(collected: Collected, name: str, chosen: NDArray[np.bool_]) -> list[object]:
    return [*compress(chain.from_iterable(collected.objects(name)), chosen.tolist())]


def _checked_weight(source: Source, weight: tuple[str, Bounded], rows: int) -> ColumnCheck:
    name, column = weight
    one = replace(_checked(source, name, column, rows, {}), notes=())
    notes = (
        (f"{_percent(one.above)} of the weights lie above the largest, {column.upper:g}, and count as it: give the "
         "design's largest weight", one.above > 0),
        (f"{_percent(one.below + one.substituted)} of the rows have a negative weight or none, and do not count",
         one.below + one.substituted > 0),
    )  # fmt: skip
    return replace(one, notes=tuple(note for note, holds in notes if holds))


def _undeclared(values: Sequence[object], rows: int, column: Levels) -> tuple[str, ...]:
    plain = (str, bytes, int, float, np.generic)  # no null of a frame
    counts = Counter(str(value) for value in values if isinstance(value, plain) and value == value)
    for text in missing_texts(column):
        del counts[text], counts[f"{text}.0"]  # a float column holds 9 as 9.0
    common = [value for value, _ in counts.most_common(20)]
    if column.other is not None:  # of which codes of missing answers are none
        counts = Counter({text: n for text, n in counts.items() if text.strip() and like_code(text.removesuffix(".0"))})
    named = [f"{value!r} in {_percent(count / rows)}" for value, count in counts.most_common(MOST_NAMED)]
    more = f" and {len(counts) - MOST_NAMED} others" if len(counts) > MOST_NAMED else ""
    notes = [f"values that are not declared, by share of the rows: {', '.join(named)}{more}"] if named else []
    if named and column.other is not None:
        notes = [f"{notes[0]}, count as {column.other!r}: {DECLARE.format('...')}"]
    if spellings := likely_spellings(common, column.labels):
        notes.append(f"some values look like other spellings of levels: {spellings_line(spellings)}")
    return tuple(notes)


def _notes_of_numbers(raw: NDArray[np.float64], column: Bounded, outside: float, absent: float) -> tuple[str, ...]:
    known = np.clip(raw[~np.isnan(raw)], column.lower, column.upper)
    spread = float(np.ptp(known)) if known.size else 0.0
    notes = (
        (_lacking(absent), absent >= MUCH_MISSING),
        (f"{_percent(outside)} of the values lie outside the bounds: another unit, or bounds too narrow?",
         outside > MUCH_OUTSIDE),
        ("it is constant, and says nothing", known.size > 0 and spread == 0),
        ("the bounds are more than 1,000 times as wide as the data: noise is made for the bounds",
         0 < spread < column.width / 1000),
        ("the rows are sorted by it, so one new value moves others: leave them in the order in which they came",
         spread > 0 and known.size == raw.size and bool((np.diff(raw) >= 0).all() or (np.diff(raw) <= 0).all())),
    )  # fmt: skip
    return tuple(note for note, holds in notes if holds)


def _notes_of_levels(codes: NDArray[np.int64], column: Levels, absent: float) -> tuple[str, ...]:
    never = [level for code, level in enumerate(column.labels) if level != column.other and not (codes == code).any()]
    distinct = np.unique(codes[codes != MISSING])
    twins = likely_spellings(map(str, column.labels), column.labels)
    notes = (
        (_lacking(absent), absent >= MUCH_MISSING and column.other is None),
        ("most of its values are no declared level: declare those of the file, or a number by bounds", absent > 0.5),
        (f"levels that never occur: {', '.join(map(repr, never))}; are they spelled differently?", bool(never)),
        ("it is constant, and says nothing", distinct.size == 1 and (column.other is None or not absent)),
        (f"levels look like spellings of one: leave one out of levels, and add {spellings_line(twins)}", bool(twins)),
    )  # fmt: skip
    return tuple(note for note, holds in notes if holds)


def _lacking(share: float) -> str:
    return (
        f"{_percent(share)} of the rows have no value, and are left out of every question about it: that is right "
        "only where they are missing by chance or by columns of the question"
    )


def _declared(column: Column) -> str:
    if isinstance(column, Bounded):
        return " to ".join(column.ends)
    return ", ".join(str(label) for label in column.labels)


def _percent(share: float) -> str:
    return "0" if share == 0 else "< 0.01 %" if share < 1e-4 else f"{100 * share:.2f} %"
