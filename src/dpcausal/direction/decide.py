"""``direction``: which of two columns is the cause, under a privacy budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpcausal.data.schema import Bounded
from dpcausal.data.table import Table
from dpcausal.direction import blocks as by_blocks
from dpcausal.direction import holdout, published
from dpcausal.direction.anm import SCORES, Residuals, fit_halves, split_rows
from dpcausal.direction.holdout import Released
from dpcausal.direction.result import Direction
from dpcausal.errors import LossError, ParameterError, SchemaError
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import check_consent, check_large, pure_part
from dpcausal.privacy.loss import ApproxDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.noise import PublicGenerator, public_generator
from dpcausal.report import Guarantee

LEAST_ROWS = 8
"""Fewest rows of a direction: each half then has at least 2 of them, and ranks and quartiles are defined."""

UNPROTECTED_TRAINING = "the rows of the training half are NOT protected: only the test half is"

TRAINING_SHARE = 0.5
"""Default share of the rows that the regressions are fitted on, with ``protect="test"`` and without privacy."""


@dataclass(frozen=True)
class _Plan:
    """A call after its public arguments were checked: all that decides the cost, fixed before the data is read."""

    first: str
    second: str
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
        return Unit.ROW if self.protect == "everyone" else Unit.TEST_ROW

    @property
    def proofs(self) -> tuple[str, ...]:
        if isinstance(self.spent, NoPrivacy):
            return ()
        if self.method == "blocks":
            return by_blocks.PROOFS
        if self.calibration == "published":
            return published.PROOFS[self.score]
        rule = holdout.RULES[self.score]
        return rule.score_proofs if self.release_scores else rule.proofs


def direction(
    table: Table,
    first: str,
    second: str,
    *,
    loss: Loss,
    score: Literal["hsic", "spearman", "kendall", "iqr", "variance"] = "hsic",
    protect: Literal["everyone", "test"] = "everyone",
    method: Literal["auto", "blocks"] = "auto",
    release_scores: bool = False,
    calibration: Literal["corrected", "published"] = "corrected",
    blocks: int | None = None,
    training_share: float | None = None,
    accept_unproven: bool = False,
    accept_large_epsilon: bool = False,
) -> Direction:
    """Release which of two columns causes the other, by the additive noise model.

    Each column is regressed on the other on a training split; on the test split a score says how much the
    residuals still depend on the regressor.  The direction with the smaller score wins.

    Parameters
    ----------
    table : Table
        At least 8 rows.  The table's ledger pays.
    first, second : str
        Two columns declared ``Bounded``.
    loss : Loss
        The most that the call may cost; no default.  ``PureDP(ε)``; of an ``ApproxDP(ε, δ)`` only ε is spent.
        ``NoPrivacy()`` with a ledger without privacy: the exact direction of one split of all rows.
    score : str
        ``"hsic"`` (root of the Hilbert-Schmidt criterion, the default), ``"spearman"``, ``"kendall"``, ``"iqr"``
        (log interquartile ranges); ``"variance"`` inside blocks or without privacy only.
    protect : str
        ``"everyone"``: every row.  ``"test"``: the rows of the test half only, as in the paper; the training half
        is NOT protected.
    method : str
        For everyone: ``"auto"`` and ``"blocks"`` are the same, a noisy count of the votes of disjoint blocks.
    release_scores : bool
        With ``protect="test"``: release both scores, at the same total loss and a less sure direction.
    calibration : str
        ``"published"`` with ``protect="test"``: the paper's mechanisms with its constants.  Those of the ranks and
        HSIC are valid; that of the IQR is not private and needs ``accept_unproven=True`` and an ``ApproxDP`` loss.
    blocks : int, optional
        Public number of blocks; by default a public rule of n and ε.
    training_share : float, optional
        With ``protect="test"`` and without privacy: share of the rows that the regressions are fitted on, in
        (0, 1); by default 0.5.  Blocks use leave-one-out residuals of all their rows instead.
    accept_unproven, accept_large_epsilon : bool
        Consent to a published variant without proof; to ε above 20.

    Returns
    -------
    Direction
        With ``cause``, ``effect``, ``margin``, ``probability_correct``, ``scores`` and ``guarantee``.

    Raises
    ------
    ParameterError, SchemaError, LossError, UnprovenError
        From public arguments, before anything is spent.
    BudgetExceededError
        The ledger refuses; nothing was spent or read.

    Notes
    -----
    *Guarantee*: ε-DP under replace-one for every row (``protect="everyone"``: claims block-votes, geometric), or
    for the rows of the test half.
    *Source*: Kusner, Sun, Sridharan & Weinberger (2016), Algorithm 1; blocks, flip distances and constants are
    this library's.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> pair = dpc.simulate.anm_pair(2000, seed=3)
    >>> ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    >>> table = dpc.Table(pair.columns, pair.schema, ledger)
    >>> with dpc.simulated_noise(7):
    ...     answer = dpc.direction(table, "x", "y", loss=dpc.PureDP(1))
    >>> answer.cause, answer.guarantee.loss, answer.guarantee.private
    ('x', PureDP(1), False)
    """
    plan = _checked(
        table, first, second, loss, score, protect, method, release_scores, calibration, blocks, training_share,
        accept_unproven, accept_large_epsilon,
    )  # fmt: skip
    allotment = table.ledger.allot(
        plan.spent,
        task="direction",
        unit=plan.unit,
        relation=Relation.REPLACE_ONE,
        detail={
            "columns": [first, second],
            "score": score,
            "protect": protect,
            "method": plan.method,
            "calibration": calibration,
            "release_scores": release_scores,
            "blocks": plan.blocks,
        },
        unproven=plan.unproven,
    )
    generator, seed = public_generator()
    released = _run(table, plan, allotment, generator)
    return _result(table, plan, allotment, released, seed)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}")


def _checked(
    table: Table, first: str, second: str, loss: Loss, score: str, protect: str, method: str, release_scores: bool,
    calibration: str, blocks: int | None, training_share: float | None, accept_unproven: bool,
    accept_large_epsilon: bool,
) -> _Plan:  # fmt: skip
    """Check every public argument and fix what the call will cost; nothing is read or spent."""
    if not isinstance(table, Table):
        raise ParameterError("table must be a dpcausal Table")
    for name in (first, second):
        if name not in table.schema:
            raise SchemaError(f"column '{name}' is not in the schema")
        if not isinstance(table.schema[name], Bounded):
            raise SchemaError(f"column '{name}' has levels: a direction needs two columns declared Bounded")
    if first == second:
        raise ParameterError("first and second must be two different columns")
    _one_of("score", score, tuple(SCORES))
    _one_of("protect", protect, ("everyone", "test"))
    _one_of("method", method, ("auto", "blocks"))
    _one_of("calibration", calibration, ("corrected", "published"))
    if table.n < LEAST_ROWS:
        raise ParameterError(f"a direction needs at least {LEAST_ROWS} rows, the table has {table.n}")
    check_large(loss, accept_large_epsilon)
    is_exact = isinstance(loss, NoPrivacy)
    is_blocks = protect == "everyone" and not is_exact
    if protect == "test" and method == "blocks":
        raise ParameterError("method='blocks' protects everyone: use protect='everyone'")
    if protect == "everyone" and not is_exact and (release_scores or calibration == "published"):
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
        if not (isinstance(loss, ApproxDP) and loss.delta > 0):
            raise LossError("propose-test-release is paid for in ApproxDP with delta above 0")
        spent: Loss = loss
        note = "published algorithm without a valid proof"
    else:
        spent, note = pure_part(loss, "blocks" if is_blocks else "this release")
    chosen = _checked_blocks(blocks, table.n, spent) if isinstance(spent, PureDP) and is_blocks else None
    return _Plan(
        first=first,
        second=second,
        score=score,
        protect=protect,
        method="exact" if is_exact else "blocks" if is_blocks else "holdout",
        calibration=calibration,
        release_scores=release_scores or calibration == "published",
        blocks=chosen,
        training_share=_checked_share(training_share),
        spent=spent,
        note=note,
        unproven=unproven,
    )


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


def _run(table: Table, plan: _Plan, allotment: Allotment, generator: PublicGenerator) -> Released:
    columns = table.columns([plan.first, plan.second])
    x, y = columns[plan.first], columns[plan.second]
    if plan.blocks is not None and isinstance(plan.spent, PureDP):
        return by_blocks.release(x, y, plan.score, plan.blocks, generator, allotment, plan.spent)
    train, test = split_rows(len(x), plan.training_share, generator)
    rest = fit_halves(x, y, train, test, _range(table, plan.first), _range(table, plan.second), generator)
    if isinstance(plan.spent, NoPrivacy):
        return _exact(rest, plan.score)
    if plan.calibration == "published":
        if isinstance(plan.spent, ApproxDP):
            return published.release_iqr(rest, allotment, plan.spent)
        return published.release(rest, plan.score, allotment, plan.spent)  # type: ignore[arg-type]
    rule = holdout.RULES[plan.score]
    return (rule.scores if plan.release_scores else rule.direction)(rest, allotment, plan.spent)  # type: ignore[arg-type]


def _exact(rest: Residuals, score: str) -> Released:
    forward, backward = SCORES[score](rest)
    return Released(backward - forward, "score", None, (forward, backward))


def _range(table: Table, name: str) -> tuple[float, float]:
    declared = table.schema[name]
    if not isinstance(declared, Bounded):
        raise SchemaError(f"column '{name}' has levels")
    return declared.lower, declared.upper


def _result(table: Table, plan: _Plan, allotment: Allotment, released: Released, seed: int) -> Direction:
    caveats = [plan.note] if plan.note else []
    if plan.protect == "test" and not isinstance(plan.spent, NoPrivacy):
        caveats.insert(0, UNPROTECTED_TRAINING)
    # At a margin of exactly 0 the first named column is the cause, a fixed rule.
    is_first = None if released.margin is None else released.margin >= 0
    cause, effect = (None, None) if is_first is None else (plan.first, plan.second)[:: 1 if is_first else -1]
    return Direction(
        cause=cause,
        effect=effect,
        margin=released.margin,
        margin_unit=released.unit,
        probability_correct=released.probability,
        scores=released.scores,
        score=plan.score,
        protect=plan.protect,
        method=plan.method,
        calibration=plan.calibration,
        columns=(plan.first, plan.second),
        n=table.n,
        blocks=plan.blocks,
        seed=seed,
        guarantee=Guarantee.of(
            allotment,
            proofs=plan.proofs,
            caveats=tuple(caveats),
            public=("the number of rows", "column names and bounds", "the order of the rows", "all arguments"),
        ),
    )
