"""Which method runs and in which currency it is paid: from public sizes and the budget only."""

from __future__ import annotations

import math
from fractions import Fraction

from dpcausal.data.panel import Panel
from dpcausal.errors import LossError, ParameterError
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, PureDP, affordable_zcdp, largest_rho

METHODS = (
    "auto", "matched", "factor", "output-perturbation", "objective-perturbation", "simplex", "ridge", "robust"
)  # fmt: skip
EXACT = ("simplex", "ridge", "robust")

MANY_DONORS = 25
"""``auto`` takes the factor model from nμ/T of this on, μ = √(2ρ): its covariance has T² noisy entries."""

Base = PureDP | ZCDP | NoPrivacy
"""What the releases of a call share."""


def part(base: Base, share: Fraction) -> Base:
    """Return a share of a loss, exactly."""
    if isinstance(base, PureDP):
        return PureDP(base.exact_epsilon * share)
    return ZCDP(base.exact_rho * share) if isinstance(base, ZCDP) else base


def method_of(panel: Panel, loss: Loss, method: str, calibration: str, periods: int) -> str:
    """Return the method; ``auto`` looks at n, T, the covariates' number and the budget only."""
    if calibration == "published" and method not in ("output-perturbation", "objective-perturbation"):
        raise ParameterError("calibration='published' goes with output-perturbation and objective-perturbation")
    if method in EXACT and not isinstance(loss, NoPrivacy):
        raise LossError(f"method {method!r} has no private release: it takes NoPrivacy() and a ledger without privacy")
    if method == "auto":
        if isinstance(loss, NoPrivacy):
            return "simplex"
        if isinstance(loss, PureDP) or panel.covariates or (isinstance(loss, ApproxDP) and not _rho(loss)):
            return "matched"
        mu = math.sqrt(2 * float(_rho(loss)))
        return "factor" if panel.n * mu / periods >= MANY_DONORS else "matched"
    if panel.covariates and method not in ("matched", *EXACT):
        raise ParameterError(f"the method {method} takes no covariates: use method='matched'")
    return method


def _rho(loss: ApproxDP | ZCDP) -> Fraction:
    return loss.exact_rho if isinstance(loss, ZCDP) else largest_rho(loss.exact_epsilon, loss.exact_delta)


def currency_of(method: str, calibration: str, loss: Loss, after: int) -> tuple[Loss, Base, str]:
    """Return what is spent, in which currency the releases count, and a note."""
    if isinstance(loss, NoPrivacy):
        if calibration == "published":
            raise LossError("the published variants are their noise: they take no NoPrivacy")
        return loss, loss, ""
    if method == "objective-perturbation":
        if calibration == "corrected" and not (isinstance(loss, ApproxDP) and loss.exact_delta > 0):
            raise LossError("objective perturbation is paid for in ApproxDP with delta above 0")
        if isinstance(loss, ZCDP):
            raise LossError("objective perturbation is paid for in PureDP or ApproxDP")
        return loss, PureDP(loss.exact_epsilon), ""
    if calibration == "published":
        spent, note = pure_part(loss, "the published output perturbation")
        return spent, spent, note
    if method == "factor":
        if isinstance(loss, PureDP):
            raise LossError("the factor model is paid for in ZCDP or ApproxDP with delta above 0; matched takes PureDP")
        return loss, affordable_zcdp(loss), ""
    if isinstance(loss, ApproxDP):
        rho = _rho(loss)
        # Noise on each of m + 1 numbers: √(m + 2)·Δ/ε from the ball, Δ/√(2ρ) from the Gaussian.
        if method == "output-perturbation" and rho:
            return loss, ZCDP(rho), ""
        if rho and 2 * rho * (after + 2) > loss.exact_epsilon**2:
            return loss, ZCDP(rho), ""
        spent, note = pure_part(loss, "here the pure noise is the smaller, which")
        return spent, spent, note
    return loss, loss, ""
