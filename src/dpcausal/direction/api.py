"""``direction`` and ``direction_all``: which of two columns is the cause, of one pair or of many, under a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any, Literal, cast, get_args

from dpcausal.core import validate as public
from dpcausal.core.method import PlannedCall
from dpcausal.core.multiplicity import Correction, adjusted_pvalues
from dpcausal.core.progress import progress
from dpcausal.core.run import JointRun, Task, charge_jointly, plan_call, public_task, run_many
from dpcausal.data.schema import Bounded
from dpcausal.data.table import Table
from dpcausal.direction.methods import METHODS, choose_method, resolve_method
from dpcausal.direction.question import DirectionMethod, Pair
from dpcausal.direction.result import Direction, DirectionSet
from dpcausal.direction.scores import NAMES, rehearse
from dpcausal.errors import ParameterError, with_signature_errors
from dpcausal.privacy.checks import LossSplit, check_epsilon_consent, split_loss
from dpcausal.privacy.loss import Loss, exact_amount
from dpcausal.privacy.noise import public_generator

Score = Literal["lsnm", "hsic"]


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

    In disjoint blocks each column is regressed on the other.  The verdict is an arrow if the columns are associated,
    what one direction leaves over is independent of the cause, what the other leaves is not, and a score favours the
    same way.

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
        Hilbert-Schmidt criterion of residuals.
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
    named = resolve_method(method)
    question = Pair.of(table, first, second, score, alpha, named)
    check_epsilon_consent(loss, accept_large_epsilon)
    way, besides = choose_method(named, question, loss)
    rehearse(question.score)
    return replace(question, besides=besides), way


MOST_RELEASES = 2000

ColumnPair = tuple[str, str]


@with_signature_errors
def direction_all(
    table: Table,
    pairs: Sequence[ColumnPair] | None = None,
    *,
    loss: Loss,
    scores: str | Sequence[str] | None = None,
    shares: Mapping[ColumnPair | str, float] | None = None,
    method: str | DirectionMethod = "auto",
    alpha: float = 0.1,
    correction: Correction = "holm",
    accept_large_epsilon: bool = False,
    refresh: bool = False,
    **misplaced: Any,
) -> DirectionSet:
    """Release what the rows say of many pairs, by one score or several, under one loss.

    One entry in the ledger pays for all of them.  Each answer is paid a pure part

    εᵢ = c·wᵢ,  Σ εᵢ = ε  or  Σ εᵢ²/2 = ρ

    where wᵢ are the shares, equal by default.  A ``PureDP`` loss is divided by ε.  A ``ZCDP(ρ)`` loss is divided by
    ρ, so that the parts of K answers shrink like 1/√K, not 1/K; an ``ApproxDP(ε, δ)`` loss by whichever gives more,
    at the largest ρ that implies it.

    Parameters
    ----------
    table : Table
        At least 8 rows.  The table's ledger pays.
    pairs : list of pairs of str, optional
        Each pair once, in either order; by default all pairs of columns declared ``Bounded``.  At most 2,000 answers.
    loss : Loss
        The most that the whole call may cost; no default.
    scores : str or list of str, optional
        One or several, as in ``direction``; each pair is answered by each of them, and each is paid for.
    shares : mapping, optional
        Positive shares wᵢ, by pair (in either order) or by score, 1 where none is given; those of an answer's pair and
        score multiply.
        ``{("x", "y"): 3}`` pays that pair three times the ε of the others.
    method, alpha, accept_large_epsilon, refresh
        As in ``direction``, for every answer.  Where one half is protected, it is the same half for all answers.
    correction : str
        Of the arrows, for their number: ``"holm"`` (the default: the probability of any wrong arrow is at most α),
        ``"benjamini-hochberg"`` (the expected share of wrong ones among the arrows, for p-values that are independent
        or positively dependent) or ``"none"``.  It is made from released p-values and costs nothing.

    Returns
    -------
    DirectionSet
        With ``directions``, ``arrows``, ``adjusted``, ``guarantee``, ``to_frame()``.

    Raises
    ------
    ParameterError, SchemaError, LossError
        From public arguments, before anything is spent.
    BudgetExceededError
        The ledger refuses; nothing was spent or read.

    Notes
    -----
    *Guarantee*: all answers together are within ``loss`` under replace-one: claims of each answer, ``divided-loss``,
    and ``one-half-for-all`` where the method protects one half.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> pair = dpc.simulate.anm_pair(4000, mechanism="exponential", seed=3)
    >>> ledger = dpc.Ledger.in_memory(dpc.PureDP(4))
    >>> table = dpc.Table(pair.columns, pair.schema, ledger)
    >>> with dpc.simulated_noise(7):
    ...     answers = dpc.direction_all(table, scores=("lsnm", "hsic"), loss=dpc.PureDP(4))
    >>> [(one.verdict, one.favoured, one.score, one.spent) for one in answers.directions]
    [('x causes y', 'x', 'lsnm', PureDP(2)), (None, 'x', 'hsic', PureDP(2))]
    """
    public.reject_misplaced_options(misplaced, method, METHODS, direction_all)
    public.check_choice("correction", correction, get_args(Correction))
    named = resolve_method(method)
    scores = (NAMES if named is None else named.scores)[0] if scores is None else scores
    scores = (scores,) if isinstance(scores, str) else scores
    plans, division = planned_calls(table, pairs, loss, scores, shares, named, alpha, accept_large_epsilon)
    for score in dict.fromkeys(plan.question.score for plan in plans):
        rehearse(score)
    paid = charge_jointly(
        "direction_all", plans, division, loss, detail(plans, scores), correction=correction, refresh=refresh
    )
    if not isinstance(paid, JointRun):
        return cast(DirectionSet, paid)
    _, seed = public_generator()
    plans = list(paid.plans)
    distinct_pairs = tuple(dict.fromkeys(plan.question.related for plan in plans))
    rows = plans[0].question.table.rows(dict.fromkeys(name for pair in distinct_pairs for name in pair))
    directions: list[Direction] = []
    with progress(len(plans), "directions") as step:
        for plan in plans:
            # The same seed for all: one split of the rows, so that one half of them is the protected one.
            directions += run_many([plan], paid.allotment, read=lambda question: question.columns_of(rows), seed=seed)
            step(f"{', '.join(plan.question.related)}: {plan.question.score}")
    claims = ("divided-loss", *(("one-half-for-all",) if plans[0].question.half else ()))
    return paid.store(DirectionSet(
        directions=tuple(directions), adjusted=_adjusted_pvalues(directions, correction), correction=correction,
        alpha=plans[0].question.alpha, pairs=distinct_pairs, scores=tuple(scores), n=table.n, seed=seed,
        guarantee=paid.guarantee(directions, claims),
    ))  # fmt: skip


def planned_calls(
    table: Table, pairs: Sequence[ColumnPair] | None, loss: Loss, scores: Sequence[str],
    shares: Mapping[ColumnPair | str, float] | None, method: DirectionMethod | None, alpha: float,
    accept_large_epsilon: bool,
) -> tuple[list[PlannedCall[Pair]], LossSplit]:  # fmt: skip
    public.check_table(table, persons=True)
    check_epsilon_consent(loss, accept_large_epsilon)
    listed = _checked_pairs(table, pairs)
    if not isinstance(scores, (list, tuple)) or not scores or not all(isinstance(score, str) for score in scores):
        raise ParameterError("scores must be a list of at least one score's name")
    if len(set(scores)) < len(scores):
        raise ParameterError("each score must be named once: twice would be paid twice")
    if len(listed) * len(scores) > MOST_RELEASES:
        raise ParameterError(f"pairs times scores must be at most {MOST_RELEASES}")
    weights = _weights(listed, scores, shares)
    division = split_loss(loss, [weights[pair] * weights[score] for pair in listed for score in scores])
    questions = [Pair.of(table, *pair, score, alpha, method) for pair in listed for score in scores]
    plans = []
    for question, part in zip(questions, division.parts, strict=True):
        way, unused = choose_method(method, question, loss)
        besides = (*((division.note,) if division.note else ()), *unused)
        plans.append(plan_call(replace(question, besides=besides), way, part))
    if plans[0].question.half and len({getattr(plan.method, "training_share", None) for plan in plans}) > 1:
        raise ParameterError("the protected half must be one half for all answers: give training_share")
    return plans, division


def _checked_pairs(table: Table, pairs: object) -> list[ColumnPair]:
    if pairs is None:
        bounded = [name for name, column in table.schema.items() if isinstance(column, Bounded)]
        if len(bounded) < 2:
            raise ParameterError("all pairs need at least two columns declared Bounded")
        return list(combinations(bounded, 2))
    if not isinstance(pairs, (list, tuple)) or not pairs:
        raise ParameterError("pairs must be a list of at least one pair of column names")
    for pair in pairs:
        if not (isinstance(pair, (list, tuple)) and len(pair) == 2 and all(isinstance(name, str) for name in pair)):
            raise ParameterError("each of pairs must be two column names")
    if len({frozenset(pair) for pair in pairs}) < len(pairs):
        raise ParameterError("each pair must be named once, whatever its order: twice would be paid twice")
    return [(pair[0], pair[1]) for pair in pairs]


def _weights(pairs: Sequence[ColumnPair], scores: Sequence[str], shares: object) -> dict[ColumnPair | str, Fraction]:
    weights: dict[ColumnPair | str, Fraction] = dict.fromkeys((*pairs, *scores), Fraction(1))
    if shares is None:
        return weights
    if not isinstance(shares, Mapping):
        raise ParameterError("shares must be a mapping from pairs or scores to numbers above 0")
    for key, share in shares.items():
        name = key if key in weights or not isinstance(key, tuple) else key[::-1]
        if name not in weights:
            raise ParameterError("shares name a pair or a score that was not asked for")
        if name != key and name in shares:
            raise ParameterError("shares name a pair twice, in both orders")
        weights[name] = exact_amount(share, "a share")
    return weights


def detail(plans: Sequence[PlannedCall[Pair]], scores: Sequence[str]) -> dict[str, Any]:
    names = list(dict.fromkeys(name for plan in plans for name in plan.question.related))
    places = {name: place for place, name in enumerate(names)}
    pairs = dict.fromkeys(tuple(places[name] for name in plan.question.related) for plan in plans)
    options = [{"method": plan.method.name, **plan.method.options()} for plan in plans]
    return {
        "columns": names,
        "pairs": [list(pair) for pair in pairs],
        "scores": list(scores),
        "methods": [one for place, one in enumerate(options) if one not in options[:place]],
    }


def _adjusted_pvalues(directions: Sequence[Direction], correction: str) -> tuple[float | None, ...]:
    """Return the p-value of each answer's arrow, adjusted; None where there is none: claim ``arrows-of-many``."""
    tested = [place for place, one in enumerate(directions) if one.p_arrow is not None]
    pvalues = [directions[place].p_arrow or 0.0 for place in tested]
    others = [1.0 for place in tested if directions[place].verdict is not None]
    by_place = dict(zip(tested, adjusted_pvalues([*pvalues, *others], correction), strict=False))
    return tuple(by_place.get(place) for place in range(len(directions)))
