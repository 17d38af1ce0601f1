"""The signed flip distance: who wins, and how many records away from losing, as one integer.

    z ∈ {…, −2, −1, 0, 1, …}: the first wins if and only if z ≥ 0.

One replaced record moves z by at most 1, so one draw of integer noise on z releases winner and confidence
together.  Proofs: ``flip.md``.
"""

from __future__ import annotations

from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit


def signed(first_wins: bool, distance: int) -> int:
    """Return z = d − 1 if the first wins, z = −d if the second does, d ≥ 1 the flip distance.

    At neighbours with the same winner d differs by at most 1; it is 1 at both of two with different winners.
    """
    return distance - 1 if first_wins else -distance


def signed_margin(first: int, second: int, bound: int) -> int:
    """Return the signed flip distance of two integer scores, the smaller of which wins: z = ⌊(s₂ − s₁)/(2Δ)⌋.

    Equal scores are a win of the first; Δ is ``bound``, by which one replaced record moves each score at most.  The
    distance to the other winner is d = ⌊(s₂ − s₁)/(2Δ)⌋ + 1 if the first wins, ⌈(s₁ − s₂)/(2Δ)⌉ if not.
    """
    if bound < 1:
        raise ParameterError(f"the bound of an integer score must be at least 1, got {bound}")
    # Python integers: in floats (s₂ − s₁)/(2Δ) can round across an integer, and neighbours then differ by 2.
    return (int(second) - int(first)) // (2 * int(bound))


def flip_sensitivity(proof: str = "signed-flip-distance", unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity 1 of a signed flip distance; ``proof`` is the claim that the distance relies on."""
    return Sensitivity(1, Norm.ABSOLUTE, Relation.REPLACE_ONE, proof, unit)
