"""Disjoint blocks of rows: what each block says is bounded, so one row moves one bounded term."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity


def assign_blocks(rows: int, blocks: int, generator: PublicGenerator) -> list[npt.NDArray[np.int64]]:
    """Return the row positions of each block: a public random partition into parts of nearly equal size.

    It depends on the public number of rows and on public coins, never on a value.
    """
    if not 1 <= blocks <= rows:
        raise ParameterError(f"blocks must be between 1 and the {rows} rows, got {blocks}")
    order = generator.permutation(rows).astype(np.int64)
    # Sorted inside a block: the block's fit then does not depend on the order in which its rows were drawn.
    return [np.sort(part) for part in np.array_split(order, blocks)]


def vote_count(votes: Sequence[bool], label: str, unit: Unit = Unit.ROW) -> Query:
    """Return the number of blocks that vote yes, hidden, with sensitivity 1; a vote for each block.

    A block whose fit fails votes by a rule or a coin that is public, it does not abstain.  Claim ``block-votes``: a
    replaced row keeps its block, and changes that block's vote at most.
    """
    count = sum(1 for vote in votes if vote)
    return Query(count, Sensitivity(1, Norm.L1, Relation.REPLACE_ONE, "block-votes", unit), label)
