"""The question of an effect: of what on what, for whom, with what adjusted for; and what answers have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpcausal.arrays import Integers
from dpcausal.core import validate as public
from dpcausal.core.method import Method, PlannedCall, TableQuestion
from dpcausal.data.recoded import as_levels, counting_event, without_missing_level
from dpcausal.data.schema import Bounded
from dpcausal.data.subgroups.predicate import check_varies, codes_left
from dpcausal.data.table import Table
from dpcausal.effects.cells.corner_counts import NoisyCells, Value, arms_of, level_text, levels_of, value_of
from dpcausal.effects.result import CLEAR_MISSING, Effect
from dpcausal.effects.values_at_bounds import narrow_bounds_text
from dpcausal.errors import Advice, ParameterError, Setting
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Unit
from dpcausal.releases.release import Release

LEAST_ROWS = 20
CLUSTERED = (
    "assumes independent clusters of {!r}: about as many as the result says, and as the treatment differs among them"
)
COMPLETE = Advice(
    "records with a missing value count in n and are left out of the estimate: where outcomes are missing more often "
    "in some strata, it is for the complete records; ",
    Setting("method", "stratified", {"population": "observed"}, "dpc.methods.Stratified"),
    " estimates it for all records with treatment and confounders",
)  # fmt: skip
LEAST_COUNTED, MOSTLY_COUNTED = 0.05, 0.95
FEW_COUNT = (
    "hardly any record counts: most have a missing value of the call, or hold levels, weights or numbers that are "
    "not as declared; 'dpcausal check' shows the curator which, before anything is paid"
)
NEAR_BOUND, AT_BOUND = 0.01, (
    "the means of {!r} are within 1 % of a bound: is its unit another one, or are the bounds far too wide? "
    "'dpcausal check' shows the curator"
)
BEFORE = "causal if all confounders of treatment and outcome are adjusted for, and nothing that the treatment changes"


@dataclass(frozen=True)
class EffectQuestion(TableQuestion[Effect]):
    task: ClassVar[str] = "effect"
    left_out: ClassVar[str] = COMPLETE
    treatment: str
    outcome: str
    adjust: tuple[str, ...]
    groups: str | None
    estimand: str
    treated: object
    control: object
    coverage: float

    @classmethod
    def of(
        cls, table: Any, treatment: Any, outcome: Any, adjust: Any, groups: Any, estimand: Any, treated: Any,
        control: Any, coverage: Any, event: Any = None, cluster: Any = None,
    ) -> EffectQuestion:  # fmt: skip
        public.check_table(table, persons=True, weights=True)
        adjusted = public.names("adjust", adjust)
        named = (treatment, outcome, *adjusted, *(() if groups is None or groups in adjusted else (groups,)))
        for name in named:
            public.column(table, name, "an effect")
        if len(set(named)) < len(named):
            raise ParameterError("treatment, outcome, adjust and groups must be different columns")
        if table.n < LEAST_ROWS:
            raise ParameterError(f"an effect needs at least {LEAST_ROWS} rows, the table has {table.n}")
        table = without_missing_level(table, treatment, treated, control)
        table = counting_event(without_missing_level(table, outcome, event), outcome, event)
        if cluster is not None:
            table = table.clustered_by(cluster)
            check_clustered(cluster, (treatment, outcome), estimand, groups)
        value_of(outcome, table.schema.column(outcome))
        check_varies(table.inside, outcome, table.schema.column(outcome))
        if all(level is None or level_text(level, ("0", "1")) for level in (treated, control)):
            table = as_levels(table, treatment)
        treated, control = _check_arms(table, treatment, treated, control)
        public.check_choice("estimand", estimand, ("ate", "att"))
        within = public.number("coverage", coverage, 0.5, 0.999)
        return cls(table, treatment, outcome, adjusted, groups, estimand, treated, control, within)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of ``NoisyCells.effect``."""
        names = ("treatment", "outcome", "adjust", "groups", "estimand", "treated", "control", "coverage")
        return {name: getattr(self, name) for name in names}

    @property
    def value(self) -> Value:
        """The outcome's range, and how its sums are released."""
        return value_of(self.outcome, self.column(self.outcome))

    @property
    def event(self) -> str | None:
        """The level of the outcome whose frequency is its mean; ``None`` of a number."""
        column = self.column(self.outcome)
        return None if isinstance(column, Bounded) else str(column.labels[1])

    @property
    def cluster(self) -> str | None:
        """The column that names clusters, of which the interval is."""
        return self.table.spec.cluster

    @property
    def outcomes(self) -> tuple[str, ...]:
        return (self.outcome,)

    @property
    def strata(self) -> tuple[str, ...]:
        grouped = () if self.groups is None else (self.groups,)
        return (*grouped, *(name for name in self.adjust if name not in grouped))

    @property
    def pair(self) -> tuple[int, int]:
        levels = levels_of(self.column(self.treatment))
        return arms_of(levels, self.treatment, self.treated, self.control)

    @property
    def arms(self) -> tuple[str, str]:
        levels = levels_of(self.column(self.treatment))
        control, treated = self.pair
        return levels[control], levels[treated]

    @property
    def cells(self) -> int:
        return math.prod(len(levels_of(self.column(name))) for name in (self.treatment, *self.strata))

    def effect(self, **released: Any) -> Effect:
        """Return what a method released as an effect; ``report`` adds method and guarantee."""
        control, treated = self.arms
        about: dict[str, Any] = {
            "treatment": self.treatment, "outcome": self.outcome, "treated": treated, "control": control,
            "estimand": self.estimand, "adjusted_for": self.strata, "coverage": self.coverage, "n": self.n,
        }  # fmt: skip
        return Effect(**(about | released))

    def detail(self) -> dict[str, Any]:
        return {
            "treatment": self.treatment, "outcome": self.outcome, "adjust": list(self.adjust), "groups": self.groups,
            "estimand": self.estimand, **({"event": self.event} if self.event else {}), **self.table.declared,
        }  # fmt: skip

    def report(self, planned: PlannedCall[Any], released: Effect, allotment: CallBudget, seed: int | None) -> Effect:
        adjusted = (BEFORE,) if self.adjust else ()
        independent = independence_caveat(self.unit, True) if self.cluster is None else CLUSTERED.format(self.cluster)
        caveats = (*planned.caveats, *adjusted, independent)
        guarantee = self.guarantee(planned, allotment, caveats)
        release = None if released.release is None else released.release.under(guarantee)
        effect = replace(
            released, method=planned.method.name, settings=planned.method.options(), guarantee=guarantee,
            release=release, event=self.event, share_counted=self._share_counted(release),
            population=released.population if self.drops_missing else "imputed",
        )  # fmt: skip
        few = effect.share_counted is not None and effect.share_counted < LEAST_COUNTED
        own = FEW_COUNT if few else effect.missing_text, AT_BOUND.format(self.outcome) if self._at_bound(effect) else ""
        narrow = "" if own[1] else self._narrow_bounds_text(effect)
        notes = (*effect.notes, *self.selection_caveats, *filter(None, own))
        return replace(effect, notes=notes, bounds_note=narrow)

    def _at_bound(self, effect: Effect) -> bool:
        column, means = self.column(self.outcome), (effect.mean_treated, effect.mean_control)
        if not isinstance(column, Bounded) or None in means:
            return False
        places = [(mean - column.lower) / column.width for mean in means if mean is not None]
        return max(places) < NEAR_BOUND or min(places) > 1 - NEAR_BOUND

    def _narrow_bounds_text(self, effect: Effect) -> str:
        column, release = self.column(self.outcome), effect.release
        if not isinstance(column, Bounded) or not isinstance(release, NoisyCells):
            return ""
        sums = release.outcome_sums(self.outcome)
        return "" if sums is None else narrow_bounds_text(self.outcome, column, sums)

    def _share_counted(self, release: Release | None) -> float | None:
        partly = self.table.weighed or self.table.inside or not self.drops_missing
        if partly or release is None or release.records_counted is None:
            return None
        share = min(max(release.records_counted / self.n, 0.0), 1.0)
        is_clear = self.n * (1 - share) > CLEAR_MISSING * release.count_deviation
        return share if is_clear or share >= MOSTLY_COUNTED else None


def check_clustered(cluster: Any, others: tuple[str, ...], estimand: str = "ate", groups: str | None = None) -> None:
    if cluster in others:
        text = "cluster must be another column than treatment and outcome"
        raise ParameterError(text, argument="cluster", rule="same")
    if groups is not None or estimand == "att":
        raise ParameterError(
            "the interval by clusters is of everybody's mean effect: leave out groups, with estimand 'ate'",
            argument="cluster", rule="everybody",
        )  # fmt: skip


def _check_arms(table: Table, treatment: str, treated: Any, control: Any) -> list[object]:
    """Return the levels as they are declared, however they were written; None means one that was not given."""
    column = table.schema.column(treatment)
    levels, left = levels_of(column), codes_left(table.inside, treatment, column)
    empty = [levels[code] for code in arms_of(levels, treatment, treated, control) if code not in left]
    if empty:
        raise ParameterError(
            f"the subgroup leaves nobody with {treatment!r} = {' or '.join(empty)}: there is nothing to compare; "
            "choose the rows by another column"
        )
    labels: Any = levels if isinstance(column, Bounded) else column.labels
    texts = [None if level is None else level_text(level, levels) for level in (treated, control)]
    return [None if text is None else labels[levels.index(text)] for text in texts]


def independence_caveat(unit: Unit, clusters: bool = False) -> Advice:
    hint = ("name them by ", Setting("cluster"), ", or ") if clusters else ()
    return Advice(
        f"assumes independent {'rows' if unit is Unit.ROW else 'persons'}: where treatment or outcomes are clustered "
        "(clinics, households), the interval may be too narrow; ", *hint, "set ", Setting("person"), " to the cluster",
    )  # fmt: skip


class SimulatedDesign(NamedTuple):
    """Who is in which arm and stratum of simulated records, and the method for so many."""

    method: Any
    levels: int
    """Of the treatment."""
    arms: Integers
    strata: Integers


@dataclass(frozen=True, kw_only=True)
class EffectMethod(Method[EffectQuestion]):
    """One way to release an effect, from sums in which nobody's place counts."""

    supports_no_privacy: ClassVar[bool] = True
    supports_missing: ClassVar[bool] = True
    allows_private_ids: ClassVar[bool] = True
    is_trial: ClassVar[bool] = False
    """Whether its options say who is in which arm."""
    supports_clusters: ClassVar[bool] = False
    """Whether it has an interval by clusters."""
    assumptions: ClassVar[tuple[tuple[str, Any], ...]] = ()
    """Options with the value that states what no data of such a size can show, and that an interval may need."""

    def charge(self, loss: Loss, question: EffectQuestion) -> tuple[Any, str]:
        if question.cluster is not None and not self.supports_clusters:
            raise ParameterError(
                f"method {self.name!r} has no interval by clusters", argument="method", rule="clusters",
                hint=("use ", Setting("method", "auto"), ", or set ", Setting("person"), " to the cluster"),
            )  # fmt: skip
        return super().charge(loss, question)

    def simulated_design(self, n: int, strata: int, share: float, rng: PublicGenerator) -> SimulatedDesign:
        """Return n simulated records as this method supposes them to be assigned: a share of them by a coin."""
        arms = (rng.random(n) < share).astype(np.int64)
        return SimulatedDesign(self, 2, arms, rng.integers(0, strata, n) if strata > 1 else np.zeros(n, dtype=np.int64))
