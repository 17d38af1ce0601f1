"""``ci_test`` and ``ci_tests``: differentially private tests of whether x is independent of y given z."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast, get_args

from dpcausal.core import validate as public
from dpcausal.core.method import PlannedCall
from dpcausal.core.multiplicity import Correction, adjusted_pvalues
from dpcausal.core.run import JointRun, Task, charge_jointly, plan_call, public_task, run_many
from dpcausal.data.table import Table
from dpcausal.errors import ParameterError, with_signature_errors
from dpcausal.independence.methods import ALL, METHODS
from dpcausal.independence.question import IndependenceQuestion, IndependenceTest
from dpcausal.independence.result import Independence, IndependenceSet
from dpcausal.privacy.checks import check_epsilon_consent, split_loss
from dpcausal.privacy.loss import Loss, exact_amount


@public_task
def ci_test(
    table: Table,
    x: str | Sequence[str],
    y: str | Sequence[str],
    *,
    given: Sequence[str],
    loss: Loss,
    method: str | IndependenceTest = "auto",
    alpha: float = 0.05,
    accept_unproven: bool = False,
    accept_large_epsilon: bool = False,
    refresh: bool = False,
    **misplaced: Any,
) -> Task[Independence]:
    """Test whether x is independent of y given z.

    Parameters
    ----------
    table : Table
        The table's ledger pays.
    x, y : str or list of str
        One column each, or several: then the largest of all covariances counts.  ``Bounded`` or ``Levels``.
    given : list of str
        The columns z; may be empty.
    loss : Loss
        The most that the call may cost; no default.  ``PureDP(ε)``; of an ``ApproxDP(ε, δ)`` the pure methods spend
        only ε.  ``NoPrivacy()`` with a ledger without privacy: the same test of all rows.
    method : str or method
        A short name, or an object of ``dpcausal.methods`` with its options, as ``Gcm(blocks=40)``.  ``"auto"``
        chooses by schema, n and ε, and the result says which and why: ``"neighbours"`` given one number,
        ``"strata-covariance"``, ``"counts"`` or ``"kendall"`` given levels only, ``"gcm"``, regressions in blocks,
        otherwise.  ``"gcm-weighted"`` has power where the covariance changes its sign with z; ``"crt"`` resamples
        x by a distribution of x given z that you know; ``"crt-decision"`` and ``"hsic"`` release a decision
        only.  The papers' systems are objects of ``dpcausal.papers``.
    alpha : float
        Level, in (0, 1).
    accept_unproven, accept_large_epsilon : bool
        Consent to a method without a proof; to ε above 20.
    refresh : bool
        Of a table with a name: run again at a new privacy cost instead of returning the cached result.

    Returns
    -------
    Independence
        With ``statistic``, ``pvalue``, ``decision``, ``alpha`` and ``guarantee``.

    Raises
    ------
    ParameterError, SchemaError, LossError, UnprovenError
        From public arguments, before anything is spent.
    BudgetExceededError
        The ledger refuses; nothing was spent or read.

    Notes
    -----
    *Guarantee*: ε-DP under replace-one for every row; the claims are in the result.
    The level holds where x and y have one distribution each within a window of neighbours or a stratum, for ``gcm``
    where its regressions learn the conditional means, for ``crt`` where the model of x is right.
    *Source*: Shah & Peters (2020), Candès et al. (2018), Kalemaj, Kasiviswanathan & Ramdas (2024); neighbours, strata,
    blocks and their distributions are this library's.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> data = dpc.simulate.smooth_design(3000, effect=0.5, seed=1)
    >>> table = dpc.Table(data.columns, data.schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    >>> with dpc.simulated_noise(2):
    ...     t = dpc.ci_test(table, "x", "y", given=["z1"], loss=dpc.PureDP(1))
    >>> t.decision, t.guarantee.loss, t.guarantee.private
    ('dependent', PureDP(1), False)
    """
    public.reject_misplaced_options(misplaced, method, METHODS, ci_test)
    return IndependenceQuestion.of(table, x, y, given, alpha), public.choose_method(method, IndependenceTest, METHODS)


Named = tuple[str | Sequence[str], str | Sequence[str], Sequence[str]]

MOST_HYPOTHESES = 2000
ONE_OF_MANY = "one of many tests: the loss is that of all together, and its own decision is not adjusted for them"


@with_signature_errors
def ci_tests(
    table: Table,
    hypotheses: Sequence[Named],
    *,
    loss: Loss,
    method: str | IndependenceTest = "auto",
    alpha: float = 0.05,
    correction: Correction = "holm",
    shares: Sequence[float] | None = None,
    accept_unproven: bool = False,
    accept_large_epsilon: bool = False,
    refresh: bool = False,
    **misplaced: Any,
) -> IndependenceSet:
    """Test many hypotheses "x is independent of y given z" under one loss.

    One entry in the ledger pays for all.  Test i is paid εᵢ = c·wᵢ, the shares wᵢ equal by default: a ``PureDP`` loss
    is divided by ε, a ``ZCDP`` loss by ρ, an ``ApproxDP`` loss by whichever gives more.

    Parameters
    ----------
    table : Table
        The table's ledger pays.
    hypotheses : list of (x, y, given)
        As in ``ci_test``; at most 2,000, fewer where their lists of columns are long.
    loss : Loss
        The most that the whole call may cost; no default.
    method, alpha, accept_unproven, accept_large_epsilon, refresh
        As in ``ci_test``, for every test; a method with p-values.
    correction : str
        ``"holm"`` (the default: the probability of any false rejection is at most α), ``"benjamini-hochberg"`` (the
        expected share of false ones among the rejections, for p-values that are independent or positively
        dependent) or ``"none"``.  It is made from released p-values and costs nothing.
    shares : list of numbers, optional
        Positive, one a hypothesis: public, as all arguments are.

    Returns
    -------
    IndependenceSet
        With ``tests``, ``adjusted``, ``decisions``, ``guarantee``.

    Raises
    ------
    ParameterError, SchemaError, LossError, UnprovenError
        From public arguments, before anything is spent.
    BudgetExceededError
        The ledger refuses; nothing was spent or read.

    Notes
    -----
    *Guarantee*: all tests together are within ``loss``: the claims of each, ``allotment`` and ``cost-accounts``.
    *Source*: Holm (1979); Benjamini & Hochberg (1995).

    Examples
    --------
    >>> import dpcausal as dpc
    >>> data = dpc.simulate.smooth_design(3000, effect=1.0, dimensions=2, seed=1)
    >>> table = dpc.Table(data.columns, data.schema, dpc.Ledger.in_memory(dpc.PureDP(2)))
    >>> with dpc.simulated_noise(2):
    ...     found = dpc.ci_tests(table, [("x", "y", ["z1"]), ("z1", "z2", [])], loss=dpc.PureDP(2))
    >>> found.decisions
    ('dependent', 'not detected')
    """
    public.reject_misplaced_options(misplaced, method, METHODS, ci_tests)
    public.check_choice("correction", correction, get_args(Correction))
    check_epsilon_consent(loss, accept_large_epsilon)
    way: IndependenceTest = public.choose_method(method, IndependenceTest, METHODS)
    if not way.releases_pvalue:
        with_pvalues = ", ".join(kind.name for kind in ALL if kind.releases_pvalue)
        raise ParameterError(f"method {way.name} releases no p-value to adjust: take one of {with_pvalues}")
    division = split_loss(loss, _weights(hypotheses, shares))
    plans = [
        replace(plan_call(_question_of(table, named, alpha), way, part, accept_unproven=accept_unproven), note="")
        for named, part in zip(hypotheses, division.parts, strict=True)
    ]
    pairs = [(frozenset((plan.question.x, plan.question.y)), frozenset(plan.question.given)) for plan in plans]
    if len(set(pairs)) < len(pairs):
        raise ParameterError("a hypothesis is named twice: each would be paid for, and may answer otherwise")
    paid = charge_jointly("ci_tests", plans, division, loss, _detail(plans), correction=correction, refresh=refresh)
    if not isinstance(paid, JointRun):
        return cast(IndependenceSet, paid)
    tests = run_many(paid.plans, paid.allotment)
    pvalues = [1.0 if test.pvalue is None else test.pvalue for test in tests]
    claims = ("allotment", "cost-accounts") if division.by_rho else ("allotment",)
    return paid.store(IndependenceSet(
        tests=tuple(tests), adjusted=tuple(adjusted_pvalues(pvalues, correction)), correction=correction,
        alpha=plans[0].question.alpha, n=table.n,
        guarantee=paid.guarantee(tests, claims, division.note, but=(ONE_OF_MANY,)),
    ))  # fmt: skip


def _weights(hypotheses: object, shares: object) -> list[Fraction]:
    if not isinstance(hypotheses, (list, tuple)) or not 1 <= len(hypotheses) <= MOST_HYPOTHESES:
        raise ParameterError(f"hypotheses must be a list of 1 to {MOST_HYPOTHESES} of (x, y, given)")
    if shares is None:
        return [Fraction(1)] * len(hypotheses)
    if not isinstance(shares, (list, tuple)) or len(shares) != len(hypotheses):
        raise ParameterError("shares must be one positive number a hypothesis")
    return [exact_amount(share, "a share") for share in shares]


def _question_of(table: Table, named: object, alpha: float) -> IndependenceQuestion:
    if not (isinstance(named, (list, tuple)) and len(named) == 3):
        raise ParameterError("each hypothesis must be (x, y, given)")
    x, y, given = named
    return replace(IndependenceQuestion.of(table, x, y, given, alpha), besides=(ONE_OF_MANY,))


def _detail(plans: Sequence[PlannedCall[IndependenceQuestion]]) -> dict[str, Any]:
    questions = [plan.question for plan in plans]
    names = list(dict.fromkeys(name for one in questions for name in one.names))
    places = {name: place for place, name in enumerate(names)}
    return {
        "columns": names,
        "hypotheses": [[[places[name] for name in part] for part in (one.x, one.y, one.given)] for one in questions],
        "method": ", ".join(dict.fromkeys(plan.method.name for plan in plans)),
    }
