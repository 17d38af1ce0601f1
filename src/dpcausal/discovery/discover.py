"""``discover``: the causal graph of a table's columns, under a privacy budget."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from dpcausal.data.table import Table
from dpcausal.data.tabulate import codes_of, counts_of
from dpcausal.dependence.contingency import contingency_sensitivity
from dpcausal.discovery import moments
from dpcausal.discovery.contrasts import Releaser
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.pc import find_skeleton
from dpcausal.discovery.plan import STATISTICS, Plan, checked, settings_of
from dpcausal.discovery.release import Release, Statistic
from dpcausal.discovery.result import Discovery
from dpcausal.discovery.search import Found, Settings, by_tests
from dpcausal.discovery.search import search as search_statistic
from dpcausal.discovery.tables import NoisyTable, geometric_variance
from dpcausal.errors import ParameterError
from dpcausal.mechanisms.additive import gaussian, gaussian_scale, geometric, laplace_scale
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.sensitivity import Norm, Query
from dpcausal.privacy.unheard import unheard
from dpcausal.report import Guarantee

PUBLIC = ("the number of rows", "column names, levels, bounds and cuts", "all arguments", "knowledge")
PUBLIC_PLACES = ("the order of the rows", "the seed")
"""Public too where rows are dealt into blocks by their places."""

Method = Literal[
    "auto", "table", "parities", "moments", "priv-pc", "svt-pc", "em-pc", "gaussian-pc", "reconciled",
    "ci-test",
]


def discover(
    table: Table | Release,
    *,
    loss: Loss | None = None,
    method: Method = "auto",
    columns: Iterable[str] | None = None,
    knowledge: Knowledge | None = None,
    alpha: float | None = None,
    max_order: int | None = None,
    search: Literal["auto", "score", "pc"] = "auto",
    test: str | None = None,
    calibration: Literal["corrected", "published"] = "corrected",
    accept_unproven: bool = False,
    accept_large_epsilon: bool = False,
) -> Discovery:
    """Release the causal graph of a table's columns, up to Markov equivalence.

    Parameters
    ----------
    table : Table or Release
        At least 2 rows; the table's ledger pays.  Or the ``release`` of an earlier result: asking it again with
        another level, order, search or knowledge costs nothing.
    loss : Loss
        The most that the call may cost; there is no default for a table, and none is taken for a release.
    method : str
        * ``"table"``: one noisy table of counts; tests that know the noise, then the exact search for the best score.
          ``PureDP`` (geometric noise) or ``ZCDP``.  Bounded columns are cut at ``cuts``, or into four equal widths.
        * ``"parities"``: noisy contrasts, order by order, for many columns.  ``ZCDP`` or ``ApproxDP``.
        * ``"moments"``: noisy second moments of bounded columns, partial correlations.  ``ZCDP`` or ``ApproxDP``.
        * ``"auto"``: moments if all columns are bounded and the loss allows Gaussian noise; a table up to 1024 cells;
          parities beyond.
        * ``"priv-pc"``, ``"svt-pc"``, ``"em-pc"``, ``"gaussian-pc"``, ``"reconciled"``: the systems of Wang, Pang &
          Song (2020), for comparison; they release decisions only.  ``PureDP``, but ``"gaussian-pc"`` as parities and
          ``"reconciled"`` (G-test or χ² in blocks) ``ApproxDP``.
        * ``"ci-test"``: PC by the tests of ``ci_test``, one ε split by order: for a few non-linear or mixed columns.
          ``PureDP``.
    columns : list of str, optional
        Columns of the graph; by default all of the schema.
    knowledge : Knowledge, optional
        Tiers, forbidden and required arrows.
    alpha : float, optional
        Level of the tests; by default .05 for the screen of a score search, .01 otherwise, and .03 for parities given
        two or more columns.
    max_order : int, optional
        Largest conditioning set, 0 to 8.
    search : str
        ``"score"`` or ``"pc"``; by default score for a table of at most 14 columns.
    test : str
        With ``method="ci-test"``: the method of ``ci_test``, by default ``"gcm"``.  With ``"reconciled"``: ``"g"`` or
        ``"chi2"``.
    calibration : str
        ``"published"``: a system of the paper as printed, which is not private: needs ``accept_unproven=True``.
    accept_unproven, accept_large_epsilon : bool
        Consent to a published variant without proof; to ε above 20.

    Returns
    -------
    Discovery
        With ``graph``, ``margin``, ``release``, ``guarantee``.

    Raises
    ------
    ParameterError, SchemaError, LossError, UnprovenError, InfeasibleError
        From public arguments, before anything is spent.
    BudgetExceededError
        The ledger refuses; nothing was spent or read.

    Notes
    -----
    *Guarantee*: the loss, under replace-one for every row; claims contingency-table, contrasts, second-moments.
    The whole cost is fixed before the data is read, whatever tests turn out to be needed.
    *Source*: the problem is that of Wang, Pang & Song (2020); the three default methods are this library's.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcausal as dpc
    >>> from dpcausal.discovery.discover import discover
    >>> from dpcausal.privacy.noise import generator_from_seed
    >>> coins = generator_from_seed(4)
    >>> x, z = coins.integers(0, 2, 20_000), coins.integers(0, 2, 20_000)
    >>> y = np.where(coins.random(20_000) < 0.8, x | z, 1 - (x | z))
    >>> schema = dpc.Schema({name: dpc.Levels([0, 1]) for name in "xyz"})
    >>> table = dpc.Table({"x": x, "y": y, "z": z}, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    >>> found = discover(table, loss=dpc.PureDP(1))
    >>> print(found.graph)
    x -> y, z -> y
    >>> discover(found.release, alpha=0.001).graph == found.graph
    True
    """
    if isinstance(table, Release):
        if loss is not None or columns is not None or method not in ("auto", table.method):
            raise ParameterError("a release is asked again without loss, columns or another method: it costs nothing")
        settings = settings_of(table.method, table.names, knowledge, alpha, max_order, search)
        found = search_statistic(table.statistic, settings)
        return _result(found, settings, table.method, "corrected", table.guarantee, table.n, table)
    if not isinstance(table, Table):
        raise ParameterError("table must be a dpcausal Table, or the release of an earlier discovery")
    plan = checked(
        table, loss, method, columns, knowledge, alpha, max_order, search, test, calibration, accept_unproven,
        accept_large_epsilon,
    )  # fmt: skip
    allotment = table.ledger.allot(
        plan.spent,
        task="discover",
        relation=Relation.REPLACE_ONE,
        detail={
            "columns": list(plan.names) if len(plan.names) <= 40 else [*plan.names[:40], "..."],
            "method": plan.method,
            "calibration": plan.calibration,
            "max_order": plan.settings.max_order,
            "test": plan.test or None,
        },
        unproven=plan.unproven,
    )
    if plan.method in STATISTICS:
        return unheard(lambda: _by_statistic(table, plan, allotment))
    from dpcausal.discovery.systems import run_system

    found, reported, seed = unheard(lambda: run_system(table, plan, allotment))
    guarantee = _guarantee(plan, allotment)
    return _result(found, plan.settings, plan.method, plan.calibration, guarantee, table.n, None, reported, seed)


def _guarantee(plan: Plan, allotment: Allotment) -> Guarantee:
    by_place = PUBLIC_PLACES if plan.method in ("reconciled", "ci-test") else ()
    return Guarantee.of(allotment, proofs=plan.proofs, caveats=plan.caveats, public=PUBLIC + by_place)


def _by_statistic(table: Table, plan: Plan, allotment: Allotment) -> Discovery:
    """Release, then search what was released: from here on nothing may fail or warn for a reason in a value."""
    if plan.method == "parities":
        statistic, found = _by_orders(table, plan, allotment)
    else:
        statistic = _whole_table(table, plan, allotment) if plan.method == "table" else _moments(table, plan, allotment)
        found = search_statistic(statistic, plan.settings)
    release = Release(statistic, _guarantee(plan, allotment))
    return _result(found, plan.settings, plan.method, "corrected", release.guarantee, table.n, release)


def _whole_table(table: Table, plan: Plan, allotment: Allotment) -> NoisyTable:
    counts = counts_of(table, plan.names)
    spent = plan.spent
    if isinstance(spent, PureDP):
        sensitivity = contingency_sensitivity()
        noisy = geometric(Query(counts, sensitivity, "table of counts"), allotment, spent)
        return NoisyTable(
            plan.names, noisy, geometric_variance(laplace_scale(sensitivity.bound, spent)), "geometric", table.n
        )
    sensitivity = contingency_sensitivity(Norm.L2)
    query = Query(counts, sensitivity, "table of counts")
    if isinstance(spent, ZCDP):
        variance = gaussian_scale(sensitivity.bound, spent) ** 2
        return NoisyTable(plan.names, gaussian(query, allotment, spent), variance, "discrete-gaussian", table.n)
    return NoisyTable(plan.names, gaussian(query, allotment, NoPrivacy()), 0.0, "exact", table.n)


def _moments(table: Table, plan: Plan, allotment: Allotment) -> moments.NoisyMoments:
    if plan.gaussian is None:
        raise ParameterError("moments need a loss for Gaussian noise")
    return moments.release(table, plan.names, allotment, plan.gaussian)


def _by_orders(table: Table, plan: Plan, allotment: Allotment) -> tuple[Statistic, Found]:
    if plan.gaussian is None:
        raise ParameterError("parities need a loss for Gaussian noise")
    releaser = Releaser(
        plan.names, plan.sizes, codes_of(table, plan.names), allotment, plan.gaussian, plan.settings.max_order
    )
    skeleton = find_skeleton(
        plan.names,
        releaser.noisy.asker(plan.settings.alpha, plan.settings.later),
        knowledge=plan.settings.knowledge,
        max_order=plan.settings.max_order,
        begin=releaser.begin,
    )
    return releaser.noisy, by_tests(plan.names, skeleton, plan.settings)


def _result(
    found: Found,
    settings: Settings,
    method: str,
    calibration: str,
    guarantee: Guarantee,
    n: int,
    release: Release | None,
    reported: str = "",
    seed: int | None = None,
) -> Discovery:
    return Discovery(
        graph=found.graph,
        method=method,
        calibration=calibration,
        search=settings.search,
        alpha=settings.alpha,
        later_alpha=settings.later,
        max_order=settings.max_order,
        knowledge=settings.knowledge,
        margin=found.margin,
        margin_unit="nats" if settings.search == "score" else "powers of ten",
        untested=found.untested,
        support=None,
        tests=found.tests,
        n=n,
        reported=reported,
        seed=seed,
        release=release,
        guarantee=guarantee,
    )
