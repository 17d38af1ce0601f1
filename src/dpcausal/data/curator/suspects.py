"""Values that look like codes of a missing answer, or were read wrongly, for the curator's check.  *NOT PRIVATE.*"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.columns import Bounded, Levels, exact_number

OFTEN, LEAST = 0.005, 5
"""A code is suspected of at least this share of the rows, and so many of them."""
HEAP, HEAP_OF_DIGITS, NEAR = 8.0, 4.0, 10
"""A value is a heap if it is so many times as frequent as the median of the values next to it; one of two equal digits
or more, as 77, if it is so many times."""
FAR_ABOVE, MANY = 1 / 4, 10
"""A 0 is suspected if all other values, so many at least, are above such a share of their median."""
RARE = 0.5
"""A level -1, and one whose name is a word for missing, is suspected if it is at most such a share as frequent as the
others on average."""

_REPDIGITS = re.compile(r"-?(9+|8+|7+|9+[5-8]|8+[5-7]|1)")
_DIGITS = re.compile(r"-?(7{2,}|8{2,}|9{2,})")
_WHOLE = re.compile(r"-?\d{1,18}")
_WORDS = {
    "missing", "refused", "unknown", "don't know", "no answer", "not stated", "not known", "not reported", "declined",
    "not available", "prefer not to say", "keine angabe", "unbekannt", "weiß nicht",
}  # fmt: skip
"""What a level may well be called."""
_DATES = {"1899-12-30", "1899-12-31", "1900-01-01", "1901-01-01", "1970-01-01", "2099-12-31", "9999-12-31"}
"""What programs write for no date."""
_CODES = {"", ".", "?", "-", "--", "n/a", "na", "n.a.", "nan", "null", "#n/a", "dk", "k.a.", *_WORDS}

DECLARE = "a code of a missing answer? Then declare it as missing=[{}]"


def like_code(text: str) -> bool:
    """Return whether a text is often a code of a missing answer, as 99, -9, -1, 998 or "NA".

    Examples
    --------
    >>> [text for text in ("99", "-9", "-1", "1", "996", "17", "NA", "no") if like_code(text)]
    ['99', '-9', '-1', '996', 'NA']
    """
    return text != "1" and (bool(_REPDIGITS.fullmatch(text)) or text.strip().casefold() in _CODES)


def suspects_of_numbers(raw: NDArray[np.float64], column: Bounded) -> tuple[str, ...]:
    """Return in words the numbers that heap like codes: outside the bounds, at an end of the values, or inside them."""
    known = raw[np.isfinite(raw)]
    values, counts = np.unique(known, return_counts=True)
    least, notes = max(LEAST, OFTEN * len(raw)), []
    for place in np.flatnonzero(counts >= least) if len(values) > (1 if column.dates else 2) else ():
        value, near = float(values[place]), np.delete(counts, place)[max(0, place - NEAR // 2) :][:NEAR]
        outside, text = not column.lower <= value <= column.upper, column.written(value)
        beyond = counts[(values < column.lower) | (values > column.upper)].sum()
        gap, number = _is_isolated(values, int(place)), exact_number(value)
        times = counts[place] / np.median(near) if len(near) else 0.0
        heap = times >= (HEAP_OF_DIGITS if _DIGITS.fullmatch(number) else HEAP)
        code = like_code(number) and (gap or outside or heap)
        date = column.dates and text in _DATES and (gap or heap or (len(values) == 2 and times < RARE))
        if code or date or _is_lone_zero(values, counts, int(place)) or (
            outside and len(values) > 2 and (heap or counts[place] > beyond / 2)
        ):  # fmt: skip
            where = "outside the bounds" if outside else "at an end of the values" if gap else "among the values"
            share = f"{counts[place] / len(raw):.1%} of the rows"
            notes.append(f"{text} is {where} in {share}: {DECLARE.format(text)}")
    return tuple(notes)


def _is_isolated(values: NDArray[np.float64], place: int) -> bool:
    """Return whether a gap separates a value, alone or with others that look like codes, from the rest."""
    steps = np.diff(values)
    gaps = np.flatnonzero(steps > 2 * np.median(steps))
    below = [values[: gap + 1] for gap in gaps[:NEAR] if place <= gap < NEAR]
    above = [values[gap + 1 :] for gap in gaps[-NEAR:] if place > gap >= len(steps) - NEAR]
    return any(all(one == values[place] or like_code(exact_number(float(one))) for one in ends)
               for ends in (*below, *above))  # fmt: skip


def _is_lone_zero(values: NDArray[np.float64], counts: NDArray[np.int64], place: int) -> bool:
    above = values[values > 0]
    if values[place] != 0 or len(above) < MANY or place != len(values) - len(above) - 1:
        return False
    return bool(above[0] > FAR_ABOVE * np.median(np.repeat(above, counts[place + 1 :])))


def suspects_of_texts(texts: Iterable[str], rows: int, column: Bounded) -> tuple[str, ...]:
    counts = Counter(text for text in texts if text.strip())
    kind = "date" if column.dates else "number"
    if 2 * counts.total() > rows:  # no codes beside numbers
        return () if likely_forms(counts) else (f"most of its values are no {kind}s: a category is declared by levels",)
    often = [(text, count) for text, count in counts.most_common(5)
             if count >= max(LEAST, OFTEN * rows) and text not in (column.missing or ())]  # fmt: skip
    return tuple(f"{text!r} is no {kind} in {count / rows:.1%} of the rows: {DECLARE.format(repr(text))}"
                 for text, count in often)  # fmt: skip


def suspects_of_levels(codes: NDArray[np.int64], column: Levels, meanings: Mapping[str, str]) -> tuple[str, ...]:
    """Return in words the declared levels that occur and look like codes of a missing answer, as do their meanings."""
    plain = [label for label in column.labels if not like_code(str(label))]
    whole = {int(label) for label in column.labels if _WHOLE.fullmatch(str(label))}
    run = {int(label) for label in plain if _WHOLE.fullmatch(str(label))}
    while more := whole & {number + step for number in run for step in (-1, 1)} - run:
        run |= more  # one number after the other
    notes, occurring, levels = [], int((codes >= 0).sum()), len(np.unique(codes[codes >= 0]))
    for code, label in enumerate(column.labels):
        text, count = str(label), int((codes == code).sum())
        meant = label == column.other or isinstance(label, bool)
        if meant or not count or not (like_code(text) and like_code(meanings.get(text, text))):
            continue
        rare = count <= RARE * (occurring - count) / max(levels - 1, 1)
        word = text.strip().casefold() in _WORDS or (text == "-1" and "0" in map(str, column.labels))
        if not rare if word else _WHOLE.fullmatch(text) and (not plain or int(text) in run):
            continue
        share = f"{count / len(codes):.1%} of the rows"
        notes.append(f"level {label!r} in {share}: {DECLARE.format(repr(label))}, not as a level. If it is one, say "
                     f"what it means: level_labels = {{ {json.dumps(text)} = ... }}")  # fmt: skip
    return tuple(notes)


def likely_spellings(values: Iterable[str], levels: Iterable[object]) -> dict[str, str]:
    """Return the levels that values differ from in case and outer blanks alone.

    >>> likely_spellings(["F", " m", "x"], ["f", "m"])
    {'F': 'f', ' m': 'm'}
    """
    known = {level.strip().casefold(): level for level in reversed([*levels]) if isinstance(level, str)}
    level_of = {value: known.get(value.strip().casefold()) for value in values}
    return {value: level for value, level in level_of.items() if level is not None and level != value}


def spellings_line(spellings: Mapping[str, str]) -> str:
    """Return the line of TOML by which spellings count as their levels."""
    pairs = ", ".join(f"{json.dumps(value)} = {json.dumps(level)}" for value, level in spellings.items())
    return f"spellings = {{ {pairs} }}"


FORMS = {
    "numbers with a decimal comma: declare decimal = ',' under [data] of a study": re.compile(
        r"\s*[+-]?(\d{1,3}([. ']\d{3})+|\d*),\d+\s*|\s*[+-]?\d{1,3}(\.\d{3})*,\s*\d*\s*"
    ),
    "dates or times: declare dates as bounds, as lower = 2019-01-01, and their order as dates under [data]": re.compile(
        r"\s*(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})"
        r"([T ]\d{1,2}:\d\d.*)?\s*"
        r"|\s*\d{1,2}:\d\d(:\d\d.*)?\s*"
    ),
    "texts in another encoding than UTF-8: declare encoding under [data] of a study": re.compile(
        r"(?s).*[\udc80-\udcff].*"
    ),
}

ENOUGH = 0.01
"""A form is named where so many of the fields that cannot be read have it."""

LOOKED_AT = 10_000


def likely_forms(fields: Iterable[object]) -> tuple[str, ...]:
    """Return in words what fields that cannot be read as declared look like.

    >>> likely_forms(["1,5", "2,25"])
    ("some look like numbers with a decimal comma: declare decimal = ',' under [data] of a study",)
    """
    texts = [field for field, _ in zip(fields, range(LOOKED_AT), strict=False) if isinstance(field, str) and field]
    return tuple(
        f"some look like {form_name}" for form_name, form in FORMS.items()
        if texts and sum(form.fullmatch(text) is not None for text in texts) >= max(1.0, ENOUGH * len(texts))
    )  # fmt: skip
