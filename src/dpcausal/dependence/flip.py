"""The signed flip distance: who wins, and how many records away from losing, as one integer.

    z ∈ {…, −2, −1, 0, 1, …}: the first wins if and only if z ≥ 0.

One replaced record moves z by at most 1, so one draw of integer noise on z releases winner and confidence
together.  Proofs: ``flip.md``.
"""

from __future__ import annotations

from dpcausal.errors import ParameterError
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.sensitivity import Norm, Sensitivity


def signed(first_wins: bool, distance: int) -> int:
    """Return z = d − 1 if the first wins, z = −d if the second does.

    where d ≥ 1 is the flip distance: at neighbours with the same winner it differs by at most 1, and it is 1 at
    both of two neighbours with different winners.

    Notes
    -----
    *Guarantee*: one replaced record moves z by at most 1 (``flip.md``, signed-flip-distance), if d is such.

    Examples
    --------
    >>> [signed(True, 2), signed(True, 1), signed(False, 1), signed(False, 2)]
    [1, 0, -1, -2]
    """
    return distance - 1 if first_wins else -distance


def signed_margin(first: int, second: int, bound: int) -> int:
    """Return the signed flip distance of two integer scores, the smaller of which wins: z = ⌊(s₂ − s₁)/(2Δ)⌋.

    where:

    * s₁ is ``first`` and s₂ is ``second``; equal scores are a win of the first;
    * Δ is ``bound``, the integer by which one replaced record moves each score at most.

    The distance to the other winner is d = ⌊(s₂ − s₁)/(2Δ)⌋ + 1 if the first wins, ⌈(s₁ − s₂)/(2Δ)⌉ if not.

    Notes
    -----
    *Guarantee*: one replaced record moves z by at most 1 (``flip.md``, rank-flip-distance).

    Examples
    --------
    >>> [signed_margin(0, margin, 4) for margin in (-9, -8, -1, 0, 7, 8)]
    [-2, -1, -1, 0, 0, 1]
    """
    if bound < 1:
        raise ParameterError(f"the bound of an integer score must be at least 1, got {bound}")
    # Python integers: in floats (s₂ − s₁)/(2Δ) can round across an integer, and neighbours then differ by 2.
    return (int(second) - int(first)) // (2 * int(bound))


def flip_sensitivity(proof: str = "signed-flip-distance", unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity 1 of a signed flip distance.

    Parameters
    ----------
    proof : str
        The claim that the distance rests on: ``"rank-flip-distance"`` or ``"iqr-flip-distance"``.
    unit : Unit
        Whose record changes.

    Examples
    --------
    >>> flip_sensitivity("rank-flip-distance").bound
    1
    """
    return Sensitivity(1, Norm.ABSOLUTE, Relation.REPLACE_ONE, proof, unit)
