"""Rows that lack a column contribute nothing, inside their own block, stratum or pair, and everyone keeps his bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.independence.methods import ALL
from dpcausal.independence.methods.block_test import LEAST_COMPLETE, BlockTest, block_scores
from dpcausal.independence.methods.hsic import first_returns
from dpcausal.independence.question import IndependenceQuestion
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.privacy.noise import generator_from_seed

N = 480
SCHEMA = dpc.Schema(
    {"x": dpc.Bounded(-4, 4), "y": dpc.Bounded(-4, 4), "z": dpc.Bounded(-4, 4), "u": dpc.Bounded(0, 1),
     "g": dpc.Levels([0, 1, 2])}
)  # fmt: skip
LAW = dpc.ModelX(mean=lambda z: 0.5 * z[:, 0], sd=1.0)


def law_of(kind: Any) -> dict[str, Any]:
    return {"model_x": LAW} if hasattr(kind, "model_x") else {}


METHODS: dict[str, tuple[Any, list[str]]] = {
    **{kind.name: (kind(blocks=4, **law_of(kind)), ["z"]) for kind in ALL if issubclass(kind, BlockTest)},
    "crt-decision": (dpc.methods.CrtDecision(model_x=LAW, resamples=39), ["z"]),
    "kendall": (dpc.methods.Kendall(), ["z"]),
    "neighbours": (dpc.methods.Neighbours(), ["z"]),
    "kendall with levels": (dpc.methods.Kendall(), ["g"]),
    "strata-covariance": (dpc.methods.StrataCovariance(), ["g"]),
    "hsic": (dpc.methods.Hsic(resamples=19), []),
}
Frame = dict[str, np.ndarray]


def frame(seed: int, share: float = 0.3) -> Frame:
    """Return rows of which a share lacks x, and as many y."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(N)
    columns = {"x": 0.5 * z + rng.standard_normal(N), "y": 0.7 * z + rng.standard_normal(N), "z": z}
    columns["x"][rng.random(N) < share] = np.nan
    columns["y"][rng.random(N) < share] = np.nan
    return {**columns, "u": rng.random(N), "g": rng.integers(0, 3, N)}


def table_of(columns: Frame) -> dpc.Table:
    return dpc.Table(columns, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(10)))


def asked(columns: Frame, name: str) -> Any:
    method, given = METHODS[name]
    with dpc.simulated_noise(7):
        return dpc.ci_test(table_of(columns), "x", "y", given=given, method=method, alpha=0.05, loss=dpc.PureDP(1.0))


@pytest.mark.parametrize("name", METHODS)
def test_what_a_row_that_lacks_a_column_holds_elsewhere_does_not_count(name: str) -> None:
    """Seen to fail where such a row counts as the midpoint."""
    before = frame(1)
    lacks = np.isnan(before["x"])
    after = {key: value.copy() for key, value in before.items()}
    after["y"][lacks], after["z"][lacks], after["u"] = 3.0, -3.0, before["u"][::-1]
    assert lacks.sum() > 100 and asked(before, name).statistic == asked(after, name).statistic


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", ["kept to kept", "kept to out", "out to kept", "out to out"])
def test_a_replaced_row_moves_no_answer_by_more_than_its_bound(name: str, kind: str) -> None:
    """The same events with the same public facts, whether the row is left out or not."""
    method, given = METHODS[name]
    extremes = {"x": 4.0, "y": -4.0, "z": 4.0}
    rng = np.random.default_rng(sum(map(ord, name + kind)))
    for trial in range(4):
        before = frame(20 + trial)
        out = np.isnan(before["x"]) | np.isnan(before["y"])
        place = int(rng.choice(np.flatnonzero(out if kind.startswith("out") else ~out)))
        after = {key: value.copy() for key, value in before.items()}
        for key, value in extremes.items():
            after[key][place] = value
        if kind.endswith("out"):
            after["x" if trial % 2 else "y"][place] = np.nan
        passages = []
        for columns in (before, after):
            with recording_gate("low") as recording:
                dpc.ci_test(table_of(columns), "x", "y", given=given, method=method, alpha=0.05, loss=dpc.PureDP(1.0))
            passages.append(recording.passages)
        for one, other in zip(*passages, strict=True):
            assert one.event == other.event and np.abs(one.value - other.value).sum() <= one.bound


def rows_of_test(columns: Frame) -> tuple[Any, IndependenceQuestion]:
    question = IndependenceQuestion.of(table_of(columns), "x", "y", ["z"], 0.05)
    return question.read(), question


def test_leaving_a_row_out_changes_the_score_of_its_own_block_alone() -> None:
    """Seen to fail where the kept rows are dealt, or the blocks' coins follow the number of those kept."""
    method, before = dpc.methods.Gcm(blocks=6, resamples=19), frame(3)
    place = int(np.flatnonzero(~np.isnan(before["x"]))[100])
    after = {key: value.copy() for key, value in before.items()}
    after["x"][place] = np.nan
    settled = method.plan(rows_of_test(before)[1], dpc.PureDP(1.0))
    found = [block_scores(settled, *rows_of_test(columns), generator_from_seed(5)) for columns in (before, after)]
    assert sum(one != other for one, other in zip(*found, strict=True)) == 1


def test_blocks_of_too_few_kept_rows_say_what_their_own_coins_say() -> None:
    """The sum of their scores keeps its law: standard normal scores, other ones for other seeds, the rows unheard."""
    columns = frame(4, share=0.0)
    columns["x"][LEAST_COMPLETE - 1 :] = np.nan
    method = dpc.methods.Gcm(blocks=4).plan(rows_of_test(columns)[1], dpc.PureDP(1.0))
    empty = {**columns, "x": np.full(N, np.nan)}
    scores = [block_scores(method, *rows_of_test(columns), generator_from_seed(seed)) for seed in range(250)]
    nothing = [block_scores(method, *rows_of_test(empty), generator_from_seed(seed)) for seed in range(250)]
    assert scores == nothing
    from scipy.stats import kstest

    assert kstest(np.ravel(scores), "norm").pvalue > 1e-4  # false alarm 1e-4


def uniform(kept: np.ndarray, draws: int) -> Callable[[], float]:
    from scipy.stats import chisquare

    rng = np.random.default_rng(8)
    found = [tuple(first_returns(rng.permutation(kept.size), kept)) for _ in range(draws)]
    return lambda: float(chisquare([found.count(one) for one in sorted(set(found))]).pvalue)


def test_first_returns_permute_the_kept_rows_uniformly() -> None:
    kept = np.array([True, False, True, False, False, True, True])
    rng = np.random.default_rng(9)
    orders = {tuple(first_returns(rng.permutation(7), kept)) for _ in range(2000)}
    assert len(orders) == 24 and {tuple(sorted(order)) for order in orders} == {(0, 2, 5, 6)}
    assert uniform(kept, 4000)() > 1e-4  # false alarm 1e-4


def test_a_row_that_is_left_out_changes_one_partner_of_a_permutation() -> None:
    rng = np.random.default_rng(10)
    for _ in range(200):
        order, kept = rng.permutation(30), rng.random(30) < 0.6
        out = int(np.flatnonzero(kept)[0])
        less = kept.copy()
        less[out] = False
        whole = dict(zip(np.flatnonzero(kept), first_returns(order, kept), strict=True))
        part = dict(zip(np.flatnonzero(less), first_returns(order, less), strict=True))
        assert sum(whole[row] != partner for row, partner in part.items()) <= 1


@pytest.mark.parametrize("name", METHODS)
def test_all_rows_may_lack_a_column(name: str) -> None:
    columns = {**frame(5), "x": np.full(N, np.nan)}
    found = asked(columns, name)
    assert np.isfinite(found.statistic) and found.n == N


@pytest.mark.parametrize(
    "method", [dpc.papers.PrivGcm(), dpc.papers.PrivCrt(model_x=LAW)], ids=lambda one: one.name
)
def test_a_method_that_cannot_leave_rows_out_is_refused_before_the_spend(method: Any) -> None:
    table = table_of(frame(6))
    with pytest.raises(dpc.errors.ParameterError, match="cannot leave out rows"):
        dpc.ci_test(table, "x", "y", given=["z"], method=method, loss=dpc.ApproxDP(1, 1e-6), accept_unproven=True)
    assert not table.ledger.entries()


# ------------------------------------------------------------------------------------------- mutants


def _changed(method: Any, alter: Callable[[Any], Any]) -> list[int]:
    """Return in how many blocks a left-out row shows, for ten rows, all altered before they are dealt."""
    before, counts = frame(3), []
    for place in np.flatnonzero(~np.isnan(before["x"]))[60:70]:
        after = {key: value.copy() for key, value in before.items()}
        after["x"][place] = np.nan
        found = []
        for columns in (before, after):
            rows, question = rows_of_test(columns)
            found.append(block_scores(method, alter(rows), question, generator_from_seed(5)))
        counts.append(sum(one != other for one, other in zip(*found, strict=True)))
    return counts


def test_rows_that_are_left_out_before_they_are_dealt_are_caught() -> None:
    method = dpc.methods.Gcm(blocks=6, resamples=19).plan(rows_of_test(frame(3))[1], dpc.PureDP(1.0))
    assert max(_changed(method, lambda rows: rows)) <= 1
    assert max(_changed(method, lambda rows: rows.complete())) > 1


def test_blocks_whose_coins_follow_the_number_of_kept_rows_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    method = dpc.methods.Gcm(blocks=6, resamples=19).plan(rows_of_test(frame(3))[1], dpc.PureDP(1.0))
    from dpcausal.independence.methods import block_test as blocks

    kept = []

    def counted(rows: Any) -> Any:
        kept[:] = [int(rows.is_complete.sum())]
        return rows

    monkeypatch.setattr(blocks, "generator_from_seed", lambda seed: generator_from_seed(seed // 2 + kept[0]))
    assert max(_changed(method, counted)) > 1


def test_kept_rows_that_are_permuted_afresh_are_caught() -> None:
    """The mutant of ``first_returns``: a permutation of the kept ones, in the order in which all are permuted."""
    rng = np.random.default_rng(11)

    def afresh(order: np.ndarray, kept: np.ndarray) -> np.ndarray:
        places = np.flatnonzero(kept)
        return places[np.argsort(np.argsort(order[: places.size]))]

    changed = []
    for _ in range(50):
        order, kept = rng.permutation(30), rng.random(30) < 0.6
        less = kept.copy()
        less[np.flatnonzero(kept)[0]] = False
        whole = dict(zip(np.flatnonzero(kept), afresh(order, kept), strict=True))
        part = dict(zip(np.flatnonzero(less), afresh(order, less), strict=True))
        changed.append(sum(whole[row] != partner for row, partner in part.items()))
    assert max(changed) > 1


def test_what_is_imputed_in_silence_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that promises to leave rows out and keeps them: what such a row holds elsewhere then counts."""
    from dpcausal.data.records import Rows

    of = Rows.of
    monkeypatch.setattr(Rows, "of", lambda found, inside, _missing: of(found, inside, "impute"))
    before = frame(1)
    after = {**before, "y": np.where(np.isnan(before["x"]), 3.0, before["y"])}
    assert asked(before, "gcm").statistic != asked(after, "gcm").statistic
