"""What answers are read off: released moments, the spread about one declared line, and a least-squares line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from dpcausal.codec import storable
from dpcausal.effects.moments.adaptive import Noise
from dpcausal.releases.saved import Form
from dpcausal.result import Guarantee

Reals = npt.NDArray[np.float64]


@storable("Step")
@dataclass(frozen=True, eq=False)
class Step:
    """By what slopes are off, the covariance that noise has in it, how far what was shortened could still move it."""

    by: Reals
    noise: Reals
    unsure: Reals


@storable("Sandwich")
@dataclass(frozen=True, eq=False)
class Sandwich:
    """Noisy Σ x x′ e² of one regression, x about the released middle, the constant last; σ of it about standard.

    ``step`` is of its slopes, the constant last; earlier versions released none.
    """

    outcome: str
    regressors: tuple[str, ...]
    sums: Reals
    deviation: float
    step: Step | None = None

    def over(self, regressors: tuple[str, ...]) -> tuple[Reals, Step | None]:
        """Return sums and step in the order of the regressors."""
        order = [*(self.regressors.index(name) for name in regressors), len(regressors)]
        both, step = np.ix_(order, order), self.step
        return self.sums[both], step and Step(step.by[order], step.noise[both], step.unsure[order])

    def payload(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        step = None if self.step is None else {name: one.tolist() for name, one in vars(self.step).items()}
        return {"outcome": self.outcome, "regressors": list(self.regressors), "sums": self.sums.tolist(),
                "deviation": self.deviation, "step": step}  # fmt: skip

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...]) -> Sandwich:
        """Return it from JSON's types."""
        outcome, regressors = form.word("outcome", names), form.words("regressors", different=True)
        size = len(regressors) + 1

        def array(part: Form, name: str, shape: tuple[int, ...]) -> Reals:
            values: Reals = part.array(name)
            if values.shape != shape or not set(regressors) <= set(names) - {outcome}:
                raise part.refuse(name)
            return values

        step = None
        if form.has("step"):
            part = form.part("step")
            step = Step(array(part, "by", (size,)), array(part, "noise", (size, size)), array(part, "unsure", (size,)))
        return cls(outcome, regressors, array(form, "sums", (size, size)), form.size("deviation"), step)


class ReleasedMoments(Protocol):
    """The numbers of ``JointMoments``, and what follows from them."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def n(self) -> int: ...
    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def middles(self) -> Reals: ...
    @property
    def halves(self) -> Reals: ...
    @property
    def centre(self) -> Reals: ...
    @property
    def spread(self) -> Reals: ...
    @property
    def sums(self) -> Reals: ...
    @property
    def radius(self) -> float: ...
    @property
    def deviation(self) -> float: ...
    @property
    def shortened(self) -> float: ...
    @property
    def towards(self) -> Reals: ...
    @property
    def sandwich(self) -> Sandwich | None: ...
    @property
    def levels(self) -> tuple[tuple[str, str, str], ...]: ...
    @property
    def noise(self) -> Noise: ...
    @property
    def count(self) -> float: ...
    @property
    def signal_to_noise(self) -> float: ...
    def among(self, names: Sequence[str]) -> Self: ...
    def counted(self, name: str) -> tuple[str, str] | None: ...
    def mean(self, place: int) -> float: ...
    def residual(self, outcome: str, regressors: Sequence[str]) -> float: ...
    def noise_of(self, vector: Reals) -> Reals: ...


@dataclass(frozen=True)
class Line:
    """Slopes about the released middle, the constant last; moments of outcome, regressors and constant."""

    slopes: Reals
    moments: Reals
    lift: Reals
    inverse: Reals
    residual: float


def line(release: ReleasedMoments, outcome: str, regressors: tuple[str, ...]) -> Line:
    """Return the least-squares line of noisy moments."""
    places = [release.names.index(name) for name in (outcome, *regressors)]
    # About the released middle, in the columns' units: slopes do not depend on it.
    lift = np.zeros((len(places) + 1, len(release.names) + 1))
    lift[:-1, :-1] = (release.halves[:, None] * release.spread)[places]
    lift[-1, -1] = 1.0
    moments = lift @ release.sums @ lift.T
    inverse = np.asarray(np.linalg.pinv(moments[1:, 1:]), dtype=np.float64)
    slopes = inverse @ moments[1:, 0]
    contrast = np.concatenate([[1.0], -slopes])
    residual = max(float(contrast @ moments @ contrast), 0.0) / max(release.count - len(slopes), 1.0)
    return Line(slopes, moments, lift, inverse, residual)
