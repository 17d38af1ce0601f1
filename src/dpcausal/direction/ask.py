"""``direction``: which of two columns is the cause, under a privacy budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from dpcausal.asking import public
from dpcausal.asking.ask import ask
from dpcausal.data.table import Table
from dpcausal.direction.methods import METHODS, chosen
from dpcausal.direction.question import DirectionMethod, Pair
from dpcausal.direction.result import Direction
from dpcausal.direction.scores import rehearse
from dpcausal.privacy.call import check_large
from dpcausal.privacy.loss import Loss

Score = Literal["hsic", "spearman", "kendall", "iqr", "variance", "igci", "igci-gaussian", "igci-slope"]
Protect = Literal["everyone", "test", "training"]


def direction(
    table: Table,
    first: str,
    second: str,
    *,
    loss: Loss,
    score: Score = "hsic",
    protect: Protect = "everyone",
    method: str | DirectionMethod[Any] = "auto",
    min_probability: float | None = None,
    accept_unproven: bool = False,
    accept_large_epsilon: bool = False,
    **misplaced: Any,
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
    method : str or method
        A short name, or an object of ``dpcausal.methods`` with its options, as ``Votes(blocks=51)``.  For everyone:
        ``"votes"``, a noisy count of the votes of disjoint blocks, or ``"joint"``, noise on the difference of the
        scores (``"hsic"``) for the larger of what a training and a test row can move.  ``"auto"`` is always votes
        there, which are right more often at every size, ε and design that was measured.  For a test half
        ``"holdout"``, for a training half ``"training"``.  For the score ``"iqr"`` of a test half also, by accuracy,
        ``"inverse-sensitivity"`` (pure ε; both scores), ``"smooth-sensitivity"`` and ``"propose-test-release"`` (both
        need an ``ApproxDP`` loss with δ; the last may decline to answer); none of the three says how sure the direction
        is.  The papers' systems are objects of ``dpcausal.papers``.
    min_probability : float, optional
        In (.5, 1): where ``probability_correct`` is below it, the answer is undecided: ``cause`` and ``effect`` are
        ``None``, the margin is still there.  It costs nothing, a rule on what was released.  Without privacy there
        is no noise and nothing is undecided; a release without a probability is refused beforehand.
    accept_unproven, accept_large_epsilon : bool
        Consent to a method without a proof; to ε above 20.

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
    public.refuse_options(misplaced, method, METHODS)
    question = Pair.of(table, first, second, score, protect, min_probability)
    check_large(loss, accept_large_epsilon)
    way, besides = chosen(method, protect, loss)
    rehearse(score)
    return ask(
        replace(question, besides=besides), way, loss, accept_unproven=accept_unproven,
        accept_large_epsilon=accept_large_epsilon,
    )  # fmt: skip
