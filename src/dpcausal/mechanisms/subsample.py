"""Disjoint blocks of rows: what each block says is bounded, so one row moves one bounded term."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.privacy.hashing import mixed
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity


def assign_blocks(
    rows: int, blocks: int, generator: PublicGenerator, keys: npt.NDArray[np.int64] | None = None
) -> list[npt.NDArray[np.int64]]:
    """Return the row positions of each block: a public random partition into parts of nearly equal size.

    It depends on the public number of rows and on public coins, never on a value.  With keys, hashes of ids that are
    private, each row goes by its own key and a public salt alone: parts are of about equal size, and which size is
    private.
    """
    if not 1 <= blocks <= rows:
        raise ParameterError(f"blocks must be between 1 and the {rows} rows, got {blocks}")
    if keys is not None:
        dealt = (mixed(keys, salt_of(generator)) % np.uint64(blocks)).astype(np.int64)
        ends = np.cumsum(np.bincount(dealt, minlength=blocks))
        return np.split(np.argsort(dealt, kind="stable"), ends[:-1])
    order = generator.permutation(rows).astype(np.int64)
    # Sorted inside a block: the block's fit then does not depend on the order in which its rows were drawn.
    return [np.sort(part) for part in np.array_split(order, blocks)]


def salt_of(generator: PublicGenerator) -> int:
    """Return the public salt by which keys are dealt."""
    return int(generator.integers(2**63))


def dealt_order(
    rows: int, generator: PublicGenerator, keys: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.int64]:
    """Return each row's rank in a public random order; with keys, whether one comes before another is theirs alone."""
    if keys is None:
        return generator.permutation(rows).astype(np.int64)
    dealt = np.argsort(mixed(keys, salt_of(generator)), kind="stable")
    ranks = np.empty(rows, dtype=np.int64)
    ranks[dealt] = np.arange(rows)
    return ranks


def equal_blocks(
    rows: int, blocks: int, size: int, generator: PublicGenerator, keys: npt.NDArray[np.int64] | None = None
) -> list[npt.NDArray[np.int64]]:
    """Return the row positions of disjoint blocks of one size, by public coins; rows that fill no block are left out.

    With keys blocks are those of ``assign_blocks``, each cut to the first of its own: of at most that size.
    """
    if not (blocks >= 1 and size >= 1 and blocks * size <= rows):
        raise ParameterError(f"{blocks} blocks of {size} rows need as many rows, there are {rows}")
    if keys is not None:
        return [part[:size] for part in assign_blocks(rows, blocks, generator, keys)]
    order = generator.permutation(rows)[: blocks * size].astype(np.int64)
    return list(np.sort(order.reshape(blocks, size), axis=1))


def blocks_moved(unit: Unit) -> int:
    """Return how many blocks one unit moves: two where a person is dealt by an id that may be replaced."""
    return 2 if unit is Unit.PERSON else 1


def vote_count(votes: Sequence[bool], label: str, unit: Unit = Unit.ROW) -> Query:
    """Return the number of blocks that vote yes, hidden, with sensitivity 1; 2 for persons of private ids.

    A block whose fit fails votes by a rule or a coin that is public, it does not abstain.  Claim ``block-votes``: a
    replaced row keeps its block, and changes that block's vote at most; a person with another id leaves one block and
    enters another.
    """
    count = sum(1 for vote in votes if vote)
    return Query(count, Sensitivity(blocks_moved(unit), Norm.L1, Relation.REPLACE_ONE, "block-votes", unit), label)


def bit_counts(bits: Sequence[Sequence[bool]], label: str, unit: Unit = Unit.ROW) -> Query:
    """Return how many blocks cast each of several bits, hidden, with sensitivity 1 in the maximum norm; 2 as for votes.

    *Guarantee*: claim ``block-bits``: a replaced row changes the bits of its own block at most; a person with another
    id those of two.
    """
    counts = np.asarray(bits, dtype=np.int64).sum(axis=0)
    return Query(counts, Sensitivity(blocks_moved(unit), Norm.LINF, Relation.REPLACE_ONE, "block-bits", unit), label)
