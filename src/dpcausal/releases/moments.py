"""Noisy second moments of columns of numbers, each measured from a middle in units of a width."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dpcausal.arrays import Mask, Reals
from dpcausal.codec import storable
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.release import Release
from dpcausal.releases.saved import Form
from dpcausal.statistics.moments import UntruncatedMoments, untouched, untruncated_moments


@storable("NoisyMoments")
@dataclass(frozen=True, eq=False)
class NoisyMoments(Release):
    """A noisy covariance of columns measured as (x − middle) / width; 0 for a column that does not vary, as far as its
    histograms show: none of its edges is tested.  ``variance`` is that of an off-diagonal entry's noise; a diagonal
    one's is twice that.  ``count`` is the noisy number of rows with no missing value, at most n;
    ``None`` for n where a missing value counts as another. ``squared``: the squared length that rows were shortened to,
    which tests and scores undo as if rows were normal; ``None`` for rows that were not."""

    kind: ClassVar[str] = "moments"

    middles: tuple[float, ...]
    widths: tuple[float, ...]
    covariance: Reals
    variance: float
    count: float | None = None
    squared: float | None = None

    @property
    def is_exact(self) -> bool:
        return self.variance == 0

    def graph_notes(self) -> str:
        if self.squared is None:
            return ""
        return (
            "Tests undo the winsorising of rows as if columns were normal: of independent log-normal ones up to 0.05 "
            "were joined at nominal 0.01; take logarithms of skewed columns."
        )

    @property
    def varies(self) -> Mask:
        return np.asarray(np.diagonal(self.covariance) != 0)

    @property
    def rows(self) -> float:
        return self.n if self.count is None else self.count

    @cached_property
    def whole(self) -> UntruncatedMoments:
        """The covariance as of rows that were not shortened."""
        return (
            untouched(self.covariance) if self.squared is None else untruncated_moments(self.covariance, self.squared)
        )

    def partial_correlation(self, x: int, y: int, given: tuple[int, ...]) -> tuple[float, float] | None:
        """Return the noisy partial correlation and its variance under independence; ``None`` if it is not defined. var
        = max(1/(m − |S| − 3), sampling of shortened normal rows) + s² (|P_x|² |P_y|² + (P_x · P_y)²) / (P_xx P_yy)
        where P is the inverse of the noisy covariance of x, y and S, P_x its row, s² the noise variance, m the count;
        the last term is for rows that were not shortened, else it is that of ``whole``."""
        members = [x, y, *given]
        inside = np.ix_(members, members)
        matrix = self.whole.covariance[inside]
        if self.rows - len(given) - 3 < 1 or not self.varies[members].all():
            return None
        # Below, a variance may be noise alone; a matrix is too near singular for its noise, or for floats.
        least = max(2 * math.sqrt(self.variance), 1e-9 * float(np.trace(matrix)))
        if not (float(np.linalg.eigvalsh(matrix)[0]) if given else min(matrix[0, 0], matrix[1, 1])) > least:
            return None
        a, b = np.zeros(len(self.names)), np.zeros(len(self.names))
        if given:
            inverse = np.linalg.inv(matrix)
            root = math.sqrt(inverse[0, 0] * inverse[1, 1])
            correlation = -inverse[0, 1] / root
            a[members], b[members] = inverse[0] / root, inverse[1]
        else:
            root = math.sqrt(matrix[0, 0] * matrix[1, 1])
            correlation = matrix[0, 1] / root
            a[x], b[y] = 1 / root, 1.0
        noise, sampling = self.whole.variances(a, b)
        variance = max(1 / (self.rows - len(given) - 3), sampling / self.rows) + self.variance * noise
        return float(np.clip(correlation, -1 + 1e-12, 1 - 1e-12)), variance

    def with_extra_noise(self, generator: PublicGenerator) -> Self:
        p = len(self.names)
        noise = generator.normal(0, math.sqrt(self.variance), (p, p))
        upper = np.triu(noise, 1)
        fresh = (upper + upper.T + np.diag(math.sqrt(2) * np.diagonal(noise))) * np.outer(self.varies, self.varies)
        return replace(self, covariance=self.covariance + fresh, variance=2 * self.variance)

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        middles, widths, covariance = (form.array(name) for name in ("middles", "widths", "covariance"))
        if middles.shape != (len(names),):
            raise form.refuse("middles")
        if widths.shape != middles.shape or not (widths > 0).all():
            raise form.refuse("widths")
        if covariance.shape != 2 * middles.shape or (covariance != covariance.T).any():
            raise form.refuse("covariance")
        return cls(names, n, tuple(middles.tolist()), tuple(widths.tolist()), covariance, form.size("variance"),
                   form.size("count") if form.has("count") else None,
                   form.size("squared") if form.has("squared") else None)  # fmt: skip
