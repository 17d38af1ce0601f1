"""The sum of one bounded integer a block: what a block says is clipped, so one row moves one term."""

from __future__ import annotations

from collections.abc import Sequence

from dpcausal.errors import ParameterError
from dpcausal.mechanisms.subsample import blocks_moved
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity


def block_sum(terms: Sequence[int], reach: int, label: str, unit: Unit = Unit.ROW) -> Query:
    """Return Σ_j min(max(k_j, −reach), reach), hidden: sensitivity 2 · reach, twice that for persons of private ids.

    A term for each block of ``assign_blocks``, a function of that block's rows and of public values; a block whose
    computation fails says a fixed number, it is not left out.  Claim ``block-sum``: a replaced row keeps its block, and
    changes that block's term at most; a person with another id leaves one block and enters another.
    """
    if reach < 1:
        raise ParameterError(f"the reach of a block's term must be at least 1, got {reach}")
    total = sum(min(max(int(term), -reach), reach) for term in terms)
    bound = 2 * reach * blocks_moved(unit)
    return Query(total, Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "block-sum", unit), label)
