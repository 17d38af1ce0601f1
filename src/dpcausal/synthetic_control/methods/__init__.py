"""Short names of the methods of synthetic control, and the rule of ``"auto"``."""

import math

from dpcausal.core import validate as public
from dpcausal.data.panels.panel import Panel
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, largest_rho
from dpcausal.synthetic_control.method import SyntheticMethod
from dpcausal.synthetic_control.methods.factor import Factor
from dpcausal.synthetic_control.methods.matched import Matched
from dpcausal.synthetic_control.methods.simplex import Simplex

__all__ = ["Factor", "Matched", "Simplex"]
METHODS: dict[str, type[SyntheticMethod]] = {"auto": Matched, "matched": Matched, "factor": Factor, "simplex": Simplex}
"""Every method by its short name."""
MANY_DONORS = 22
"""``auto`` takes the factor model from nμ/√T of this on, μ = √(2ρ): noise of T² entries has a norm of about √T."""


def choose_method(method: object, panel: Panel, loss: Loss) -> SyntheticMethod:
    if not (isinstance(method, str) and method == "auto"):
        chosen_method: SyntheticMethod = public.choose_method(method, SyntheticMethod, METHODS)
        return chosen_method
    if isinstance(loss, NoPrivacy):
        return Simplex()
    rho = largest_rho(loss.exact_epsilon, loss.exact_delta) if isinstance(loss, ApproxDP) else 0
    mu = math.sqrt(2 * float(loss.exact_rho if isinstance(loss, ZCDP) else rho))
    return Factor() if panel.n * mu / math.sqrt(len(panel.times)) >= MANY_DONORS else Matched()
