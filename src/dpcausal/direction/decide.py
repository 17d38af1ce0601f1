"""``direction``: which of two columns is the cause, under a privacy budget."""

from __future__ import annotations

from typing import Literal

import numpy as np

from dpcausal.data.table import Table
from dpcausal.direction import blocks as by_blocks
from dpcausal.direction import holdout, published
from dpcausal.direction.anm import SCORES, Residuals, fit_halves, rehearse, split_rows
from dpcausal.direction.holdout import Released
from dpcausal.direction.plan import Plan, checked
from dpcausal.direction.result import Direction
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ApproxDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.noise import PublicGenerator, public_generator
from dpcausal.report import Guarantee

PUBLIC = ("the number of rows", "column names and bounds", "the order of the rows", "all arguments", "the seed")

UNPROTECTED_TRAINING = "the rows of the training half are NOT protected: only the test half is"


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
    plan = checked(
        table, first, second, loss, score, protect, method, release_scores, calibration, blocks, training_share,
        accept_unproven, accept_large_epsilon,
    )  # fmt: skip
    rehearse(plan.score)
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


def _run(table: Table, plan: Plan, allotment: Allotment, generator: PublicGenerator) -> Released:
    """Read the two columns and release: from here on nothing may fail or warn for a reason that lies in a value."""
    columns = table.columns([plan.first, plan.second])
    x, y = columns[plan.first], columns[plan.second]
    with np.errstate(all="ignore"):  # a warning of overflow would depend on the rows
        if plan.blocks is not None and isinstance(plan.spent, PureDP):
            return by_blocks.release(x, y, plan.score, plan.blocks, generator, allotment, plan.spent)
        train, test = split_rows(len(x), plan.training_share, generator)
        rest = fit_halves(x, y, train, test, plan.range_first, plan.range_second, generator)
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


def _result(table: Table, plan: Plan, allotment: Allotment, released: Released, seed: int) -> Direction:
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
            public=PUBLIC,
        ),
    )
