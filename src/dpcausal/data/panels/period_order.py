"""The order of periods: by what they mean, as declared, or none."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from dpcausal.data.panels.periods import Label, period_label
from dpcausal.errors import ParameterError, SchemaError

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T.*)?")
_DIGITS = re.compile(r"([0-9]+)")

UNKNOWN_ORDER = (
    "the order of the times is not known: they are texts, as {first!r}. List them in order, times=[...], make the "
    "column an ordered categorical, or use numbers or dates"
)


def in_order(labels: Collection[Label], declared: Sequence[Label] = ()) -> tuple[Label, ...]:
    """Return different labels in the order of time.

    Numbers by size, dates by the calendar, and texts by a declared order.  Texts without one are ordered if they
    differ in one whole number only, as ``p2`` and ``p10``, or if they begin with the year, as ``2019-W2``.

    Parameters
    ----------
    labels : collection of Label
        Public.
    declared : sequence of Label
        An order of texts, as the categories of an ordered categorical; empty: none is declared.

    Raises
    ------
    SchemaError
        If the labels have no such order.  Names the first label.

    Examples
    --------
    >>> in_order({"p10", "p2"}), in_order({"late", "early"}, ["early", "late"])
    (('p2', 'p10'), ('early', 'late'))
    """
    different = set(labels)
    if len({isinstance(label, str) for label in different}) > 1:
        raise SchemaError("the targets' times must be all numbers, or all dates or texts")
    if different <= set(declared):
        return tuple(label for label in declared if label in different)
    texts = [label for label in different if isinstance(label, str)]
    if not texts or all(_DATE.fullmatch(text) for text in texts):
        return tuple(sorted(different))
    keys = _numbered(texts)
    if keys is None:
        raise SchemaError(UNKNOWN_ORDER.format(first=min(texts)))
    return tuple(sorted(texts, key=keys.__getitem__))


def declared_times(values: object) -> tuple[Label, ...]:
    """Return the labels of periods that a caller lists in order; numbers and dates must increase."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError("times must list the periods in order")
    labels = [period_label(value) for value in values]
    named = [label for label in labels if label is not None]
    if not named or len(set(named)) < len(labels):
        raise ParameterError("times must list different periods: numbers, dates or texts")
    try:
        known = in_order(named, [label for label in named if isinstance(label, str) and not _DATE.fullmatch(label)])
    except SchemaError as error:
        raise ParameterError(str(error)) from None
    if list(known) != labels:
        raise ParameterError("times must increase strictly")
    return known


def _numbered(texts: Sequence[str]) -> dict[str, tuple[int, ...]] | None:
    """Return by which whole numbers texts are ordered; ``None`` if that is not plain from the texts.

    All texts must agree outside their digits.  ``1/2/2019`` is no order where more than one number varies: which is the
    month is not known.  Nor is ``1.10``, whose second number may be a fraction.
    """
    parts = {text: _DIGITS.split(text) for text in texts}
    if len({tuple(part[::2]) for part in parts.values()}) > 1:
        return None
    between = next(iter(parts.values()))[::2]
    columns = list(zip(*(part[1::2] for part in parts.values()), strict=True))
    varying = [place for place, column in enumerate(columns) if len({int(digits) for digits in column}) > 1]
    fractions = any(place and between[place] in (".", ",") for place in varying)
    by_year = bool(varying) and varying[0] == 0 and all(len(digits) == 4 for digits in columns[0])
    keys = {text: tuple(int(part[1::2][place]) for place in varying) for text, part in parts.items()}
    if fractions or not (len(varying) == 1 or by_year) or len(set(keys.values())) < len(texts):
        return None
    return keys
