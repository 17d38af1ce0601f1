"""Noisy second moments of columns of numbers, each measured from a middle in units of a width."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.form import Form
from dpcausal.releases.release import Release

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NoisyMoments(Release):
    """A noisy covariance of columns measured as (x − middle) / width.

    ``variance`` is that of an off-diagonal entry's noise; a diagonal one's is twice that.  ``count`` is the noisy
    number of rows that lack none of the columns, at most n; ``None`` for n where a missing value counts as another.
    """

    kind: ClassVar[str] = "moments"

    middles: tuple[float, ...]
    widths: tuple[float, ...]
    covariance: Reals
    variance: float
    count: float | None = None

    @property
    def exact(self) -> bool:
        """Whether there is no noise."""
        return self.variance == 0

    @property
    def rows(self) -> float:
        """The number of rows that are told of."""
        return self.n if self.count is None else self.count

    def partial_correlation(self, x: int, y: int, given: tuple[int, ...]) -> tuple[float, float] | None:
        """Return the noisy partial correlation and its variance under independence; ``None`` if it is not defined.

        var = 1/(m − |S| − 3) + s² (|P_x|² |P_y|² + (P_x · P_y)²) / (P_xx P_yy)

        where P is the inverse of the noisy covariance of x, y and S, P_x its row, s² the noise variance, m the
        count.
        """
        members = [x, y, *given]
        matrix = self.covariance[np.ix_(members, members)]
        if self.rows - len(given) - 3 < 1:
            return None
        # Below, a variance may be noise alone; a matrix is too near singular for its noise, or for floats.
        least = max(2 * math.sqrt(self.variance), 1e-9 * float(np.trace(matrix)))
        if not given:
            if not min(matrix[0, 0], matrix[1, 1]) > least:
                return None
            correlation, noise = matrix[0, 1] / math.sqrt(matrix[0, 0] * matrix[1, 1]), self.variance
            noise /= float(matrix[0, 0] * matrix[1, 1])
        else:
            if not float(np.linalg.eigvalsh(matrix)[0]) > least:
                return None
            inverse = np.linalg.inv(matrix)
            a, b = inverse[0], inverse[1]
            correlation = -a[1] / math.sqrt(a[0] * b[1])
            noise = self.variance * float((a @ a) * (b @ b) + (a @ b) ** 2) / float(a[0] * b[1])
        return float(np.clip(correlation, -1 + 1e-12, 1 - 1e-12)), 1 / (self.rows - len(given) - 3) + noise

    def redrawn(self, generator: PublicGenerator) -> Self:
        p = len(self.names)
        noise = generator.normal(0, math.sqrt(self.variance), (p, p))
        upper = np.triu(noise, 1)
        fresh = upper + upper.T + np.diag(math.sqrt(2) * np.diagonal(noise))
        return replace(self, covariance=self.covariance + fresh, variance=2 * self.variance)

    def numbers(self) -> dict[str, Any]:
        return {
            "middles": list(self.middles), "widths": list(self.widths), "covariance": self.covariance.tolist(),
            "variance": self.variance, "count": self.count,
        }  # fmt: skip

    @classmethod
    def of_form(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        middles, widths, covariance = (form.array(name) for name in ("middles", "widths", "covariance"))
        if middles.shape != (len(names),):
            raise form.refuse("middles")
        if widths.shape != middles.shape or not (widths > 0).all():
            raise form.refuse("widths")
        if covariance.shape != 2 * middles.shape or (covariance != covariance.T).any():
            raise form.refuse("covariance")
        return cls(names, n, tuple(middles.tolist()), tuple(widths.tolist()), covariance, form.size("variance"),
                   form.size("count") if form.has("count") else None)  # fmt: skip
