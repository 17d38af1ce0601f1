"""Residuals of several columns given several others, inside a small block: kernel ridge, the kernel by its likelihood.

    R = (I − H)² U,  H = K (K + .3 α I)⁻¹

where K is the one of some kernels with the largest marginal likelihood of all responses together, each at its own α:
of *slopes and smooth curves* in each column, as it is (z) and as normal scores (u), levels by equality, cells of all
levels too; the same with *narrow* curves; with *products* of two columns, squares, and curves that differ by cell; with
a *jump*, where a cut of one column splits the responses best; and, of several columns, *surfaces*, wide and narrow.
That (I − H) is applied twice, and with less than the likeliest α, halves what x and y may both have missed.

Nothing here is private: it belongs inside a block whose answer is bounded and paid for.  It is total.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpcausal.regression.smoother import NEGLIGIBLE, Given, Reals, Smoothed, standardised

MOST_ROWS = 1_000
"""Beyond it random features are faster (``smoother.py``)."""

TRIAL_ROWS = 250
"""Rows of the block on which the kernels are compared."""

SLOPE, WIDTHS = 10.0, (1.0, 0.25)
"""Weight of a slope beside a curve's 1; widths of the curves, in standard deviations."""

SURFACE, SURFACE_WIDTHS = 5.0, (1.0, 0.5)
"""Weight of a surface beside a slope's 10, and widths: a wave along several columns is learnt by none of the others."""

LEAST_SIDE = 5
"""Rows on either side of a jump."""

EIGHTHS, CUT_MOVES, MOST_CROSSED = np.arange(1, 8) / 8, 2, 30
"""Where a crossing's cuts are tried first, how often each is moved after that, and most columns for it."""

ALPHAS = np.logspace(-2, 4, 19)
UNDERSMOOTHING = 0.3


def likely_residuals(given: Given, responses: Reals) -> Smoothed:
    """Return the residuals of each response, and the largest ρ = n Σ s_x² s_y² / (Σ s_x² Σ s_y²) of two of them.

    s are the factors by which the residuals shrink along the kernel's eigenvectors: ρ is the variance of Σ r_x r_y over
    what permuting one of them shows.

    >>> z = np.linspace(-1, 1, 100)[:, None]
    >>> found = likely_residuals(Given(z, np.empty((100, 0), dtype=np.int64)), z**2)
    >>> bool(found.residuals.std() < 0.05)
    True
    """
    U, n = standardised(responses), given.rows
    trial = given.at(np.linspace(0, n - 1, min(n, TRIAL_ROWS)).astype(np.int64)) if n > TRIAL_ROWS else given
    V = U if trial is given else standardised(responses[np.linspace(0, n - 1, TRIAL_ROWS).astype(np.int64)])
    found = [_fit(kernel, V) for kernel in _kernels(trial, V)]
    best = int(np.argmin([misfit.sum() for *_, misfit in found]))
    if trial is not given:
        found = [_fit(next(kernel for place, kernel in enumerate(_kernels(given, U)) if place == best), U)]
        best = 0
    values, vectors, alphas, _ = found[best]
    shrunk = (UNDERSMOOTHING * alphas / (values[:, None] + UNDERSMOOTHING * alphas)) ** 2
    R = vectors @ (shrunk * (vectors.T @ U))
    R = np.where(np.isfinite(R), R, 0.0)
    R -= R.mean(axis=0)
    R[:, R.std(axis=0) < NEGLIGIBLE] = 0.0
    squares = shrunk**2
    spread = n * (squares.T @ squares) / np.outer(squares.sum(axis=0), squares.sum(axis=0))
    largest = float(np.max(spread, initial=1.0, where=~np.eye(len(spread), dtype=bool)))
    return Smoothed(R, largest if np.isfinite(largest) else 1.0)


def _kernels(given: Given, U: Reals) -> Iterator[Reals]:
    """Yield the kernels, one after the other; how many there are depends on the numbers of columns alone."""
    z = standardised(given.numbers)
    u = standardised(_scores(given.numbers))
    levels, together = np.zeros((given.rows, given.rows)), np.ones((given.rows, given.rows))
    for codes in given.levels.T:
        equal = np.equal.outer(codes, codes)
        levels += equal
        together *= equal
    flat = levels + together + SLOPE * (z @ z.T + u @ u.T)
    curves = [sum((_curve(column, width) for column in (*z.T, *u.T)), np.zeros_like(flat)) for width in WIDTHS]
    yield flat + curves[0]
    yield flat + curves[1]
    products = (z @ z.T) ** 2 + (u @ u.T) ** 2
    yield flat + curves[0] + products + (together * (z @ z.T + curves[0]) if given.levels.shape[1] else 0.0)
    if z.shape[1]:
        sides = standardised(_jumps(z, U))
        yield flat + curves[0] + SLOPE * (sides @ sides.T)
    if 1 < z.shape[1] <= MOST_CROSSED:
        side = standardised(_crossing(z, _beside(z, U)))
        yield flat + curves[0] + SLOPE * np.multiply.outer(side, side)
    if z.shape[1] > 1:
        apart = (z**2).sum(axis=1)
        squares = np.maximum(np.add.outer(apart, apart) - 2 * (z @ z.T), 0.0)
        for width in SURFACE_WIDTHS:
            yield flat + SURFACE * np.exp(-0.5 * squares / width**2)


def _beside(columns: Reals, U: Reals) -> Reals:
    """Return what slopes in the columns leave of the responses."""
    slopes, _ = np.linalg.qr(np.column_stack([np.ones(len(U)), columns]))
    return standardised(U - slopes @ (slopes.T @ U))


def _cut(column: Reals, R: Reals) -> tuple[float, Reals]:
    """Return how well the best cut of a column splits the responses, and on which side of it, ±1, each row lies."""
    n = len(column)
    below = np.arange(1, n)
    order = np.argsort(column, kind="stable")
    before = np.cumsum(R[order], axis=0)
    gains = ((before[:-1] - before[-1:] * (below / n)[:, None]) ** 2).sum(axis=1) / (below * (n - below))
    gains[(np.diff(column[order]) <= 0) | (np.minimum(below, n - below) < LEAST_SIDE)] = 0.0
    place = int(np.argmax(gains)) if n > 1 else 0
    if n < 2 or gains[place] <= 0:
        return 0.0, np.zeros(n)
    return float(gains[place]), np.where(column > column[order[place]], 1.0, -1.0)


def _jumps(z: Reals, U: Reals) -> Reals:
    """Return the sides of the cut that, beside slopes, splits the responses best, and of the best beside that one."""
    first = max((_cut(column, _beside(z, U)) for column in z.T), key=_gain)[1]
    rest = _beside(np.column_stack([z, first]), U)
    return np.column_stack([first, max((_cut(column, rest) for column in z.T), key=_gain)[1]])


def _crossing(z: Reals, R: Reals) -> Reals:
    """Return the product of the sides of two columns' cuts that goes best with the responses.

    The best of all cuts at eighths, then each of the two is moved to where it is best beside the other.
    """
    sides = np.hstack([np.where(column[:, None] > np.quantile(column, EIGHTHS), 1.0, -1.0) for column in z.T])
    gains = sum(((sides * column[:, None]).T @ sides) ** 2 for column in R.T)
    columns = np.repeat(np.arange(z.shape[1]), EIGHTHS.size)
    best = int(np.argmax(np.where(np.equal.outer(columns, columns), 0.0, gains)))
    one, other = best // columns.size, best % columns.size
    left, right = sides[:, one], sides[:, other]
    for _ in range(CUT_MOVES):
        _, left = _cut(z[:, columns[one]], R * right[:, None])
        _, right = _cut(z[:, columns[other]], R * left[:, None])
    return np.asarray(left * right)


def _gain(cut: tuple[float, Reals]) -> float:
    return cut[0]


def _curve(column: Reals, width: float) -> Reals:
    return np.asarray(np.exp(-0.5 * (np.subtract.outer(column, column) / width) ** 2))


def _scores(numbers: Reals) -> Reals:
    """Return normal scores of the columns, ties in the middle."""
    from scipy.special import ndtri

    found = np.empty_like(numbers)
    for place, column in enumerate(numbers.T):
        _, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
        middles = np.cumsum(counts) - counts / 2
        found[:, place] = ndtri(middles[codes] / len(column))
    return found


def _fit(kernel: Reals, U: Reals) -> tuple[Reals, Reals, Reals, Reals]:
    """Return eigenvalues, eigenvectors, each response's likeliest α, and −2 log likelihood there."""
    from scipy.linalg import eigh

    values, vectors = eigh(kernel, check_finite=False, driver="evd", overwrite_a=True)
    values = np.maximum(values, 0.0)
    squares = (vectors.T @ U) ** 2
    total = values[:, None] + ALPHAS
    explained = np.maximum(squares.T @ (1 / total), 1e-300)
    misfits = len(U) * np.log(explained) + np.log(total).sum(axis=0)
    best = np.argmin(misfits, axis=1)
    return values, vectors, ALPHAS[best], misfits[np.arange(len(best)), best]
