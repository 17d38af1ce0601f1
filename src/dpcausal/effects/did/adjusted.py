"""Noisy sums of doubly robust scores by cohort, and the differences in differences read off them.

    ATT(g, t) = E[e_gt | cohort g] − E[q e_gt | controls] / E[q | controls]

e is the change from the last period before treatment less its line in the covariates, which is fitted to the controls;
q weighs the controls so that their covariates have the cohort's mean.  Right if either is: Sant'Anna & Zhao (2020).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.codec import storable
from dpcausal.core import validate as public
from dpcausal.effects.did.contrasts import Pair, controls_of
from dpcausal.effects.did.release import MOST_LOST, SURE, NoisyPaths, lost_of_normal, staggered
from dpcausal.effects.did.result import GroupTimeEffects
from dpcausal.errors import ParameterError
from dpcausal.releases.saved import Form

REJECTED = 0.05
NOT_PARALLEL = (
    "no intervals: the pre-trend test rejects parallel trends given the covariates; add what trends depend "
    "on to adjust, or see the robust trends"
)


class Layout(NamedTuple):
    """Which cohort in which period is compared with which others, and the columns of a person's row: public.

    A row has a column for each of ``pairs``, then one for each of ``sets``, a cohort and those it is compared with.
    """

    pairs: tuple[Pair, ...]
    sets: tuple[tuple[int, tuple[int, ...]], ...]
    set_of: tuple[int, ...]
    """Of each pair the place of its set."""

    @classmethod
    def of(cls, starts: Sequence[int], periods: int, compared: Sequence[int], control: str) -> Layout:
        effects = dict[Pair, tuple[int, tuple[int, ...]]]()
        for g in (g for g in compared if starts[g] > 0):
            for t in (t for t in range(periods) if t != starts[g] - 1):
                if those := controls_of(starts, compared, control == "never", (g, t)):
                    effects[g, t] = g, tuple(those)
        sets = tuple(dict.fromkeys(effects.values()))
        return cls(tuple(effects), sets, tuple(sets.index(one) for one in effects.values()))

    @property
    def columns(self) -> int:
        return len(self.pairs) + len(self.sets)

    @property
    def served(self) -> int:
        """The most sets that one cohort is among the controls of."""
        return max(Counter(c for _, those in self.sets for c in those).values(), default=1)

    def pairs_of(self, place: int) -> list[int]:
        return [column for column, one in enumerate(self.set_of) if one == place]

    def own(self, cohort: int) -> list[int]:
        return [column for column, (g, _) in enumerate(self.pairs) if g == cohort]


@storable("AdjustedPaths")
@dataclass(frozen=True, eq=False)
class AdjustedPaths(NoisyPaths):
    """Noisy counts, sums and squares by cohort of rows z, whose scores are width · (middle + spread z).

    Attributes
    ----------
    control : str
        Whom cohorts are compared with, as the call said.
    compared : tuple of int
        The places of the cohorts that had enough persons.
    left : float array
        Of each pair of a cohort and a period, in units of the width, the error that the noise of lines leaves.
    chance : float array
        Likewise the error that chance in lines leaves.
    """

    kind: ClassVar[str] = "adjusted-paths"

    compared: tuple[int, ...] = ()
    left: Reals = field(default_factory=lambda: np.zeros(0))
    chance: Reals = field(default_factory=lambda: np.zeros(0))

    def did(self, *, control: str | None = None, coverage: float = 0.95) -> GroupTimeEffects:
        """Return as ``NoisyPaths.did`` does; the scores are those of the call's own control."""
        if control not in (None, self.control):
            text = f"scores with covariates are for the control {self.control!r}: another one is another call"
            raise ParameterError(text, argument="control", rule="released", value=control)
        answer = staggered(self, self.control, public.number("coverage", coverage, 0.5, 0.999))
        rejected = answer.pretrend is not None and answer.pretrend < REJECTED
        return answer.without_intervals(NOT_PARALLEL) if rejected else answer

    @property
    def adjusted_for(self) -> tuple[str, ...]:
        return self.names[3:]

    @property
    def enough(self) -> list[int]:
        return list(self.compared)

    @property
    def layout(self) -> Layout:
        return Layout.of(self.starts, len(self.times), self.compared, self.control)

    @property
    def shortened(self) -> bool:
        n = max(float(self.counts.sum()), 1.0)
        parts = [(self.counts[c], self.squares[c]) for c in self.compared]
        normal = sum(count * lost_of_normal(squares / count, self.radius) for count, squares in parts)
        return bool(self.lost - normal > max(MOST_LOST * math.sqrt(n), SURE * self.lost_noise))

    def effects(self, counts: Any, sums: Any, controls: dict[Pair, list[int]]) -> dict[Pair, Any]:
        layout, effects = self.layout, dict[Pair, Any]()
        means = self.middle + (sums / counts[:, None]) @ self.spread.T
        totals, most = counts[:, None] * means, math.sqrt(layout.served)
        for column, (pair, place) in enumerate(zip(layout.pairs, layout.set_of, strict=True)):
            if pair in controls:
                those = list(layout.sets[place][1])
                weight = counts[those].sum() + most * totals[those, len(layout.pairs) + place].sum()
                effects[pair] = self.width * (means[pair[0], column] - most * totals[those, column].sum() / weight)
        return effects

    def more_errors(self, controls: dict[Pair, list[int]]) -> tuple[Reals, Reals]:
        of_pairs = dict(zip(self.layout.pairs, np.transpose([self.left, self.chance]), strict=True))
        left, chance = np.reshape([of_pairs[pair] for pair in controls], (-1, 2)).T
        return self.width * left, self.width * chance

    @classmethod
    def _own_fields(
        cls, form: Form, names: tuple[str, ...], periods: int, starts: tuple[int, ...]
    ) -> tuple[int, dict[str, Any]]:
        compared = tuple(int(one) for one in np.atleast_1d(form.array("compared", integral=True)))
        control = form.text("control", ("never", "not-yet"))
        if len(names) < 4 or not {*compared} <= {*range(len(starts))}:
            raise form.refuse("starts")
        layout = Layout.of(starts, periods, compared, control)
        errors = form.arrays(dict.fromkeys(("left", "chance"), (len(layout.pairs),)))
        return layout.columns, {"control": control, "compared": compared, **errors}
