"""Graphs and tests inside the real packages: ``make peers``, in an environment of its own.

Each graph goes through the package's own object or text and comes back unchanged; where a package computes something of
the graph that we compute too (separation, the class of a DAG), the two agree; PCs of the packages run on our tests.
"""

import itertools
import warnings
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pytest

import dpcausal as dpc
from benchmarks.peers import validation
from dpcausal import Cpdag, interop
from dpcausal.errors import BudgetExceededError, ParameterError
from tests.docs.pages import ROOT, run_page

pytestmark = pytest.mark.filterwarnings("default")  # of the packages, not ours

ASIA = Cpdag.from_dag(
    ["asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp"],
    [
        ("asia", "tub"), ("smoke", "lung"), ("smoke", "bronc"), ("tub", "either"), ("lung", "either"),
        ("either", "xray"), ("either", "dysp"), ("bronc", "dysp"),
    ],
)  # fmt: skip
GRAPHS = {
    "asia": ASIA,
    "a DAG of asia": Cpdag(ASIA.nodes, ASIA.a_dag()),
    "nothing joined": Cpdag(("a", "b", "c")),
    "all open": Cpdag(tuple("abcd"), [], list(itertools.combinations("abcd", 2))),
    "one arc, one apart": Cpdag(("größe", "x.1", "apart"), [("x.1", "größe")]),
}


@pytest.fixture(params=list(GRAPHS))
def graph(request: pytest.FixtureRequest) -> Cpdag:
    return GRAPHS[request.param]


def same(read: Cpdag, graph: Cpdag) -> bool:
    """Compare apart from the order of nodes, which sets and texts of edges do not keep."""
    return set(read.nodes) == set(graph.nodes) and Cpdag(graph.nodes, read.directed, read.undirected) == graph


def test_causal_learn_hands_a_graph_back(graph: Cpdag, tmp_path: Path) -> None:
    from causallearn.utils.TXT2GeneralGraph import txt2generalgraph

    theirs = interop.to_causal_learn(graph)
    assert interop.from_causal_learn(theirs) == graph
    assert same(interop.from_tetrad(str(theirs)), graph)
    (tmp_path / "graph.txt").write_text(interop.to_tetrad(graph), encoding="utf-8")
    assert interop.from_causal_learn(txt2generalgraph(str(tmp_path / "graph.txt"))) == graph


def test_causal_learn_finds_the_class_that_we_find() -> None:
    from causallearn.utils.DAG2CPDAG import dag2cpdag

    theirs = dag2cpdag(interop.to_causal_learn(GRAPHS["a DAG of asia"]))
    assert same(interop.from_causal_learn(theirs), ASIA)


def test_two_heads_of_causal_learn_are_refused() -> None:
    from causallearn.graph.Edge import Edge
    from causallearn.graph.Endpoint import Endpoint

    theirs = interop.to_causal_learn(Cpdag(("a", "b")))
    theirs.add_edge(Edge(*theirs.get_nodes(), Endpoint.ARROW, Endpoint.ARROW))
    with pytest.raises(ParameterError, match="two heads"):
        interop.from_causal_learn(theirs)


def test_pgmpy_hands_a_graph_back(graph: Cpdag) -> None:
    from pgmpy.base import DAG, PDAG

    theirs = interop.to_pgmpy(graph)
    assert type(theirs) is (PDAG if graph.undirected else DAG)
    assert same(interop.from_pgmpy(theirs), graph)
    if not graph.undirected and "größe" not in graph.nodes:  # its text has bare ASCII names only
        assert same(interop.from_dagitty(theirs.to_dagitty()), graph)
        assert same(interop.from_pgmpy(DAG.from_dagitty(graph.to_dagitty().replace('"', ""))), graph)


def test_pgmpy_finds_the_class_and_a_dag_of_it() -> None:
    theirs = interop.to_pgmpy(GRAPHS["a DAG of asia"])
    assert same(interop.from_pgmpy(theirs.to_pdag()), ASIA)
    one = interop.from_pgmpy(interop.to_pgmpy(ASIA).to_dag())
    assert Cpdag.from_dag(ASIA.nodes, one.directed) == ASIA


def test_pgmpy_and_we_agree_on_separation() -> None:
    theirs = interop.to_pgmpy(GRAPHS["a DAG of asia"])
    for x, y in itertools.combinations(ASIA.nodes, 2):
        for given in [(), *((z,) for z in ASIA.nodes if z not in (x, y))]:
            assert theirs.is_dconnected(x, y, observed=list(given)) is not ASIA.d_separated(x, y, given)


def test_dowhy_hands_a_dag_back() -> None:
    from dowhy import CausalModel, gcm

    graph = GRAPHS["a DAG of asia"]
    frame = pd.DataFrame(np.zeros((4, 8)), columns=list(graph.nodes))
    for form in (interop.to_dowhy(graph), graph.to_dagitty()):
        model = CausalModel(frame, treatment="smoke", outcome="dysp", graph=form)
        assert same(interop.from_dowhy(model), graph)
    assert same(interop.from_dowhy(gcm.StructuralCausalModel(interop.to_dowhy(graph))), graph)
    for one in ASIA.dags():
        member = Cpdag(ASIA.nodes, one)
        assert same(interop.from_dowhy(gcm.StructuralCausalModel(interop.to_dowhy(member))), member)


def test_dowhy_adjusts_for_what_blocks_the_back_doors_in_our_graph() -> None:
    from dowhy import CausalModel

    graph = Cpdag(("z", "a", "y"), [("z", "a"), ("z", "y"), ("a", "y")])
    model = CausalModel(pd.DataFrame(np.zeros((4, 3)), columns=list("zay")), "a", "y", graph=interop.to_dowhy(graph))
    assert model.identify_effect().get_backdoor_variables() == ["z"]


def test_pydot_reads_and_writes_the_same_graph(graph: Cpdag) -> None:
    import pydot

    (theirs,) = pydot.graph_from_dot_data(graph.to_dot())
    assert interop.from_dot(theirs.to_string()) == graph
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = networkx.nx_pydot.from_pydot(theirs)
    assert {name.strip('"') for name in theirs.nodes} == set(graph.nodes)
    assert theirs.number_of_edges() == len(graph.skeleton)


COLLIDER = Cpdag(("x", "y", "z"), [("x", "z"), ("y", "z")])


def rows(n: int = 20_000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    x, y = rng.random(n) < 0.5, rng.random(n) < 0.5
    z = np.where(rng.random(n) < 0.9, x | y, rng.random(n) < 0.5)
    return {name: np.where(column, "yes", "no") for name, column in {"x": x, "y": y, "z": z}.items()}


def paid(budget: float, each: float) -> interop.MeteredCiTest:
    schema = dpc.Schema({name: dpc.Levels(["no", "yes"]) for name in "xyz"})
    ledger = dpc.Ledger.in_memory(dpc.PureDP(budget))
    return interop.MeteredCiTest(dpc.Table(rows(), schema, ledger), loss=dpc.PureDP(each))


def test_the_pc_of_causal_learn_runs_on_our_tests() -> None:
    from causallearn.search.ConstraintBased.PC import pc

    test = paid(10, 1)
    with dpc.simulated_noise(1):
        found = pc(test.placeholder, 0.01, test.in_causal_learn(), node_names=list(test.names), show_progress=False)
    assert same(interop.from_causal_learn(found), COLLIDER)
    assert len(test.answers) == len(test.table.ledger.entries())


def test_the_pc_of_pgmpy_runs_on_our_tests_and_pays_each_question_once() -> None:
    from pgmpy.causal_discovery import PC

    test = paid(10, 1)
    frame = pd.DataFrame(test.placeholder, columns=list(test.names))
    with dpc.simulated_noise(1):
        found = PC(ci_test=test, significance_level=0.01, show_progress=False).fit(frame)
    assert same(interop.from_pgmpy(found.causal_graph_), COLLIDER)
    before = len(test.table.ledger.entries())
    assert before == len(test.answers)
    PC(ci_test=test, significance_level=0.01, show_progress=False).fit(frame)
    assert len(test.table.ledger.entries()) == before


def test_a_spent_ledger_stops_the_pc_and_what_was_answered_stays() -> None:
    from causallearn.search.ConstraintBased.PC import pc

    test = paid(2, 1)
    with pytest.raises(BudgetExceededError):
        pc(test.placeholder, 0.01, test.in_causal_learn(), node_names=list(test.names), show_progress=False)
    assert len(test.answers) == 2 == len(test.table.ledger.entries())


def test_an_engine_without_an_order_is_refused_and_its_arrow_table_is_read() -> None:
    import ibis

    frame = ibis.memtable(pd.DataFrame(rows(300)))
    schema = dpc.Schema({name: dpc.Levels(["no", "yes"]) for name in "xyz"})
    with pytest.raises(ParameterError, match="no order of their own: hand over an Arrow table"):
        dpc.Table(frame, schema, dpc.Ledger.without_privacy())
    theirs = dpc.Table(frame.to_pyarrow(), schema, dpc.Ledger.without_privacy())
    ours = dpc.Table(rows(300), schema, dpc.Ledger.without_privacy())
    found = [dpc.ci_test(table, "x", "z", given=[], loss=dpc.NoPrivacy()).statistic for table in (theirs, ours)]
    assert found[0] == found[1]


def test_the_page_runs_with_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(ROOT / "docs" / "howto" / "from-r-and-stata.md", peers=True)


@pytest.mark.parametrize("check", validation.CHECKS, ids=lambda check: f"{check.package}, {check.what}")
def test_the_page_of_validation_holds(check: validation.Check) -> None:
    assert check.measured() >= check.digits
