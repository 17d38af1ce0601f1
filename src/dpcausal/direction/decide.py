"""``direction``: which of two columns is the cause, under a privacy budget."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from dpcausal.data.table import Table
from dpcausal.direction.plan import checked
from dpcausal.direction.result import Direction
from dpcausal.direction.route import Plan, Released
from dpcausal.direction.scores import rehearse
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import Loss, NoPrivacy
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
        table, first, second, loss, score=score, protect=protect, method=method, calibration=calibration,
        release_scores=release_scores, blocks=blocks, training_share=training_share,
        accept_unproven=accept_unproven, accept_large_epsilon=accept_large_epsilon,
    )  # fmt: skip
    rehearse(plan.score)
    allotment = table.ledger.allot(
        plan.spent,
        task="direction",
        unit=plan.unit,
        relation=Relation.REPLACE_ONE,
        detail=detail(plan),
        unproven=bool(plan.route.unproven),
    )
    generator, seed = public_generator()
    return _result(table, plan, allotment, run(table, plan, generator, allotment), seed)


def detail(plan: Plan) -> dict[str, Any]:
    """Return what the ledger's entry says of a plan: public arguments."""
    return {
        "columns": [plan.first, plan.second],
        "score": plan.score,
        "protect": plan.protect,
        "method": plan.method,
        "calibration": plan.calibration,
        "release_scores": plan.release_scores,
        "blocks": plan.blocks,
    }


def run(table: Table, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    """Read the two columns and release: from here on nothing may fail or warn for a reason that lies in a value."""
    columns = table.columns([plan.first, plan.second])
    with np.errstate(all="ignore"):  # a warning of overflow would depend on the rows
        return plan.route.release(columns[plan.first], columns[plan.second], plan, generator, allotment)


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
