"""Residuals of x and of y given several columns, inside a small block: kernel ridge, the kernel by its likelihood.

    R = (I − H)² U,  H = K (K + 0.6 α I)⁻¹,  K = Σ_t w_t F_t F_t'

The terms F_t are those of ``candidate_features.py``.  Their weights w_t maximise the marginal likelihood (MacKay 1992,
Neural Computation 4(3); Wood & Fasiolo 2017, Biometrics 73(4)), so that idle columns get weight 0.  First slopes and
wide curves are weighed, then at most ten further terms with the largest score statistics.  That is done without cuts,
with cuts of one column, and with cuts across a line of several; the largest marginal likelihood decides, with a
penalty for the search.

*x and y are weighed apart*: the mean of Σ r_x r_y under independence is then the product of two biases.  Only where
cuts lie is found for both together.  Nothing here is private: it belongs inside a block whose answer is bounded.  It is
total.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.regression.candidate_features import Columns, cut_terms, first_terms, lines_of, more_terms
from dpcausal.regression.smoother import NEGLIGIBLE, Given, Smoothed, standardised

MOST_ROWS = 20_000
"""Beyond it random features take less memory (``smoother.py``)."""
FIRST_ROUNDS, ROUNDS = 8, 12
"""Updates of the weights of the first terms, and of those and the chosen others."""
MOST_ADDED, LEAST_SCORE = 10, 2.0
"""Most further terms, and the least score statistic of one, in standard deviations."""
SURE_FIRST, SURE = 1.5, 1.2
"""Least sum of the scores of x and y of a cut, beside slopes and wide curves and beside all that was learnt, over the
logarithm of the number of places that are looked at: the best of noise alone has less in nineteen blocks of twenty
(blocks of 125 and 500 rows, two to five numbers)."""
LEAST_FREEDOM, SETTLING = 0.05, 2
"""Degrees of freedom below which a term is dropped, and updates before any is."""
ALPHAS = np.logspace(-3, 4, 36)
UNDERSMOOTHING = 0.6
SideFit = tuple[Reals, Reals]
"""Orthonormal directions, shape (n, r), and how much of each response (I − H)² leaves there, shape (r, q)."""


def likely_residuals(given: Given, sides: Sequence[Reals]) -> Smoothed:
    """Return the residuals of each side's responses, side by side, and the largest ρ of two from different sides.

    ρ = n tr(S² T²) / (tr S² tr T²), at least 1, with S and T the (I − H)² of the two: the variance of Σ r_x r_y over
    what permuting one of them shows.

    >>> z = np.linspace(-1, 1, 100)[:, None]
    >>> found = likely_residuals(Given(z, np.empty((100, 0), dtype=np.int64)), [z**2])
    >>> bool(found.residuals.std() < 0.05)
    True
    """
    columns = Columns.of(given)
    all_of_them = [standardised(responses) for responses in sides]
    first, together = first_terms(columns), np.hstack(all_of_them)
    begun = max_likelihood_kernel(columns, [Learnt.of(first, U) for U in all_of_them], together)
    begun = with_cuts(columns, begun, SURE) or begun
    learnt, left = list[SideFit](), list[Reals]()
    for one, U in zip(begun, all_of_them, strict=True):
        V, factors = one.side()
        learnt.append((V, factors))
        left.append(U - V @ ((1 - factors) * (V.T @ U)))
    R = np.hstack(left)
    R = np.where(np.isfinite(R), R, 0.0)
    R -= R.mean(axis=0)
    R[:, R.std(axis=0) < NEGLIGIBLE] = 0.0
    return Smoothed(R, max((spread_of(*pair, given.rows) for pair in combinations(learnt, 2)), default=1.0))


@dataclass(frozen=True, eq=False, repr=False)
class Learnt:
    """Terms of one side's responses, their weights and the variance of the noise."""

    U: Reals
    terms: list[Reals]
    weights: Reals
    noise: float

    @classmethod
    def of(cls, terms: list[Reals], U: Reals) -> Self:
        start = np.full(len(terms), 0.5 / max(len(terms), 1))
        return cls(U, terms, *_term_weights(terms, U, start, FIRST_ROUNDS))

    def scores(self, more: Sequence[Reals]) -> Reals:
        """Return for each further term how much more the likelihood grows with it than by chance, in deviations."""
        left, gains = self.leaving(), np.zeros(len(more))
        R = left(self.U) / self.noise
        for place, term in enumerate(more):
            among = term.T @ (left(term) / self.noise)
            chance, spread = float(np.trace(among)), float((among**2).sum())
            grown = float(((term.T @ R) ** 2).sum()) / self.U.shape[1]
            gains[place] = (grown - chance) / (2 * spread / self.U.shape[1] + 1e-12) ** 0.5
        return gains

    def with_terms(self, added: list[Reals]) -> Self:
        if not added:
            return self
        terms = [*self.terms, *added]
        least, new = 0.01 / len(terms), np.full(len(added), 0.2 / len(terms))
        start = np.append(np.where(self.weights > 0, np.maximum(self.weights, least), 0.0), new)
        return type(self)(self.U, terms, *_term_weights(terms, self.U, start, ROUNDS))

    def leaving(self) -> Callable[[Reals], Reals]:
        """Return the function that gives the residuals of columns of rows given the terms."""
        B = _joint_features(self.terms, self.weights, len(self.U))
        inner = np.linalg.inv(B.T @ B + self.noise * np.eye(B.shape[1]))
        return lambda rows: np.asarray(rows - B @ (inner @ (B.T @ rows)))

    def evidence(self) -> float:
        B = _joint_features(self.terms, self.weights, len(self.U))
        inner = B.T @ B + self.noise * np.eye(B.shape[1])
        explained = B.T @ self.U
        misfit = float((self.U**2).sum() - (explained * np.linalg.solve(inner, explained)).sum()) / self.noise
        spread = (len(B) - B.shape[1]) * math.log(self.noise) + float(np.linalg.slogdet(inner)[1])
        return float(-0.5 * (self.U.shape[1] * spread + misfit))

    def side(self) -> SideFit:
        return _side_fit(_joint_features(self.terms, self.weights, len(self.U)), self.U)


def max_likelihood_kernel(columns: Columns, slopes: list[Learnt], together: Reals) -> list[Learnt]:
    """Return the sides with further terms: without cuts, with cuts of one column, or with those of lines first. What
    has the largest evidence, less the logarithm of the number of places for each look for cuts: a cut that is found for
    what curves or products are agrees with the noise of both sides."""
    more = more_terms(columns, together)
    every = [*more, *cut_terms(columns, together)]
    scored = [(one, one.scores(every)) for one in slopes]
    sides = {
        looks: [one.with_terms(_likely_terms(every[:terms], scores[:terms])) for one, scores in scored]
        for looks, terms in enumerate((len(more), len(every)))
    }
    if first := with_cuts(columns, slopes, SURE_FIRST):
        sides[2] = [one.with_terms(_likely_terms(every, one.scores(every))) for one in first]
    each = places(columns, len(together))
    return sides[max(sides, key=lambda looks: sum(one.evidence() for one in sides[looks]) - looks * each)]


def with_cuts(columns: Columns, sides: list[Learnt], sure: float) -> list[Learnt]:
    """Return the sides with the cuts of which what they leave is sure, all together; none if there is none."""
    cuts = cut_terms(columns, np.hstack([one.leaving()(one.U) for one in sides]), along_pairs=True)
    scores = sum((one.scores(cuts) for one in sides), np.zeros(len(cuts)))
    taken = _likely_terms(cuts, scores, sure * places(columns, len(sides[0].U)))
    return [one.with_terms(taken) for one in sides if taken]


def places(columns: Columns, rows: int) -> float:
    return math.log(max(2, rows * lines_of(columns)))


def _likely_terms(terms: Sequence[Reals], scores: Reals, least: float = LEAST_SCORE) -> list[Reals]:
    order = np.argsort(-scores, kind="stable")[:MOST_ADDED]
    return [terms[place] for place in order if scores[place] > least]


def _joint_features(terms: Sequence[Reals], weights: Reals, n: int) -> Reals:
    weighted = [term * weight**0.5 for term, weight in zip(terms, weights, strict=True) if weight > 0]
    return np.hstack(weighted) if weighted else np.empty((n, 0))


def _term_weights(terms: Sequence[Reals], U: Reals, weights: Reals, rounds: int) -> tuple[Reals, float]:
    """Return the terms' weights and the variance of the noise, of all responses together, after so many updates. w_t ←
    |m_t|² / γ_t with m_t the mean of the term's coefficients and γ_t its effective degrees of freedom."""
    n, q = U.shape
    sizes = np.array([term.shape[1] for term in terms], dtype=np.int64)
    alive, weights, noise = sizes > 0, weights.copy(), 0.5
    features = np.hstack(terms) if terms else np.empty((n, 0))
    gram, moments, total = features.T @ features, features.T @ U, float((U**2).sum())
    for update in range(rounds):
        if not alive.any():
            return weights * alive, total / (n * q)
        rows = np.repeat(alive, sizes)
        root = np.sqrt(np.repeat(weights[alive], sizes[alive]))
        inner = root[:, None] * gram[np.ix_(rows, rows)] * root
        inverse = np.linalg.inv(inner + noise * np.eye(root.size))
        b = root[:, None] * moments[rows]
        m = inverse @ b
        starts = np.append(0, np.cumsum(sizes[alive])[:-1])
        freedom = np.maximum(np.add.reduceat(1 - noise * np.diag(inverse), starts), 1e-9)
        weights[alive] *= np.add.reduceat((m**2).sum(axis=1), starts) / q / freedom
        unexplained = (total - 2 * float((m * b).sum()) + float((m * (inner @ m)).sum())) / q
        noise = float(np.clip(unexplained / max(n - float(freedom.sum()), 1.0), 1e-4, 2.0))
        if update >= SETTLING:
            alive[np.flatnonzero(alive)[freedom < LEAST_FREEDOM]] = False
    return weights * alive, noise


def _side_fit(features: Reals, U: Reals) -> SideFit:
    n = len(U)
    values, vectors = np.linalg.eigh(features.T @ features)
    positive = values > 1e-9 * values[-1] if values.size else np.zeros(0, dtype=bool)
    values = values[positive]
    V = features @ (vectors[:, positive] / np.sqrt(values))
    squares = (V.T @ U) ** 2
    rest, total = n - values.size, values[:, None] + ALPHAS
    outside = np.maximum((U**2).sum(axis=0) - squares.sum(axis=0), 0.0)
    explained = np.maximum(squares.T @ (1 / total) + outside[:, None] / ALPHAS, 1e-300)
    misfits = n * np.log(explained) + np.log(total).sum(axis=0) + rest * np.log(ALPHAS)
    alphas = UNDERSMOOTHING * ALPHAS[np.argmin(misfits, axis=1)]
    return V, (alphas / (values[:, None] + alphas)) ** 2


def spread_of(one: SideFit, other: SideFit, n: int) -> float:
    """Return the largest ρ of a response of one side and one of the other; 1 if it is not finite."""
    (V, s), (W, t) = one, other
    taken, also = 1 - s**2, 1 - t**2
    both = n - taken.sum(axis=0)[:, None] - also.sum(axis=0) + taken.T @ (V.T @ W) ** 2 @ also
    with np.errstate(all="ignore"):
        ratios = n * both / np.outer(n - taken.sum(axis=0), n - also.sum(axis=0))
    largest = float(np.max(ratios, initial=1.0))
    return largest if np.isfinite(largest) else 1.0
