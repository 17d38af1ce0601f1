"""``direction``: which of two columns is the cause, under a privacy budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from dpcausal.core import validate as public
from dpcausal.core.run import Task, public_task
from dpcausal.data.table import Table
from dpcausal.direction.methods import METHODS, chosen, resolved
from dpcausal.direction.question import DirectionMethod, Pair
from dpcausal.direction.result import Direction
from dpcausal.direction.scores import rehearse
from dpcausal.privacy.checks import check_epsilon_consent
from dpcausal.privacy.loss import Loss

Score = Literal["lsnm", "hsic", "igci", "igci-gaussian", "igci-slope"]


@public_task
def direction(
    table: Table,
    first: str,
    second: str,
    *,
    loss: Loss,
    score: Score | str | None = None,
    method: str | DirectionMethod = "auto",
    alpha: float = 0.1,
    accept_unproven: bool = False,
    accept_large_epsilon: bool = False,
    refresh: bool = False,
    **misplaced: Any,
) -> Task[Direction]:
    """Release what the rows say of which of two columns causes the other: an arrow, or why there is none.

    In disjoint blocks each column is regressed on the other.  The verdict is an arrow if the columns are linked, what
    one direction leaves over is independent of the cause, what the other leaves is not, and a score favours the same
    way.

    Parameters
    ----------
    table : Table
        At least 8 rows, 144 for a verdict; n times ε of about 1,000 for an arrow.  The table's ledger pays.
    first, second : str
        Two columns declared ``Bounded``.
    loss : Loss
        The most that the call may cost; no default.  ``PureDP(ε)``; of an ``ApproxDP(ε, δ)`` only ε is spent.
        ``NoPrivacy()`` with a ledger without privacy: the exact counts, or the exact scores.
    score : str, optional
        ``"lsnm"`` (the default): which location-scale model leaves less dependence, by entropies; the only one with a
        verdict, and a forced choice takes a scale only in blocks where it gains.  ``"hsic"``: root of the
        Hilbert-Schmidt criterion of residuals.  The scores of information geometry fit no regression: ``"igci"``,
        ``"igci-gaussian"`` (spacings, against a uniform or normal distribution) and ``"igci-slope"``.
    method : str or method
        A short name, or an object of ``dpcausal.methods`` with its options, as ``Verdict(blocks=51)``: ``"verdict"``,
        four noisy counts of blocks, or ``"majority-vote"``, the whole ε on one count: a forced choice, which is
        ``"auto"`` for other scores and below 144 rows.  The papers' systems, which protect one half of the rows and
        have scores of their own, are objects of ``dpcausal.papers``.
    alpha : float
        Level of each claim that a verdict is made of; of votes, the largest ``p_sign`` at which a cause is named.
    accept_unproven, accept_large_epsilon : bool
        Consent to a method without a proof; to ε above 20.
    refresh : bool
        Of a table with a name: run again at a new privacy cost instead of returning the cached result.

    Returns
    -------
    Direction
        With ``verdict``, ``cause``, ``effect``, ``favoured``, ``p_sign``, ``counts``, ``p_values`` and ``guarantee``.

    Raises
    ------
    ParameterError, SchemaError, LossError, UnprovenError
        From public arguments, before anything is spent.
    BudgetExceededError
        The ledger refuses; nothing was spent or read.

    Notes
    -----
    *Guarantee*: ε-DP under replace-one for every row (claims block-bits, cube, verdict-level; with
    ``method="majority-vote"`` block-votes, geometric).  The level of a verdict is that of blocks of that size, not
    of causation.
    *Source*: verdict and ``lsnm`` are this library's; forced choice: Kusner, Sun, Sridharan & Weinberger (2016),
    Algorithm 1, with this library's blocks, flip distances and constants.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> pair = dpc.simulate.anm_pair(4000, mechanism="exponential", seed=3)
    >>> ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    >>> table = dpc.Table(pair.columns, pair.schema, ledger)
    >>> with dpc.simulated_noise(1):
    ...     answer = direction(table, "x", "y", loss=dpc.PureDP(1))
    >>> answer.verdict, answer.cause, answer.guarantee.private
    ('x causes y', 'x', False)
    """
    public.reject_misplaced_options(misplaced, method, METHODS, direction)
    named = resolved(method)
    question = Pair.of(table, first, second, score, alpha, named)
    check_epsilon_consent(loss, accept_large_epsilon)
    way, besides = chosen(named, question, loss)
    rehearse(question.score)
    return replace(question, besides=besides), way
