"""``direction``: which of two columns is the cause, under a privacy budget."""

from __future__ import annotations

from typing import Any, Literal

from dpcausal.data.table import Table
from dpcausal.direction.plan import checked
from dpcausal.direction.result import Direction
from dpcausal.direction.route import Plan, Released
from dpcausal.direction.scores import rehearse
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import Loss, NoPrivacy
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.noise import PublicGenerator, public_generator
from dpcausal.privacy.unheard import unheard
from dpcausal.report import Guarantee

PUBLIC = ("the number of rows", "column names and bounds", "the order of the rows", "all arguments", "the seed")

UNPROTECTED_TRAINING = "the rows of the training half are NOT protected: only the test half is"
UNPROTECTED_TEST = "the rows of the test half are NOT protected: only the training half is"

UNPROTECTED = {"test": UNPROTECTED_TRAINING, "training": UNPROTECTED_TEST}
"""The first caveat, by ``protect``."""

NO_PROBABILITY = "no probability can be given for this release; a margin near 0 is no finding"


def direction(
    table: Table,
    first: str,
    second: str,
    *,
    loss: Loss,
    score: Literal[
        "hsic", "spearman", "kendall", "iqr", "variance", "igci", "igci-gaussian", "igci-slope"
    ] = "hsic",
    protect: Literal["everyone", "test", "training"] = "everyone",
    method: Literal[
        "auto", "blocks", "joint", "holdout", "inverse-sensitivity", "smooth-sensitivity", "propose-test-release"
    ] = "auto",
    release_scores: bool = False,
    calibration: Literal["corrected", "published"] = "corrected",
    blocks: int | None = None,
    training_share: float | None = None,
    penalty: float | tuple[float, ...] | None = None,
    width: float | tuple[float, ...] | None = None,
    min_probability: float | None = None,
    accept_unproven: bool = False,
    accept_large_epsilon: bool = False,
) -> Direction:
    """Release which of two columns causes the other, by the additive noise model or information geometry.

    Each column is regressed on the other; a score says how much the residuals still depend on the regressor.  The
    direction with the smaller score wins.

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
        (log interquartile ranges).  Inside blocks or without privacy only: ``"variance"``, and the scores of
        information geometry, which fit no regression: ``"igci"``, ``"igci-gaussian"`` (spacings, against a uniform
        or normal law) and ``"igci-slope"``.
    protect : str
        ``"everyone"``: every row.  ``"test"``: the rows of the test half only, as in the paper; the training half
        is NOT protected.  ``"training"``: the rows that the regressions are fitted on only, as in the paper; the test
        half is NOT protected; scores ``"hsic"`` and ``"iqr"``.
    method : str
        For everyone: ``"blocks"``, a noisy count of the votes of disjoint blocks, or ``"joint"``, noise on the
        difference of the scores (``"hsic"``) for the larger of what a training and a test row can move.  ``"auto"``
        is always blocks, which are right more often at every size, ε and design that was measured.  For one half:
        ``"auto"`` and ``"holdout"`` are the same.  For the score ``"iqr"`` of a test half also, by accuracy,
        ``"inverse-sensitivity"`` (pure ε; both scores; what ``"auto"`` takes if they are asked for),
        ``"smooth-sensitivity"`` and ``"propose-test-release"`` (both need an ``ApproxDP`` loss with δ; the last
        may decline to answer); none of the three says how sure the direction is.
    release_scores : bool
        With one half protected: release both scores, at the same total loss and a less sure direction.
    calibration : str
        ``"published"`` with ``protect="test"``: the paper's mechanisms with its constants.  Those of the ranks and
        HSIC are valid; that of the IQR is not private and needs ``accept_unproven=True`` and an ``ApproxDP`` loss.
        With ``protect="training"``: HSIC by Theorem 7, and rank scores where they are stable by Theorem 6 (gaps between
        values, one step more careful), which is never on real data and needs an ``ApproxDP`` loss.
    blocks : int, optional
        Public number of blocks; by default a public rule of n and ε.
    training_share : float, optional
        With one half protected and without privacy: share of the rows that the regressions are fitted on, in
        (0, 1); by default 0.5.  With ``method="joint"`` 0.8, or more if over 50,000 rows would be scored.  Blocks use
        leave-one-out residuals of all their rows instead.
    penalty, width : float, or tuple or list of float, optional
        Where the regressions are protected (``protect="training"``, ``method="joint"``): λ of the ridge, in
        [1e-5, 1e5], and the width of its Gaussian kernel, in [.01, 100] halves of the regressor's public range.  By
        default λ follows a public rule of n and ε, and the width is 0.3.  Of several one is chosen by report noisy
        max, for a quarter of the loss: the one whose margin stands out most from its noise, which need not be the
        one that is right most often.
    min_probability : float, optional
        In (.5, 1): where ``probability_correct`` is below it, the answer is undecided: ``cause`` and ``effect`` are
        ``None``, the margin is still there.  It costs nothing, a rule on what was released.  Without privacy there
        is no noise and nothing is undecided; a release without a probability is refused beforehand.
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
    *Guarantee*: ε-DP under replace-one for every row (``protect="everyone"``: claims block-votes, geometric; with
    ``method="joint"`` joint-difference, laplace), or for the rows of one half.
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
        release_scores=release_scores, blocks=blocks, training_share=training_share, penalty=penalty, width=width,
        min_probability=min_probability, accept_unproven=accept_unproven, accept_large_epsilon=accept_large_epsilon,
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
    columns = table.columns([first, second])
    return result(plan, allotment, run(columns, plan, generator, allotment), seed, unused(loss, protect, method))


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
        "penalty": plan.penalty,
        "width": plan.width,
        "min_probability": plan.min_probability,
    }


def run(columns: dict[str, Any], plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    """Release a plan's answer: from here on nothing may fail or warn for a reason that lies in a value."""
    x, y = columns[plan.first], columns[plan.second]
    return unheard(lambda: plan.route.release(x, y, plan, generator, allotment))


def unused(loss: Loss, protect: str, method: str) -> tuple[str, ...]:
    """Return the caveat that names what plays no part without privacy; none if nothing of it was asked for."""
    if not isinstance(loss, NoPrivacy):
        return ()
    asked = (f"protect={protect!r}" * (protect != "everyone"), f"method={method!r}" * (method != "auto"))
    told = " and ".join(filter(None, asked))
    return (f"{told} had no effect: without privacy the scores are exact",) if told else ()


def is_undecided(plan: Plan, released: Released) -> bool:
    """Return whether a released answer is less sure than was asked for; without privacy nothing is unsure."""
    if plan.min_probability is None or isinstance(plan.spent, NoPrivacy):
        return False
    return released.probability is None or released.probability < plan.min_probability


def result(plan: Plan, allotment: Allotment, released: Released, seed: int, caveats: tuple[str, ...] = ()) -> Direction:
    """Return what was released as a result; ``caveats`` are those of the whole call."""
    caveats = (plan.note, *caveats) if plan.note else caveats
    if plan.protect in UNPROTECTED and not isinstance(plan.spent, NoPrivacy):
        caveats = (UNPROTECTED[plan.protect], *caveats)
    if not isinstance(plan.spent, NoPrivacy) and not plan.route.gives_probability(plan):
        caveats = (*caveats, NO_PROBABILITY)
    # At a margin of exactly 0 the first named column is the cause, a fixed rule.
    is_first = released.margin is not None and released.margin >= 0
    cause, effect = (plan.first, plan.second) if is_first else (plan.second, plan.first)
    is_open = released.margin is None or is_undecided(plan, released)
    return Direction(
        cause=None if is_open else cause,
        effect=None if is_open else effect,
        margin=released.margin,
        margin_unit=released.unit,
        probability_correct=released.probability,
        scores=released.scores,
        score=plan.score,
        protect=plan.protect,
        method=plan.method,
        calibration=plan.calibration,
        columns=(plan.first, plan.second),
        n=plan.n,
        blocks=plan.blocks,
        seed=seed,
        min_probability=plan.min_probability,
        spent=plan.spent,
        guarantee=Guarantee.of(
            allotment,
            proofs=plan.proofs,
            caveats=caveats,
            public=PUBLIC,
        ),
        penalty=released.penalty,
        width=released.width,
    )
