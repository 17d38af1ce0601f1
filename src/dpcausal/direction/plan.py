"""What a direction will cost and how it will run: fixed from public arguments before anything is spent or read.

All that can fail for public reasons fails here, so that no budget goes for an answer that cannot come.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpcausal.data.schema import Bounded
from dpcausal.data.table import Table
from dpcausal.dependence.hsic import MOST_RECORDS
from dpcausal.direction import blocks as by_blocks
from dpcausal.direction import holdout, published
from dpcausal.direction.anm import SCORES, Interval, half_sizes
from dpcausal.errors import LossError, ParameterError, SchemaError
from dpcausal.privacy.call import check_consent, check_large, pure_part
from dpcausal.privacy.loss import ApproxDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Unit

LEAST_ROWS = 8
"""Fewest rows of a direction, or of a block: each half then has at least 2, and ranks and quartiles are defined."""

TRAINING_SHARE = 0.5
"""Default share of the rows that the regressions are fitted on, with ``protect="test"`` and without privacy."""

LARGEST_BOUND, LEAST_WIDTH = 1e100, 1e-100
"""Bounds beyond these have squares or products that no float holds."""

LEAST_EPSILON, LEAST_DELTA = Fraction(1, 10**9), Fraction(1, 10**18)
"""The ledger's units; noise for less would pass the largest scale that is drawn."""


@dataclass(frozen=True)
class Plan:
    """A call after its public arguments were checked: all that decides its cost and its control flow."""

    first: str
    second: str
    range_first: Interval
    range_second: Interval
    score: str
    protect: str
    method: str
    calibration: str
    release_scores: bool
    blocks: int | None
    training_share: float
    spent: Loss
    note: str
    unproven: bool

    @property
    def unit(self) -> Unit:
        """Whose row the loss speaks of."""
        return Unit.ROW if self.protect == "everyone" else Unit.TEST_ROW

    @property
    def proofs(self) -> tuple[str, ...]:
        """The claims that the release rests on."""
        if isinstance(self.spent, NoPrivacy):
            return ()
        if self.method == "blocks":
            return by_blocks.PROOFS
        if self.calibration == "published":
            return published.PROOFS[self.score]
        rule = holdout.RULES[self.score]
        return rule.score_proofs if self.release_scores else rule.proofs


def checked(
    table: Table, first: str, second: str, loss: Loss, score: str, protect: str, method: str, release_scores: bool,
    calibration: str, blocks: int | None, training_share: float | None, accept_unproven: bool,
    accept_large_epsilon: bool,
) -> Plan:  # fmt: skip
    """Check every public argument and return the plan; nothing is read or spent.  Arguments as in ``direction``."""
    if not isinstance(table, Table):
        raise ParameterError("table must be a dpcausal Table")
    range_first, range_second = _checked_column(table, first), _checked_column(table, second)
    if first == second:
        raise ParameterError("first and second must be two different columns")
    _one_of("score", score, tuple(SCORES))
    _one_of("protect", protect, ("everyone", "test"))
    _one_of("method", method, ("auto", "blocks"))
    _one_of("calibration", calibration, ("corrected", "published"))
    if not isinstance(release_scores, bool):
        raise ParameterError("release_scores must be True or False")
    if table.n < LEAST_ROWS:
        raise ParameterError(f"a direction needs at least {LEAST_ROWS} rows, the table has {table.n}")
    check_large(loss, accept_large_epsilon)
    is_exact = isinstance(loss, NoPrivacy)
    is_blocks = protect == "everyone" and not is_exact
    if protect == "test" and method == "blocks":
        raise ParameterError("method='blocks' protects everyone: use protect='everyone'")
    if is_blocks and (release_scores or calibration == "published"):
        raise ParameterError("release_scores and calibration='published' go with protect='test'")
    if protect == "test" and score == "variance" and not is_exact:
        raise ParameterError("the variance score has no bounded sensitivity: use blocks, another score or NoPrivacy")
    if blocks is not None and not is_blocks:
        raise ParameterError("blocks goes with protect='everyone'")
    if training_share is not None and is_blocks:
        raise ParameterError("training_share goes with protect='test' or NoPrivacy: blocks leave one row out")
    unproven = calibration == "published" and score == "iqr" and not is_exact
    if unproven:
        check_consent(accept_unproven, "the interquartile algorithm")
        if not (isinstance(loss, ApproxDP) and loss.exact_delta > 0):
            raise LossError("propose-test-release is paid for in ApproxDP with delta above 0")
        spent: Loss = loss
        note = "published algorithm without a valid proof"
    else:
        spent, note = pure_part(loss, "blocks" if is_blocks else "this release")
    _check_least(spent)
    chosen = _checked_blocks(blocks, table.n, spent) if isinstance(spent, PureDP) and is_blocks else None
    share = _checked_share(training_share)
    if score == "hsic":
        most = MOST_RECORDS["laplacian"]
        if (-(-table.n // chosen) if chosen else half_sizes(table.n, share)[1]) > most:
            raise ParameterError(f"the hsic score takes at most {most} rows in a block or a test half")
    return Plan(
        first=first,
        second=second,
        range_first=range_first,
        range_second=range_second,
        score=score,
        protect=protect,
        method="exact" if is_exact else "blocks" if is_blocks else "holdout",
        calibration=calibration,
        release_scores=release_scores or calibration == "published",
        blocks=chosen,
        training_share=share,
        spent=spent,
        note=note,
        unproven=unproven,
    )


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if not (isinstance(value, str) and value in allowed):
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}")


def _checked_column(table: Table, name: str) -> Interval:
    """Return a column's public range if a direction can be asked about it."""
    declared = table.schema.column(name)
    if not isinstance(declared, Bounded):
        raise SchemaError(f"column {name!r} has levels: a direction needs two columns declared Bounded")
    if max(-declared.lower, declared.upper) > LARGEST_BOUND or declared.width < LEAST_WIDTH:
        raise SchemaError(
            f"column {name!r}: a direction needs bounds within ±{LARGEST_BOUND:g} and at least {LEAST_WIDTH:g} apart; "
            "declare it in another unit"
        )
    return declared.lower, declared.upper


def _check_least(spent: Loss) -> None:
    if isinstance(spent, (PureDP, ApproxDP)) and spent.exact_epsilon < LEAST_EPSILON:
        raise LossError("a direction needs epsilon of at least 1e-9: no answer would be left in the noise")
    if isinstance(spent, ApproxDP) and spent.exact_delta < LEAST_DELTA:
        raise LossError("a direction needs delta of at least 1e-18")


def _checked_blocks(blocks: int | None, rows: int, spent: PureDP) -> int:
    if blocks is None:
        return by_blocks.default_blocks(rows, spent.epsilon)
    most = rows // LEAST_ROWS
    if isinstance(blocks, bool) or not isinstance(blocks, int) or not 1 <= blocks <= most or blocks % 2 == 0:
        raise ParameterError(f"blocks must be an odd number between 1 and n/{LEAST_ROWS} = {most}")
    return blocks


def _checked_share(share: float | None) -> float:
    if share is None:
        return TRAINING_SHARE
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
        raise ParameterError("training_share must be a number above 0 and below 1")
    return float(share)
