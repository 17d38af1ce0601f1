"""PrivGCM: the generalised covariance measure with Laplace noise on every product of residuals.

Kalemaj, Kasiviswanathan & Ramdas (2024), Algorithm 1, with kernel ridge regression as in its section 3.
Erratum: none against privacy; its constant is larger than what is proved here
(``docs/appendix/errata-independence.md``).
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.independence.methods.crt_decision import features, planned_ridge, unit_column
from dpcausal.independence.question import IndependenceQuestion, IndependenceTest, Released, Sample
from dpcausal.mechanisms.additive import laplace
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Query
from dpcausal.regression.residual_products import Chunks, fit_weights, fitted_residuals, products_sensitivity

PENALTY = 10.0
"""λ, as in the paper's experiments."""


def published_products_bound(penalty: float) -> float:
    """Return C = 4 (1 + √2/√λ)(1 + √2/√λ + 4√2/λ^{3/2} + 4/λ) of Lemma 3.4: larger than what is proved, hence valid."""
    root = 1 + math.sqrt(2 / penalty)
    return float(4 * root * (root + 4 * math.sqrt(2) / penalty**1.5 + 4 / penalty))


def responses(rows: Sample, question: IndependenceQuestion) -> Reals:
    x = unit_column(rows.pair[0], question.schema, question.x[0])
    both = np.column_stack([x, unit_column(rows.y[:, 0], question.schema, question.y[0])])
    both[~rows.is_complete] = 0.0
    return both


def products(chunks: Chunks, U: Reals, penalty: float) -> Reals:
    left = fitted_residuals(chunks, U, fit_weights(chunks, U, penalty))
    return np.asarray(left[:, 0] * left[:, 1])


@dataclass(frozen=True, kw_only=True)
class PrivGcm(IndependenceTest):
    """Products of residuals with noise on each.

    Parameters
    ----------
    constants : str
        ``"published"``: noise for the paper's Lemma 3.4; ``"corrected"`` for the smaller bound that is proved here.
    penalty : float, optional
        λ of the ridge, for x and y in [−1, 1]; by default 10.
    width : float, optional
        The kernel's, in units of half the public range of a column.
    """

    name: ClassVar[str] = "PrivGCM"
    about: ClassVar[str] = "products of residuals with noise on each"
    proofs: ClassVar[tuple[str, ...]] = ("residual-products", "residual-rounding", "laplace")

    constants: Literal["published", "corrected"] = "published"
    penalty: float | None = None
    width: float | None = None

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        public.check_choice("constants", self.constants, ("published", "corrected"))
        penalty, width = planned_ridge(self.name, question, self.penalty, self.width, PENALTY)
        return replace(self, penalty=penalty, width=width)

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        question = run.question
        from scipy.special import ndtr

        penalty = self.penalty or PENALTY
        R = products(features(run.data, question, self.width, run.rng), responses(run.data, question), penalty)
        claim = products_sensitivity(question.n, penalty)
        if self.constants == "published":
            claim = replace(claim, bound=max(float(claim.bound), published_products_bound(penalty)))
        noisy = laplace(Query(R, claim, "products of residuals"), run.budget, run.loss)
        spread = float(noisy.std())
        statistic = math.sqrt(question.n) * float(noisy.mean()) / spread if spread > 0 else 0.0
        return Released(statistic, float(2 * ndtr(-abs(statistic))))
