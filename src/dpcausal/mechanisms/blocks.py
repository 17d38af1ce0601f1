"""Disjoint blocks of rows: what each block says is bounded, so one row moves one bounded term."""

from collections.abc import Sequence

import numpy as np

from dpcausal.arrays import Integers
from dpcausal.errors import ParameterError
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.privacy.unpicklable import scrambled


def assign_blocks(rows: int, blocks: int, generator: PublicGenerator, keys: Integers | None = None) -> list[Integers]:
    """Return the row positions of each block: a public random partition into parts of nearly equal size. It depends on
    the public number of rows and on public random numbers, never on a value.  With keys, hashes of ids that are
    private, each row goes by its own key and a public salt alone: parts are of about equal size, and which size is
    private."""
    if not 1 <= blocks <= rows:
        raise ParameterError(f"blocks must be between 1 and the {rows} rows, got {blocks}")
    if keys is not None:
        block_of_row = (scrambled(keys, salt_of(generator)) % np.uint64(blocks)).astype(np.int64)
        ends = np.cumsum(np.bincount(block_of_row, minlength=blocks))
        return np.split(np.argsort(block_of_row, kind="stable"), ends[:-1])
    order = generator.permutation(rows).astype(np.int64)
    # Sorted inside a block: the block's fit then does not depend on the order in which its rows were drawn.
    return [np.sort(part) for part in np.array_split(order, blocks)]


def salt_of(generator: PublicGenerator) -> int:
    return int(generator.integers(2**63))


def block_order(rows: int, generator: PublicGenerator, keys: Integers | None = None) -> Integers:
    """Return each row's rank in a public random order; with keys, whether one comes before another is theirs alone."""
    if keys is None:
        return generator.permutation(rows).astype(np.int64)
    order = np.argsort(scrambled(keys, salt_of(generator)), kind="stable")
    ranks = np.empty(rows, dtype=np.int64)
    ranks[order] = np.arange(rows)
    return ranks


def equal_blocks(
    rows: int, blocks: int, size: int, generator: PublicGenerator, keys: Integers | None = None
) -> list[Integers]:
    """Return the row positions of disjoint blocks of one size, at public random; rows that fill no block are left out.
    With keys blocks are those of ``assign_blocks``, each cut to the first of its own: of at most that size."""
    if not (blocks >= 1 and size >= 1 and blocks * size <= rows):
        raise ParameterError(f"{blocks} blocks of {size} rows need as many rows, there are {rows}")
    if keys is not None:
        return [part[:size] for part in assign_blocks(rows, blocks, generator, keys)]
    order = generator.permutation(rows)[: blocks * size].astype(np.int64)
    return list(np.sort(order.reshape(blocks, size), axis=1))


def blocks_moved(unit: Unit) -> int:
    """Return how many blocks one unit moves: two where a person is assigned by an id that may be replaced."""
    return 2 if unit is Unit.PERSON else 1


def vote_count(votes: Sequence[bool], label: str, unit: Unit = Unit.ROW) -> Query:
    """Return the number of blocks that vote yes, hidden, with sensitivity 1; 2 for persons of private ids. A block
    whose fit fails votes by a rule or a coin that is public, it does not abstain.  Claim ``block-votes``: a replaced
    row keeps its block, and changes that block's vote at most; a person with another id leaves one block and enters
    another."""
    count = sum(1 for vote in votes if vote)
    return Query(count, Sensitivity(blocks_moved(unit), Norm.L1, Relation.REPLACE_ONE, "block-votes", unit), label)


def bit_counts(bits: Sequence[Sequence[bool]], label: str, unit: Unit = Unit.ROW) -> Query:
    """Return how many blocks cast each of several bits, hidden, with sensitivity 1 in the maximum norm; 2 as for votes.

    *Guarantee*: claim ``block-bits``: a replaced row changes the bits of its own block at most; a person with another
    id those of two.
    """
    counts = np.asarray(bits, dtype=np.int64).sum(axis=0)
    return Query(counts, Sensitivity(blocks_moved(unit), Norm.LINF, Relation.REPLACE_ONE, "block-bits", unit), label)


def block_sum(terms: Sequence[int], reach: int, label: str, unit: Unit = Unit.ROW) -> Query:
    """Return Σ_j min(max(k_j, −reach), reach), hidden: sensitivity 2 · reach, twice that for persons of private ids. A
    term for each block of ``assign_blocks``, a function of that block's rows and of public values; a block whose
    computation fails says a fixed number, it is not left out.  Claim ``block-sum``: a replaced row keeps its block, and
    changes that block's term at most; a person with another id leaves one block and enters another."""
    if reach < 1:
        raise ParameterError(f"the reach of a block's term must be at least 1, got {reach}")
    total = sum(min(max(int(term), -reach), reach) for term in terms)
    bound = 2 * reach * blocks_moved(unit)
    return Query(total, Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "block-sum", unit), label)


INSIDE = 0.68
"""Share of the blocks that a window should hold: it then reaches a standard deviation to either side."""


def block_window(
    answers: Sequence[int | None], centres: Integers, halves: Integers, label: str, unit: Unit = Unit.ROW
) -> Query:
    """Return the score of each window, hidden: −max(|2·below + silent − M|, |2·inside − 2·0.68·M|). ``below`` counts
    the answers left of the centre, ``silent`` the blocks without one (``None``), ``inside`` the answers at most a half
    away from the centre; windows are public.  Sensitivity 2 in the maximum norm, twice that for persons of private ids:
    claim ``block-window``."""
    if len(centres) == 0 or centres.shape != halves.shape:
        raise ParameterError("windows need as many centres as halves, at least one")
    blocks = len(answers)
    ordered = np.sort(np.array([one for one in answers if one is not None], dtype=np.int64))
    below = 2 * np.searchsorted(ordered, centres, "left") + blocks - len(ordered)
    inside = np.searchsorted(ordered, centres + halves, "right") - np.searchsorted(ordered, centres - halves, "left")
    scores = -np.maximum(np.abs(below - blocks), np.abs(2 * inside - round(2 * INSIDE * blocks)))
    bound = Sensitivity(2 * blocks_moved(unit), Norm.LINF, Relation.REPLACE_ONE, "block-window", unit)
    return Query(scores.astype(np.int64), bound, label)
