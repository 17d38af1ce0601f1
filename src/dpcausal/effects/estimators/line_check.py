"""Whether the lines of ``aipw`` fit: coarse sums of both residuals with fresh noise, and the bias that is left.

The estimate is right if either line is.  Where both bend, the mean score is off by a product of two errors, which no
width of the interval makes up for: so there is no interval where both are rejected, unless what is left is small.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpcausal.effects.estimators.aipw_scores import Design, Nuisances
from dpcausal.effects.estimators.boosted_fit import Fit, pairs_of
from dpcausal.effects.estimators.boosted_models import Models, PairFunction
from dpcausal.effects.estimators.fit_check import Checked
from dpcausal.effects.moments.adaptive import shrinkage

FEATURES, SUMS, FUNCTIONS = Fraction(1, 9), Fraction(5, 9), Fraction(3, 9)
"""Shares of the check's ρ: histograms of numbers, sums of residuals by their bins, and along pairs."""
BINS, MOST_PAIRS = 8, 200
MISFIT, CLEAR_BIAS, SMALL_BIAS = 0.05, 2.0, 0.25
"""Both lines are rejected at such a level, or the bias is so many of its errors; it is small where it is, with as many
errors more, at most such a share of half the interval."""

BENT = (
    "neither the line of the outcome nor that of treatment fits, and the bias that this leaves may not be small beside "
    "the interval: method 'boosted-aipw' has models that bend"
)
UNCHECKED = "with so few rows at this loss no check shows whether the lines fit: curved causes bias the estimate unseen"


def checkable(design: Design) -> bool:
    """Return whether lines may miss something: a number, or two columns together."""
    return any(code is None for code in design.codes[2:]) or bool(_pairs(design))


def check_claims(design: Design) -> tuple[str, ...]:
    """Return the names of the proofs of what the check releases."""
    numbers = ("histograms", "residual-sums") if any(code is None for code in design.codes[2:]) else ()
    return (*numbers, "pair-functions") if _pairs(design) else numbers


def check_lines(fit: Fit, lines: Nuisances) -> Checked:
    """Release sums of both residuals by eight bins of each number, and along each pair, and return what they show."""
    moments = fit.moments
    outcome, *others = moments.names
    left = shrinkage(len(moments.names), moments.radius) if moments.deviation > 0 else 1.0
    own, whole = (math.sqrt(max(moments.residual(outcome, names) / left, (1e-6 * float(moments.halves[0])) ** 2))
                  for names in (others, []))  # fmt: skip
    models = Models(
        lines.outcome[1:], lines.treatment, float(lines.outcome[0]), own, moments.mean(0), whole,
        fit.features(BINS, FEATURES),
    )  # fmt: skip
    functions = tuple(PairFunction(pair, "ss") for pair in _pairs(fit.design))
    models = replace(models, functions=functions, weights=np.zeros((2, len(functions))))
    numbers = [(place,) for place, code in enumerate(fit.design.codes[2:]) if code is None]
    return fit.check(models, numbers, (SUMS, FUNCTIONS), uneven=True)


def bends(found: Checked, half_width: float) -> bool:
    """Return whether both lines are off by more than an interval of such a half-width bears."""
    check = found.check
    misfit = max(check.treatment_pvalue, check.outcome_pvalue) < MISFIT
    clear = abs(check.correction) > CLEAR_BIAS * check.error
    most = abs(check.correction) + CLEAR_BIAS * check.error
    return (misfit or clear) and most > SMALL_BIAS * half_width


def _pairs(design: Design) -> list[tuple[int, int]]:
    pairs = pairs_of(design)
    return pairs if len(pairs) <= MOST_PAIRS else []
