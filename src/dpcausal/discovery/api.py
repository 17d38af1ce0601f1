"""``discover``: the causal graph of a table's columns, with differential privacy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from statistics import NormalDist
from typing import Any

from dpcausal.core import validate as public
from dpcausal.core.run import Task, public_task
from dpcausal.data.table import Table
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.methods import METHODS, READERS, method_of
from dpcausal.discovery.pvalues import pvalue_of
from dpcausal.discovery.question import DiscoveryQuestion, GraphSearch, SearchOutcome, checked_terms, discovery_result
from dpcausal.discovery.result import Discovery
from dpcausal.discovery.search.release_search import search as search_release
from dpcausal.errors import InfeasibleError, ParameterError
from dpcausal.independence.null_distributions import LEAST_PVALUE
from dpcausal.independence.result import Independence
from dpcausal.privacy.loss import Loss
from dpcausal.releases.release import Release, discover_release, test_release


@public_task
def discover(
    table: Table,
    *,
    loss: Loss,
    method: str | GraphSearch = "auto",
    columns: Iterable[str] | None = None,
    knowledge: Knowledge | None = None,
    alpha: float | None = None,
    accept_unproven: bool = False,
    accept_large_epsilon: bool = False,
    refresh: bool = False,
    **misplaced: Any,
) -> Task[Discovery]:
    """Release the causal graph of a table's columns, up to Markov equivalence.

    Parameters
    ----------
    table : Table
        At least 2 rows; the table's ledger pays.  What was released is asked again by its own method, free:
        ``result.release.discover(...)``.
    loss : Loss
        The most that the call may cost; no default.
    method : str or method
        A short name, or an object of ``dpcausal.methods`` with its options, as ``Parities(max_order=3)``.

        * ``"table"`` (``ContingencyTable``): one noisy table of counts; tests that know the noise, then the exact
          search for the best score.  ``PureDP`` (geometric noise) or ``ZCDP``.  Bounded columns are cut at ``cuts``, or
          at noisy quartiles, or where noise hides these into four equal widths.
        * ``"whitened"``: noisy margins, then noisy second moments of whitened levels, for many columns and much noise;
          what three searches join, two of them under half of added noise, is kept.  Bounded columns are cut at
          ``cuts``, or at noisy quartiles: ``result.release.cuts``.  ``ZCDP`` or ``ApproxDP``.
        * ``"triples"``: the same, then third moments of the triples that full tests given two columns need, for many
          columns and little noise.  ``ZCDP`` or ``ApproxDP``.
        * ``"parities"``: noisy contrasts, order by order, for many columns.  ``ZCDP`` or ``ApproxDP``.
        * ``"moments"``: noisy second moments of bounded columns, partial correlations.  ``ZCDP`` or ``ApproxDP``.
        * ``"auto"``: moments if all columns are bounded and the loss allows Gaussian noise; a table up to 1024 cells;
          beyond, whitened while n √(2ρ) is below 250 times the number of levels, triples from there on; parities from
          500 on if no column has more than two levels, without privacy, or above 1000 levels.
        * ``"ci-test"`` (``CiTest``): PC by the tests of ``ci_test``, one ε split by order: for a few non-linear or
          mixed columns.  ``PureDP``.

        The systems of Wang, Pang & Song (2020) are objects of ``dpcausal.papers``; they release decisions only.
    columns : list of str, optional
        Columns of the graph; by default all of the schema.
    knowledge : Knowledge, optional
        Tiers, forbidden and required arrows.
    alpha : float, optional
        Level of the tests; by default 0.05 for the screen of a score search and ``"ci-test"``, 0.01
        for the others; 0.03 for whitened and parities given two or more columns.
    accept_unproven, accept_large_epsilon : bool
        Consent to a method without a proof; to ε above 20.
    refresh : bool
        Of a table with a name: run again at a new privacy cost instead of returning the cached result.

    Returns
    -------
    Discovery
        With ``graph``, ``support``, ``margin``, ``release``, ``guarantee``.

    Raises
    ------
    ParameterError, SchemaError, LossError, UnprovenError, InfeasibleError
        From public arguments, before anything is spent.
    BudgetExceededError
        The ledger refuses; nothing was spent or read.

    Notes
    -----
    *Guarantee*: the loss, under replace-one for every row; claims contingency-table, contrasts,
    whitened-moments, third-moments, second-moments.
    The whole cost is fixed before the data is read, whatever tests turn out to be needed.
    *Source*: the problem is that of Wang, Pang & Song (2020); the first three methods are this library's.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcausal as dpc
    >>> from dpcausal.privacy.noise import generator_from_seed
    >>> rng = generator_from_seed(4)
    >>> x, z = rng.integers(0, 2, 20_000), rng.integers(0, 2, 20_000)
    >>> y = np.where(rng.random(20_000) < 0.8, x | z, 1 - (x | z))
    >>> schema = dpc.Schema({name: dpc.Levels([0, 1]) for name in "xyz"})
    >>> table = dpc.Table({"x": x, "y": y, "z": z}, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    >>> found = dpc.discover(table, loss=dpc.PureDP(1))
    >>> print(found.graph)
    x -> y, z -> y
    >>> found.release.discover(alpha=0.001).graph == found.graph
    True
    """
    question = DiscoveryQuestion.of(table, columns, knowledge, alpha)
    way = method_of(method, question, loss)
    public.reject_misplaced_options(misplaced, way, METHODS, discover)
    return question, way


@discover_release.register(Release)
def discover_again(
    release: Release, *, knowledge: Knowledge | None, alpha: float | None, max_order: int | None, search: str
) -> Discovery:
    kind = READERS.get(type(release.as_graph_release()))
    if kind is None:
        raise ParameterError(f"no graph is found from a release of {release.kind}")
    options: dict[str, Any] = {"max_order": max_order}
    if "search" in {field.name for field in fields(kind)}:
        options["search"] = search
    elif public.check_choice("search", search, ("auto", "score", "pc")) == "score":
        raise ParameterError("a score search needs a noisy table of counts", argument="search", rule="search")
    method = kind(**options).filled(len(release.names))
    terms = method.terms(*checked_terms(release.names, alpha, knowledge))
    outcome = SearchOutcome(search_release(release, terms), terms, release)
    return discovery_result(method, outcome, release.guarantee, release.n)


PLAIN = {
    "moments": "a linear link alone is seen, by second moments of rows that are winsorised where they are extreme",
    "table": "links of all kinds in the strata together are seen, between columns cut into their levels",
    "contrasts": "links in the strata together are seen, and none where counts of that many columns were not released",
    "whitened": "links of one direction in the mean over strata are seen, by rows of less weight where levels are rare",
}
"""What a test by released numbers can see, by the kind of the release."""

UNTESTED = (
    "{x} and {y} cannot be tested given {given}: the release does not have these columns together, or noise hides a "
    "column; more rows, a larger loss or fewer columns"
)


@test_release.register(Release)
def test_again(release: Release, x: str, y: str, *, given: Iterable[str], alpha: float) -> Independence:
    numbers, level = release.as_graph_release(), public.level(alpha)
    if type(numbers) not in READERS:
        raise ParameterError(f"no test is made from a release of {release.kind}")
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterError("given must be a list of column names")
    conditions = tuple(given)
    levels = {name: [f"{name} = {level}" for level in others] for name, _, *others in getattr(release, "factors", ())}
    tested = (x, y, *(part for name in conditions for part in levels.get(name, [name])))
    for name in tested:
        if name not in numbers.names:
            raise ParameterError(f"{name!r} is not in this release: it has {', '.join(numbers.names)}")
    if len(set(tested)) < len(tested):
        raise ParameterError("x, y and given must be different columns")
    first, second, *others = (numbers.names.index(name) for name in tested)
    pvalue = pvalue_of(numbers, first, second, tuple(others))
    if pvalue is None:
        listed = ", ".join(conditions) or "nothing"
        raise InfeasibleError(UNTESTED.format(x=x, y=y, given=listed))
    bounded = max(pvalue, LEAST_PVALUE)
    seen = PLAIN["whitened" if numbers.kind == "triples" else numbers.kind]
    guarantee = replace(release.guarantee, caveats=(*release.guarantee.caveats, seen))
    return Independence(
        statistic=NormalDist().inv_cdf(1 - bounded / 2), pvalue=bounded,
        decision="dependent" if bounded <= level else "not detected", alpha=level, x=(x,), y=(y,), given=conditions,
        method=numbers.kind, n=release.n, settings={}, seed=None, guarantee=guarantee,
    )  # fmt: skip
