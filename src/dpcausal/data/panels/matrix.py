"""The cells of a panel: from long frames or wide arrays to a row for each unit, NaN where there is no cell.

What makes a donor's row looks at this donor's records and at the targets' public periods, never at another donor.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.data.coding import check_declared, check_name, raw_numbers, without_codes
from dpcausal.data.columns import Bounded, exact_number
from dpcausal.data.panels.periods import (
    Label,
    coded_labels,
    declared_times,
    label_in,
    labels_in_order,
    period_label,
    unit_in_frame,
    unit_name,
)  # fmt: skip
from dpcausal.data.source import Collected, Kind, guarded_read
from dpcausal.data.sources.fingerprint import confirm
from dpcausal.data.sources.origin import Origin, opened
from dpcausal.errors import ParameterError, SchemaError
from dpcausal.privacy.budget import json_text


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Where a panel's cells come from: public but for ``donor_rows``, which brings the outcomes of all donors in.
    ``target_rows`` has each target's outcomes as they are: infinity where several records of a cell are not all within
    the bounds.  ``confirm`` raises a SchemaError if the frame no longer is what was declared."""

    times: tuple[Label, ...]
    targets: tuple[Any, ...]
    donors: int
    target_rows: dict[Any, Reals]
    donor_rows: Callable[[], Reals]
    confirm: Callable[[], None] = lambda: None
    origin: Origin = field(default_factory=Origin)


def public_values(cells: Cells, outcome: str | None) -> dict[str, Any]:
    """Return the targets' values as a ledger records them: what is a target's for good, whatever panel it is in. Of a
    frame each value under outcome, unit and time; of arrays (``outcome`` None) each whole series."""
    if outcome is None:
        return {
            json_text(unit_name(name)): [float(one) + 0.0 if np.isfinite(one) else str(one) for one in row]
            for name, row in cells.target_rows.items()
        }
    return {
        json_text([outcome, unit_name(name), time]): float(value) + 0.0
        for name, row in cells.target_rows.items()
        for time, value in zip(cells.times, row, strict=True)
        if not np.isnan(value)
    }


def filled_rows(rows: Reals, bounds: Bounded, missing: str) -> Reals:
    """Return rows within the bounds, a missing cell by the rule, each row by itself. ``"carry"``: the value before it,
    else the first value of the row, else the midpoint; ``"midpoint"``."""
    with np.errstate(all="ignore"):
        clean = np.clip(rows, bounds.lower, bounds.upper) + 0.0
    absent = np.isnan(clean)
    if missing == "carry" and absent.any() and clean.shape[1]:
        columns = np.arange(clean.shape[1])
        first = np.argmin(absent, axis=1)  # 0 where all are absent: the midpoint comes in below
        latest = np.maximum.accumulate(np.where(absent, -1, columns), axis=1)
        clean = np.take_along_axis(clean, np.where(latest < 0, first[:, None], latest), axis=1)
        absent = np.isnan(clean)
    clean[absent] = bounds.midpoint
    return clean


def array_cells(donors: Any, targets: Mapping[Any, Any], times: Sequence[Any] | None) -> Cells:
    rows = _checked_reals(donors, "donors", 2)
    series = {name: _checked_reals(values, "each target", 1) for name, values in targets.items()}
    if not series or any(len(values) != rows.shape[1] for values in series.values()):
        raise ParameterError(f"each target must have as many periods as the donors, {rows.shape[1]}")
    known = tuple(range(rows.shape[1])) if times is None else declared_times(times)
    if len(known) != rows.shape[1]:
        raise ParameterError(f"times must name the {rows.shape[1]} periods of the donors")
    return Cells(times=known, targets=tuple(series), donors=len(rows), target_rows=series, donor_rows=lambda: rows)


def _checked_reals(values: Any, name: str, dimensions: int) -> Reals:
    array = values if isinstance(values, np.ndarray) else None
    if array is None or array.dtype.kind not in "iuf" or array.ndim != dimensions:
        raise ParameterError(f"{name} must be a numpy array of numbers with {dimensions} dimension(s)")
    with np.errstate(all="ignore"):  # a warning of overflow would depend on the donors
        plain = np.array(np.ma.getdata(array), dtype=np.float64)
    plain[np.ma.getmaskarray(array)] = np.nan
    return plain


def frame_cells(
    frame: Any, unit: str, time: str, outcome: str, bounds: Bounded, targets: list[Any],
    treated: Callable[[bool], Callable[[Any], bool]] = lambda as_text: lambda name: False,
    listed_times: Sequence[Any] | None = None, declare: Callable[[], None] = lambda: None, period: str | None = None,
) -> Cells:  # fmt: skip
    """Return the cells of a long frame; reads the columns of units and times, and the targets' records. ``treated``,
    given whether names are all texts, says of a name whether its unit is treated: then it is no donor. ``declare`` is
    called before anything of a target but its name is looked at: what follows may show it."""
    declared = () if listed_times is None else declared_times(listed_times)
    source, origin = opened(frame)
    for name in (unit, time, outcome):
        if not isinstance(name, str) or name not in source.names:
            raise SchemaError(f"column {name!r} is not among the columns of the frame")
        check_name(name)
    if len({unit, time, outcome}) < 3:
        raise SchemaError("unit, time and outcome must be different columns")
    check_declared(outcome, bounds, source.declared(outcome))
    as_text = source.declared(unit).kind is Kind.FIELD
    names = [unit_in_frame(target, as_text) for target in targets]
    if not names or None in names or len(set(names)) < len(names) or not _targets_differ(targets):
        raise ParameterError("target must name one unit, or several different ones")

    rows = source.count()
    if source.lazy:
        source.evaluate((unit, time, outcome))
    collected = source.collect((unit, time, outcome))
    if len(collected) != rows:
        raise SchemaError("the frame does not keep its number of rows")
    unread = f"the {source.backend} columns of units and times cannot be read"
    label = label_in(period, collected.date_order)

    def coded(collected: Collected) -> tuple[Integers, list[Any], Integers, list[Any]]:
        return (*coded_labels(collected.objects(unit), rows, unit_name),
                *coded_labels(collected.objects(time), rows, label))  # fmt: skip

    units, unit_names, moments, labels = guarded_read(lambda: coded(collected), unread)
    codes = {name: code for code, name in enumerate(unit_names)}
    absent = [target for target, name in zip(targets, names, strict=True) if name not in codes]
    if absent:
        twins = [name for name in unit_names if str(name) == str(absent[0])]  # units' names are public
        hint = f"; there is {twins[0]!r}, another type: name it so" if twins else ""
        raise ParameterError(f"no record has the target {absent[0]!r} as its unit{hint}")
    declare()
    of_targets = np.isin(units, [codes[name] for name in names])
    present = {labels[code] for code in np.unique(moments[of_targets & (moments >= 0)])}
    if not present:
        raise SchemaError("no record of a target has a time that can be read")
    if declared and (strange := sorted(present - set(declared), key=str)):
        raise ParameterError(f"times lacks {strange[0]!r}, in which a target has a record")
    categories = [period_label(value) for value in source.categories(time)]
    times = declared or labels_in_order(present, [label for label in categories if label is not None])
    is_treated, own = treated(as_text), set(names)
    donors = (name for name in unit_names if name not in own and not is_treated(name))
    order = sorted(donors, key=lambda name: (str(name), repr(name)))
    width = len(names) + len(order)
    ranks = dict.fromkeys(unit_names, -1) | {name: rank for rank, name in enumerate([*names, *order])}
    cells = _cells(units[of_targets], unit_names, moments[of_targets], labels, ranks, times)
    raw = guarded_read(lambda: raw_numbers(collected, outcome, bounds)[of_targets], unread)
    values = without_codes(raw, bounds)
    within = _cell_means(values, cells, len(names), len(times), bounds)
    plain = _cell_means(values, cells, len(names), len(times))
    own_rows = np.where((plain == within) | np.isnan(within), within, np.inf)

    def all_rows() -> Reals:
        # Units and times come with the values, in one reading: a frame may give its rows in another order by now.
        collected = source.collect((unit, time, outcome))
        if len(collected) != rows:
            raise SchemaError("the frame no longer has the number of rows counted when the panel was made")
        units, names, moments, labels = guarded_read(lambda: coded(collected), unread)
        if not set(names) <= set(ranks):
            raise SchemaError("the frame no longer has the units it had when the panel was made")
        flat = _cells(units, names, moments, labels, ranks, times)
        broken = f"the {source.backend} columns cannot be read"
        raw = guarded_read(lambda: raw_numbers(collected, outcome, bounds), broken)
        return _cell_means(without_codes(raw, bounds), flat, width, len(times), bounds)

    return Cells(
        times,
        tuple(targets),
        len(order),
        dict(zip(targets, own_rows, strict=True)),
        lambda: all_rows()[len(names) :],
        lambda: confirm(source, {outcome: bounds}, rows, origin.stamp, (unit, time)),
        origin,
    )


def _targets_differ(targets: list[Any]) -> bool:
    try:
        return len(set(targets)) == len(targets)
    except TypeError:
        return False


def _cells(
    units: Integers, names: list[Any], moments: Integers, labels: list[Any], ranks: Mapping[Any, int],
    times: tuple[Label, ...],
) -> Integers:  # fmt: skip
    places = {label: place for place, label in enumerate(times)}
    # The last entry is that of a null, code −1.
    rank = np.array([*(ranks[name] for name in names), -1], dtype=np.int64)[units]
    place = np.array([*(places.get(label, -1) for label in labels), -1], dtype=np.int64)[moments]
    return np.where((rank >= 0) & (place >= 0), rank * len(times) + place, -1)


def _cell_means(values: Reals, flat: Integers, units: int, periods: int, bounds: Bounded | None = None) -> Reals:
    """Return (units, periods): the mean of a cell's values, each within bounds if given; NaN where there is none."""
    with np.errstate(all="ignore"):
        clean = values if bounds is None else np.clip(values, bounds.lower, bounds.upper)
    complete = (flat >= 0) & ~np.isnan(clean)
    flat, clean = flat[complete], clean[complete]
    count = np.bincount(flat, minlength=units * periods)
    if count.size and count.max() > 1:  # a float sum is that of one order: here of the values' own
        order = np.lexsort((clean, flat))
        flat, clean = flat[order], clean[order]
    total = np.bincount(flat, weights=clean, minlength=units * periods)
    cells = np.full(units * periods, np.nan)
    np.divide(total, count, out=cells, where=count > 0)
    return cells.reshape(units, periods)


def place_of(times: tuple[Label, ...], target: Any, start: Any) -> int:
    label = period_label(start)
    if label not in times:
        raise ParameterError(
            f"start of {target!r} must be one of the periods {times[0]} … {times[-1]} that the targets have"
        )
    place = times.index(label)
    if place < 1:
        raise ParameterError(f"start of {target!r} leaves no period before it: the first is {times[0]}")
    return place


def check_target(name: Any, series: Reals, start: int, times: tuple[Label, ...], bounds: Bounded) -> None:
    outside = np.flatnonzero((series < bounds.lower) | (series > bounds.upper))
    if len(outside):
        raise ParameterError(
            f"target {name!r} lies outside the bounds {exact_number(bounds.lower)} to {exact_number(bounds.upper)} in "
            f"{times[outside[0]]}: declare wider bounds"
        )
    absent = np.isnan(series)
    if absent[start:].any():
        first = times[start + int(np.argmax(absent[start:]))]
        raise ParameterError(f"target {name!r} has no value in {first}, which is treated: its effect is unknown there")
    if (left := int((~absent[:start]).sum())) < min(start, 3):
        raise ParameterError(f"target {name!r} has {left} values before its start in {times[start]}, fewer than 3")


def observed_places(series: dict[Any, Reals], starts: dict[Any, int], times: tuple[Label, ...]) -> Integers:
    """Return the places of the periods that count: those that no target misses."""
    absent = {name: np.isnan(values) for name, values in series.items()}
    lacks = np.logical_or.reduce(list(absent.values()))
    for name, start in starts.items():
        if lacks[start:].any():  # then another target lacks it, before its own start
            place = start + int(np.argmax(lacks[start:]))
            other = next(one for one, missing in absent.items() if missing[place])
            raise ParameterError(
                f"target {other!r} has no value in {times[place]}, when {name!r} is treated: ask about {other!r} in a "
                "panel of its own"
            )
    return np.flatnonzero(~lacks)
