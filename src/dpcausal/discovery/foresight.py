"""What public numbers foretell before anything is spent: whether the noise can be drawn, what could show in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from dpcausal.data.coding import cuts_of
from dpcausal.data.schema import Bounded
from dpcausal.data.table import Table
from dpcausal.dependence.conditional_kendall import conditional_kendall_steps_sensitivity
from dpcausal.dependence.contingency import contingency_sensitivity, histograms_sensitivity
from dpcausal.dependence.contrasts import contrasts_sensitivity
from dpcausal.dependence.second_moments import grid_bits, second_moments_sensitivity
from dpcausal.discovery.contrasts import shares_of
from dpcausal.discovery.moments import HISTOGRAM_SHARE, default_radius
from dpcausal.discovery.search import Settings
from dpcausal.discovery.sieve import default_rounds
from dpcausal.discovery.tables import geometric_variance
from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.additive import gaussian_scale, laplace_scale
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm

STRONG = 0.5
"""Cramér's V, or a correlation, that counts as a strong edge."""

MOST_NAMED = 10


def pair_noise(
    method: str, sizes: Sequence[int], n: int, spent: Loss, gaussian: ZCDP | NoPrivacy | None, settings: Settings
) -> float | None:
    """Return the variance of the noise that a test of two columns meets, from public numbers.

    Of a cell for ``"table"``, of a contrast for ``"parities"`` (all pairs together), of a correlation for
    ``"moments"``; 0 without privacy, ``None`` for a method that releases decisions only.

    Raises
    ------
    LossError
        The loss is so small that some noise of the method could not be drawn: said before it is spent.
    """
    try:
        return _pair_noise(method, sizes, n, spent, gaussian, settings)
    except FenceError:
        raise LossError(f"{spent} is too little for method {method!r} here: its noise could not be drawn") from None


def _pair_noise(
    method: str, sizes: Sequence[int], n: int, spent: Loss, gaussian: ZCDP | NoPrivacy | None, settings: Settings
) -> float | None:
    d, order = len(sizes), settings.max_order
    steps = conditional_kendall_steps_sensitivity(all(size <= 2 for size in sizes)).bound
    if isinstance(spent, NoPrivacy):
        return 0.0 if method in ("table", "parities", "moments") else None
    if method == "table" and isinstance(spent, PureDP):
        return geometric_variance(laplace_scale(contingency_sensitivity().bound, spent))
    if isinstance(gaussian, ZCDP):
        if method == "table":
            return gaussian_scale(contingency_sensitivity(Norm.L2).bound, gaussian) ** 2
        if method == "moments":
            radius = default_radius(d)
            bits = grid_bits(n, radius)
            gaussian_scale(histograms_sensitivity(d).bound, _part(gaussian, 1, HISTOGRAM_SHARE))
            rest = _part(gaussian, HISTOGRAM_SHARE - 1, HISTOGRAM_SHARE)
            scale = gaussian_scale(second_moments_sensitivity(radius, bits, d + 1).bound, rest)
            return (scale * 4.0**-bits / n) ** 2 / 2
        if method == "gaussian-pc":
            for number, share in enumerate(shares_of(order)):
                most = d * (d - 1) * max(math.comb(d - 2, number), 1)
                gaussian_scale(float(steps) * math.sqrt(most) * 1.01, _part(gaussian, *share))
            return None
        batch = [
            chosen for size in (1, 2) for chosen in combinations(range(d), size)
            if min(sizes[i] for i in chosen) > 1
        ]  # fmt: skip
        if not batch:
            return 0.0
        return gaussian_scale(contrasts_sensitivity(sizes, batch, n).bound, _part(gaussian, *shares_of(order)[0])) ** 2
    if isinstance(spent, PureDP) and method in ("priv-pc", "svt-pc"):
        laplace_scale(4 * steps * 1.01, spent.part(Fraction(1, 2 * default_rounds(d))))
    if isinstance(spent, PureDP) and method == "em-pc":
        laplace_scale(2 * steps * 1.01, spent.part(Fraction(1, 2 * d * (order + 1) * max(d - 1, 1))))
    return None


def _part(loss: ZCDP, part: int, whole: int) -> ZCDP:
    return ZCDP(loss.exact_rho * part / whole)


def too_small(method: str, sizes: Sequence[int], n: int, noise: float, alpha: float) -> str:
    """Return a caveat if even a strong edge between some columns would sooner be missed than found; empty if not.

    λ = n² φ² / (n + v k_x k_y),  φ² = V² (min(k_x, k_y) − 1)

    where λ is the non-centrality of the noise-aware test of a pair at even margins, (k_x − 1)(k_y − 1) its degrees of
    freedom, V = ½ Cramér's coefficient, v the variance of the noise in a cell of the pair's table.  For moments
    λ = atanh(½)² / (1/(n − 3) + v).  A test of no power either at ``alpha``: the tests of larger sets have less.
    """
    from scipy.special import chdtri, chndtr

    kinds = Counter(tuple(sorted(pair)) for pair in combinations(sizes, 2) if min(pair) > 1 or method == "moments")
    missed = 0
    for (a, b), pairs in kinds.items():
        if method == "moments":
            freedom, strength = 1, math.atanh(STRONG) ** 2 / (1 / max(n - 3, 1) + noise)
        else:
            cell = noise * (math.prod(sizes) / (a * b) if method == "table" else 1.0)
            freedom = (a - 1) * (b - 1)
            strength = n**2 * STRONG**2 * (min(a, b) - 1) / (n + cell * a * b)
        bar = float(chdtri(freedom, alpha))
        # Far above the bar the series of the non-central law need not be summed.
        if strength < 4 * (bar + 10) and float(chndtr(bar, freedom, strength)) > 0.5:
            missed += pairs
    if not missed:
        return ""
    return (
        f"{n} rows at this loss are too few: even a strong edge (coefficient {STRONG:g}) would sooner be missed than "
        f"found between {missed} of {kinds.total()} pairs of columns; an edge not shown says nothing there"
    )


def cut_note(table: Table, names: Sequence[str]) -> str:
    """Return in words into how many parts bounded columns are cut; empty without any."""
    parts = [
        f"{name!r} into {len(cuts_of(one)) + 1}" for name in names
        if isinstance(one := table.schema.column(name), Bounded)
    ]  # fmt: skip
    if not parts:
        return ""
    more = f" and {len(parts) - MOST_NAMED} more" if len(parts) > MOST_NAMED else ""
    listed = ", ".join(parts[:MOST_NAMED])
    return f"bounded columns were cut into parts at public points: {listed}{more}; what varies within a part is lost"
