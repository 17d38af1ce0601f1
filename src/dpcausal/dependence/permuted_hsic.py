"""How far one record moves the root of HSIC of permuted columns: its x and its y then stand in two pairs."""

from __future__ import annotations

from fractions import Fraction

from dpcausal.dependence.hsic import root_hsic_sensitivity
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.sensitivity import Norm, Sensitivity

_ROOT_SIX_BELOW = Fraction(24494897427, 10**10)


def permuted_root_hsic_sensitivity(m: int, *, unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity of ``root_hsic(x, y[π])`` for a fixed permutation π: 4 (m − 1)/m², and rounding.

    *Source*: ``permuted_hsic.md``; Kim & Schrab (2023), Lemma 5, the same constant.
    """
    own = Fraction(root_hsic_sensitivity(m).bound)
    # The same rounding part; √6 is taken off rounded down.
    bound = own + (4 - _ROOT_SIX_BELOW) * Fraction(m - 1, m**2)
    return Sensitivity(bound, Norm.ABSOLUTE, Relation.REPLACE_ONE, "permuted-root-hsic", unit)
