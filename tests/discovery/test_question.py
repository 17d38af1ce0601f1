"""What public numbers predict: a loss too small for its noise is refused unspent, and want of power is said."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.discovery.question import STRONG, too_few
from dpcausal.discovery.search.pc import Terms
from dpcausal.discovery.search.release_search import GraphTest
from dpcausal.errors import LossError
from dpcausal.releases.counts import NoisyTable
from dpcausal.statistics.wald import strength_of_levels
from tests.discovery.ways import PROVED, TWO, graph_of, loss_of
from tests.factories import refused_unpaid, table


def table_of(rows: int, columns: int, loss: Any, column: Any = TWO) -> dpc.Table:
    rng = np.random.default_rng(2)
    frame = {f"v{k}": rng.integers(0, 2, rows) for k in range(columns)}
    return table(frame, dict.fromkeys(frame, column), loss, missing="impute")


def test_few_rows_are_said_to_be_too_few_and_no_edge_is_not_told_as_a_finding() -> None:
    loss = dpc.PureDP(1)
    few = dpc.discover(table_of(20, 5, loss), loss=loss)
    assert any("20 rows at this loss are too few" in words for words in few.guarantee.caveats)
    assert few.graph.skeleton or "0 edges" in few.headline()[0]
    (imputed,) = dpc.discover(table_of(2_000, 5, loss), loss=loss).guarantee.caveats
    assert "missing='impute'" in imputed


def test_the_caveat_says_how_often_a_strong_edge_is_found() -> None:
    """Two even columns with V = ½: where the caveat holds at a tenth of the noise, most are found; at ten times, few.

    400 tables each; the shares of them lie beyond ½ by more than 6 standard errors of 0.025, a chance below 1e-8.
    """
    rng = np.random.default_rng(7)
    rows, alpha, tables = 400, 0.05, 400
    noises = np.geomspace(1, 1e6, 200).tolist()
    limit = next(v for v in noises if too_few([strength_of_levels(2, 2, rows, v, STRONG)], rows, alpha))
    for factor, many in ((0.1, True), (10.0, False)):
        variance = limit * factor
        found = 0
        for _ in range(tables):
            exact = rng.multinomial(rows, [0.375, 0.125, 0.125, 0.375]).reshape(2, 2)
            noisy = exact + np.rint(rng.normal(0, variance**0.5, (2, 2))).astype(np.int64)
            table = NoisyTable(("a", "b"), rows, noisy, variance, "discrete-gaussian")
            ask = GraphTest(table, Terms("pc", alpha, 0, dpc.Knowledge()))
            found += ask("a", "b", ()).separated is False
        assert (found > 0.65 * tables) if many else (found < 0.35 * tables)


def test_cut_columns_are_named_with_their_parts() -> None:
    schema = dpc.Schema({"age": dpc.Bounded(0, 100), "dose": dpc.Bounded(0, 9, cuts=[3]), "flag": TWO})
    rng = np.random.default_rng(1)
    frame = {"age": rng.uniform(0, 100, 5_000), "dose": rng.uniform(0, 9, 5_000), "flag": rng.integers(0, 2, 5_000)}
    told = " ".join(graph_of(frame, schema, dpc.PureDP(1)).guarantee.caveats)
    assert "declared cuts: 'dose' into 2;" in told and "one width: 'age';" in told


SMALL = (dpc.PureDP(2e-9), dpc.ZCDP(1e-17))


@pytest.mark.parametrize(("loss", "method", "size", "column"), [
    *((loss_of(way, SMALL), way, (50, 3), TWO) for name, way in PROVED.items() if "Reconciled" not in name),
    (dpc.ZCDP(1e-11), "moments", (50, 3), TWO),
    # The contrasts of pairs could be released, with noise of 8e14, and those of three columns could not.
    (dpc.ZCDP(8.8e-29), "parities", (40, 8), dpc.Levels(range(4))),
])  # fmt: skip
def test_a_loss_too_small_for_its_noise_is_refused_before_it_is_spent(
    loss: Any, method: Any, size: tuple[int, int], column: Any
) -> None:
    asked = table_of(*size, type(loss)(1), column)
    assert "too little" in refused_unpaid(asked, LossError, dpc.discover, loss=loss, method=method)


@pytest.mark.parametrize("name", PROVED)
@pytest.mark.parametrize("alpha", [1e-320, 1e-17, 1 - 2.0**-53])
def test_every_level_between_0_and_1_is_defined(name: str, alpha: float) -> None:
    loss = loss_of(PROVED[name])
    found = dpc.discover(table_of(50, 3, loss), loss=loss, method=PROVED[name], alpha=alpha)
    assert len(found.graph.nodes) == 3


def test_methods_that_deal_rows_into_blocks_take_the_order_of_the_rows_as_public() -> None:
    loss = dpc.ApproxDP(4, 1e-6)
    dealt = dpc.methods.CiTest(test="kendall", max_order=0)
    for method, told in ((dealt, True), (dpc.papers.PrivPc(constants="corrected"), False)):
        public = dpc.discover(table_of(400, 2, loss), loss=loss, method=method).guarantee.public
        assert ("the order of the rows" in public) is told
