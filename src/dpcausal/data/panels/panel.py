"""A panel: the series of many donors, private, and of one or more targets, public, under one public set of bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.data.panels.dates import PERIODS
from dpcausal.data.panels.matrix import (
    Cells,
    array_cells,
    check_target,
    filled_rows,
    frame_cells,
    observed_places,
    place_of,
    public_values,
)  # fmt: skip
from dpcausal.data.panels.periods import Label, unit_name
from dpcausal.data.panels.treated_units import (
    MADE_OF,
    TARGETS,
    VALUES,
    checked_treated,
    declare,
    membership,
    treated_record,
)
from dpcausal.data.records import checked_name
from dpcausal.data.schema import Bounded
from dpcausal.data.sources.origin import Origin
from dpcausal.errors import ParameterError, SchemaError, with_signature_errors
from dpcausal.privacy.budget import json_text
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.unpicklable import Frozen

MOST_CELLS = 200_000_000
"""Most donors × periods that are brought into memory: 1.6 GB."""

MISSING = ("carry", "midpoint")

FRAME, ARRAYS = "a frame", "arrays"


class Panel(Frozen):
    """Donors and targets over time: a long frame, its public bounds, and the ledger.

    Parameters
    ----------
    frame : frame, mapping or path
        Long: a row for each unit and time.  Back ends as for ``Table``.  *The donors' rows are private*; it must not
        change afterwards.
    unit, time, outcome : str
        Columns.  Times are numbers, dates, timestamps, periods, an ordered categorical, or texts of one form as
        ``2019-W2``; other texts need ``times``.  Timestamps with a time zone are instants, named in UTC.
        *The names of the units are public by declaration*, the donors' too: see the notes.
    target : name of a unit, or a list of them
        The treated units.  *Public: a target's own series is not protected*, and it is printed in results.  It must lie
        within the bounds, and have a value in each treated period.
    start : time, or a mapping from target to time
        The first treated period; one of the target's own.  *Public.*
    bounds : Bounded
        Bounds of the outcome.  *Public.*
    ledger : Ledger
        Where each question about the donors is paid; made with ``unit=`` as here.
    name : str, optional
        Under which answers are kept, as for ``Table``; another series of a target is another question.
    treated : list of units or str, optional
        All units that are treated, in this frame or in another of the ledger's: a list, or a rule about their names, as
        ``"unit >= 6000 and unit <= 6999"``.  *Public, and not protected*: those that are no targets here are no
        donors either.  The ledger declares list or rule for good, before a series is looked at, for a plan too: panels
        whose targets are among them share it.  By default the targets alone.
    times : sequence of times, optional
        All periods, in order, for times whose order is not known, as names of months.  *Public.*  By default the
        targets' periods.
    missing : str
        What an absent or null cell of a donor counts as, by a rule that looks at this donor only: ``"carry"``, its
        value before, else its first value, else the midpoint of the bounds; or ``"midpoint"``.
    period : {"month", "quarter", "year"}, optional
        The column of times has dates, and the periods are the months, quarters or years that they lie in, as
        ``"2019-01"``, ``"2019-Q1"`` or ``2019``.  A cell is the mean of its rows.

    Attributes
    ----------
    n : int
        Donors: units other than the targets.  Public under replace-one.
    times : tuple
        The targets' periods, in order: numbers, or texts.  Public.  Donors' rows at other times do not count, nor do
        periods before a start in which a target has no value.
    lacking : mapping from target to tuple
        The periods before its start in which a target has no value: they are left out, for the donors too.  Public.
    targets : tuple
        Their names.
    treated : tuple or str
        The names, or the rule.
    bounds, ledger, missing

    Notes
    -----
    *Guarantee*: the unit of privacy is a donor, that is its whole series; the relation is replace-one.  Each donor is
    cleaned by itself by total rules (values outside the bounds are moved to the nearer one, several rows of one unit
    and time count as their mean, rows without a unit belong to nobody), so a replaced donor changes one row of the
    array that mechanisms see.  No error depends on a donor's values.

    *Names of donors*: a replaced donor keeps its name.  No name of a donor is printed, recorded or released, but
    sorted they give each donor its place, and the papers' methods, which weigh donors one by one,
    protect the donor in its place: another name would move all between.  Where names carry information, number the
    donors. Texts differ by their code points; 1, 1.0 and the decimal 1 are one name.

    *Lazy frames* are computed once when the panel is made and again for each question: see ``Table``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcausal.privacy.ledger import Ledger
    >>> from dpcausal.privacy.loss import PureDP
    >>> frame = {
    ...     "state": np.array(["A", "A", "A", "B", "B", "B", "C", "C", "C"]),
    ...     "year": np.array([1987, 1988, 1989] * 3),
    ...     "sales": np.arange(9.0),
    ... }
    >>> panel = Panel(frame, unit="state", time="year", outcome="sales", target="A", start=1989,
    ...               bounds=Bounded(0, 10), ledger=Ledger.in_memory(PureDP(1.0), unit="state"))
    >>> panel
    Panel(n=2 donors, 3 periods, target A from 1989)
    """

    confined = "a panel holds private records: it cannot be pickled"

    __slots__ = (
        "_cells", "_ledger", "_named", "_series", "_starts", "bounds", "lacking", "missing", "n", "name", "places",
        "public_values", "times", "treated",
    )  # fmt: skip
    _cells: Cells
    _ledger: Ledger
    _named: tuple[str, ...]
    _series: dict[Any, Reals]
    _starts: dict[Any, int]
    bounds: Bounded
    lacking: Mapping[Any, tuple[Label, ...]]
    missing: str
    n: int
    name: str
    places: Integers
    """The place of each period among all, missing ones of a target included: they are the steps of a trend."""
    public_values: dict[str, Any]
    """The targets' values as a ledger has them once; all of them, also of a placebo in time."""
    times: tuple[Label, ...]
    treated: tuple[Any, ...] | str

    @with_signature_errors
    def __init__(
        self, frame: Any, *, unit: str, time: str, outcome: str, target: Any, start: Any, bounds: Bounded,
        ledger: Ledger, name: str = "", treated: Sequence[Any] | str = (), times: Sequence[Any] | None = None,
        missing: str = "carry", period: str | None = None,
    ) -> None:  # fmt: skip
        if period is not None and period not in PERIODS:
            text = f"period must be one of {', '.join(PERIODS)}"
            raise ParameterError(text, argument="period", rule="choice", value=period)
        _check_public(bounds, ledger, missing)
        listed = list(target) if isinstance(target, (list, tuple)) else [target]
        others = checked_treated(treated, listed, unit)
        first = partial(declare, ledger, {TARGETS: treated_record(others), MADE_OF: FRAME}, unit)
        cells = frame_cells(frame, unit, time, outcome, bounds, listed, partial(membership, others), times, first,
                            period)  # fmt: skip
        named = unit, time, outcome
        self._set_fields(cells, start, bounds, ledger, missing, others, checked_name(name), named)

    @classmethod
    def from_arrays(
        cls, donors: Any, target: Any, *, start: Any, bounds: Bounded, ledger: Ledger, unit: str = "unit",
        times: Sequence[Any] | None = None, treated: Sequence[Any] | str = (), missing: str = "carry",
    ) -> Panel:  # fmt: skip
        """Return a panel from wide arrays.

        Parameters
        ----------
        donors : float array, shape (n, T)
            *Private.*  NaN is a missing cell.
        target : float array, shape (T,), or a mapping from name to such arrays
            *Public.*
        start : time
            One of ``times``; a mapping for several targets.
        unit : str
            What the rows are, as the ledger names it: ``Ledger.in_memory(budget, unit="unit")``.  A ledger answers for
            one series of each target, and for arrays alone: any other series may be a donor's.
        times : sequence of T times, optional
            0, …, T−1 by default.  Numbers and dates must increase; texts are in the order given.
        bounds, ledger, treated, missing
            As for ``Panel``; who is a donor is up to the caller.
        """
        _check_public(bounds, ledger, missing)
        panel = cls.__new__(cls)
        series = dict(target) if isinstance(target, Mapping) else {"target": target}
        others = checked_treated(treated, list(series))
        if not isinstance(unit, str) or not unit:
            raise ParameterError("unit must be the word by which the ledger names the rows")
        cells = array_cells(donors, series, times)
        declare(ledger, {TARGETS: treated_record(others), MADE_OF: ARRAYS, VALUES: public_values(cells, None)}, unit)
        panel._set_fields(cells, start, bounds, ledger, missing, others, named=(unit,))
        return panel

    @classmethod
    def from_declared(
        cls, times: Sequence[Label], n: int, *, unit: str, time: str, outcome: str, target: Any, start: Any,
        bounds: Bounded, ledger: Ledger, name: str = "", treated: Sequence[Any] | str = (), missing: str = "carry",
    ) -> Panel:  # fmt: skip
        """Return a panel without its control units: the periods, their number n, and series that a ledger declared."""
        listed = list(target) if isinstance(target, (list, tuple)) else [target]
        declared = ledger.declared.get(VALUES, {})
        keys = {one: [json_text([outcome, unit_name(one), period]) for period in times] for one in listed}
        rows = {one: np.array([declared.get(key, np.nan) for key in keys[one]], dtype=np.float64) for one in listed}
        panel, others = cls.__new__(cls), checked_treated(treated, listed, unit)
        cells = Cells(tuple(times), tuple(listed), n, rows, _refuse_rows)
        panel._set_fields(cells, start, bounds, ledger, missing, others, checked_name(name), (unit, time, outcome))
        return panel

    def _set_fields(
        self, cells: Cells, start: Any, bounds: Bounded, ledger: Ledger, missing: str, treated: tuple[Any, ...] | str,
        known_as: str = "", named: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        if cells.donors < 1:
            raise SchemaError("a panel needs at least one donor beside its targets")
        if cells.donors * len(cells.times) > MOST_CELLS:
            raise SchemaError(f"a panel holds at most {MOST_CELLS} cells, donors times periods")
        if isinstance(start, Mapping) and set(start) != set(cells.targets):
            raise ParameterError("start must name every target once")
        starts = {name: start[name] if isinstance(start, Mapping) else start for name in cells.targets}
        every = {name: place_of(cells.times, name, value) for name, value in starts.items()}
        raw = cells.target_rows
        for name, row in raw.items():
            check_target(name, row, every[name], cells.times, bounds)
        used = observed_places(raw, every, cells.times)
        places = {name: int(np.searchsorted(used, place)) for name, place in every.items()}
        series, lacking = {}, {}
        for name, row in raw.items():
            series[name] = row[used] + 0.0
            series[name].setflags(write=False)
            lacking[name] = tuple(cells.times[place] for place in np.flatnonzero(np.isnan(row[: every[name]])))
        self._set(
            _cells=cells, _series=series, _starts=places, _named=named, _ledger=ledger, n=cells.donors, name=known_as,
            times=tuple(cells.times[place] for place in used), places=used, bounds=bounds, missing=missing,
            treated=treated, lacking=MappingProxyType(lacking),
            public_values=public_values(cells, named[2] if len(named) > 1 else None),
        )  # fmt: skip

    @property
    def origin(self) -> Origin:
        """Which data it was made of."""
        return self._cells.origin

    @property
    def identity(self) -> dict[str, Any]:
        """All that is public of it, the targets' own records too; nothing of a donor."""
        hidden = ("_cells", "_ledger", "_series", "lacking", "places", "public_values")
        fields = {slot: getattr(self, slot) for slot in Panel.__slots__ if slot not in hidden}
        return fields | {"_series": self._cells.target_rows, "times": self._cells.times}

    @property
    def unit(self) -> str:
        """The column that names the units, or the word for the rows of arrays."""
        return self._named[0]

    @property
    def declaration(self) -> dict[str, Any]:
        """What its ledger has declared since it was made: whose series are public."""
        made_of = FRAME if len(self._named) > 1 else ARRAYS  # a frame names its time and outcome too
        return {TARGETS: treated_record(self.treated), MADE_OF: made_of}

    def before(self, target: Any) -> tuple[Label, ...]:
        """Return all periods before a target's start, missing ones included."""
        return self._cells.times[: int(self.places[self._starts[target]])]

    @property
    def targets(self) -> tuple[Any, ...]:
        """The names of the treated units."""
        return tuple(self._series)

    def before_treatment(self, start: Any) -> Panel:
        """Return the panel up to the first treatment, as if it had been at ``start``: for placebos in time."""
        cells, rows = self._cells, self._cells.target_rows
        first = int(self.places[min(self._starts.values())])
        if place_of(cells.times, self.targets[0], start) >= first:
            raise ParameterError(f"a placebo in time needs a start before the first treatment, in {cells.times[first]}")
        early = replace(
            cells, times=cells.times[:first], target_rows={name: row[:first] for name, row in rows.items()},
            donor_rows=lambda: cells.donor_rows()[:, :first],
        )  # fmt: skip
        panel = Panel.__new__(Panel)
        panel._set_fields(early, start, self.bounds, self._ledger, self.missing, self.treated, self.name, self._named)
        panel._set(public_values=self.public_values)
        return panel

    def with_cells(self, cells: Cells) -> Panel:
        """Return the panel that reads its rows otherwise."""
        view = object.__new__(Panel)
        view._set(**{slot: getattr(self, slot) for slot in Panel.__slots__} | {"_cells": cells})
        return view

    @property
    def ledger(self) -> Ledger:
        """The ledger that pays for answers about the donors; as a table's, given only while the frame is unchanged."""
        self._cells.confirm()
        return self._ledger

    def start(self, target: Any) -> int:
        """Return T0, the number of periods before a target's treatment."""
        return self._starts[target]

    def series(self, target: Any) -> Reals:
        """Return a target's outcome, shape (T,), within the bounds.  Public."""
        return self._series[target]

    def donors(self) -> Reals:
        """Bring the donors' outcomes into memory, shape (n, T), within the bounds.  *Private.*

        For mechanisms and statistics, after the ledger allotted.
        """
        return np.ascontiguousarray(filled_rows(self._cells.donor_rows(), self.bounds, self.missing)[:, self.places])

    def __repr__(self) -> str:
        named = ", ".join(f"target {name} from {self.times[place]}" for name, place in self._starts.items())
        return f"Panel(n={self.n} donors, {len(self.times)} periods, {named})"


def _refuse_rows() -> Reals:
    raise SchemaError("this panel has no control units: it is what a ledger declared of one")


def _check_public(bounds: Bounded, ledger: Ledger, missing: str) -> None:
    if not isinstance(bounds, Bounded):
        raise ParameterError("bounds must be Bounded(lower, upper)")
    # Sums over a row must not overflow: a NaN has no weight in 0, …, Q.
    if max(-bounds.lower, bounds.upper) > 1e100 or bounds.width < 1e-100:
        raise ParameterError("bounds must lie within ±1e100 and at least 1e-100 apart: declare another unit")
    if not isinstance(ledger, Ledger):
        raise ParameterError(f"ledger must be a Ledger, got {type(ledger).__name__}")
    if not (isinstance(missing, str) and missing in MISSING):
        raise ParameterError(f"missing must be one of {', '.join(MISSING)}: a donor counts with its whole series")
