"""Blocks: whom they protect, what they do with rows that break a fit, and that they find what is there."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.independence.methods import block_test as blocks
from dpcausal.independence.methods.block_test import default_blocks
from dpcausal.independence.methods.gcm import weights
from dpcausal.independence.question import Sample as Arrays
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.papers.independence import priv_tot
from dpcausal.regression.smoother import Given
from tests.direction.neighbours import block_positions
from tests.independence.neighbours import BLOCKS, HIGH, KINDS, LOW, SCHEMA, answer_of, ask, frame


def takes(method: str, options: dict[str, Any]) -> bool:
    return set(options) <= {field.name for field in fields(KINDS[method])}


@pytest.mark.proves("block-sum")
@pytest.mark.parametrize(
    ("method", "options"), [(method, few) for few in ({}, {"workers": 2}) for method in BLOCKS if takes(method, few)]
)
def test_a_score_is_the_same_bits_whatever_the_rows_of_other_blocks_are(method, options, monkeypatch):
    # Before it is rounded: no matrix product, vectorised function or order of a sum lets a block bear on another.
    scores: list[list[float]] = []
    honest = blocks.block_scores
    for page in (blocks, priv_tot):
        monkeypatch.setattr(page, "block_scores", lambda *given: scores.append(honest(*given)) or scores[-1])
    n, count = 500, 4
    parts, rng = block_positions(n, count), np.random.default_rng(4)
    rows = rng.uniform(LOW, HIGH, (n, 4))
    tables = [rows]
    for block in range(count):
        other = rows.copy()
        other[parts[block]] = rng.choice(np.stack([LOW, HIGH, rows[0]]), len(parts[block]))
        tables.append(other)
    for table in tables:
        with dpc.simulated_noise(0):
            ask(table, method, blocks=count, **options)
    first = np.array(scores[0])
    assert len(set(first.tolist())) == count
    for block, second in enumerate(scores[1:]):
        same = np.arange(count) != block
        assert np.array(second)[same].tobytes() == first[same].tobytes()


def test_the_number_of_blocks_follows_from_rows_and_epsilon_alone():
    sizes = (120, 9), (2_000, 1), (10_000, 0.25), (10_000, 2), (10**6, 1), (10**9, 1)
    assert [default_blocks(n, e) for n, e in sizes] == [2, 16, 80, 12, 500, 20_000]
    assert [default_blocks(n, e, learns=False) for n, e in sizes] == [2, 24, 96, 12, 24, 24]


def smooth(n: int, effect: float, loss: Any, method: Any) -> Any:
    data = dpc.simulate.smooth_design(n, effect=effect, seed=3)
    return answer_of(data.columns, data.schema, given=["z1"], loss=loss, seed=5, method=method)


def test_a_dependence_is_found_and_its_sign_is_that_of_the_statistic():
    for effect in (0.6, -0.6):
        t = smooth(3_000, effect, dpc.PureDP(1), dpc.methods.Gcm(regression="additive"))
        assert t.decision == "dependent" and t.pvalue < 0.001
        assert np.sign(t.statistic) == np.sign(effect)


def test_a_covariance_that_cancels_is_found_by_weights_only():
    rng = np.random.default_rng(12)
    x, z = rng.standard_normal((2, 4_000)).clip(-3, 3)
    z = np.abs(z) * np.resize([1, -1], 4_000)  # as many of either sign
    y = (0.4 * x * np.sign(z) + rng.standard_normal(4_000)).clip(-3, 3)
    frame = {"x": x, "y": y, "z": z}
    for method, decision in (("gcm-weighted", "dependent"), ("gcm", "not detected")):
        t = answer_of(frame, dpc.Bounded(-3, 3), given=["z"], loss=dpc.PureDP(1), seed=3, method=method)
        assert t.decision == decision


def test_levels_and_several_columns_take_part_by_their_largest_covariance():
    rng = np.random.default_rng(8)
    g = rng.integers(3, size=2_000)
    z = (g - 1 + rng.standard_normal(2_000)).clip(-4, 4)
    x = rng.integers(3, size=2_000)
    y = (z + 1.5 * (x == 2) + rng.standard_normal(2_000)).clip(-8, 8)
    schema = dpc.Schema({"x": dpc.Levels([0, 1, 2]), "y": dpc.Bounded(-8, 8), "z": dpc.Bounded(-4, 4),
                         "g": dpc.Levels([0, 1, 2])})  # fmt: skip
    for columns, decision in ((["x"], "dependent"), (["x", "g"], "dependent"), (["g"], "not detected")):
        given = [name for name in ("z", "g") if name not in columns]
        t = answer_of({"x": x, "y": y, "z": z, "g": g}, schema, columns, given=given, loss=dpc.PureDP(2))
        assert t.decision == decision and t.x == tuple(columns)


def test_without_privacy_the_measure_of_all_rows_is_the_usual_one():
    for method in ("gcm", "gcm-weighted"):
        assert smooth(4_000, 0.2, dpc.NoPrivacy(), method).pvalue < 0.01


@pytest.mark.parametrize("method", ["gcm", "gcm-weighted", "crt"])
@pytest.mark.parametrize("still", [0, 1])
def test_without_privacy_a_column_that_does_not_vary_depends_on_nothing(method: str, still: int) -> None:
    """Seen to fail: a division by zero, of the variance that is left of it."""
    rows = np.random.default_rng(2).uniform(LOW, HIGH, (200, 4))
    rows[:, still] = 0.5
    assert ask(rows, method, loss=dpc.NoPrivacy()).pvalue == 1


def test_persons_of_private_ids_move_two_blocks_and_those_of_public_ones_one() -> None:
    bounds, columns = {}, frame(np.random.default_rng(5).uniform(LOW, HIGH, (300, 4)))
    for ids in ("private", "public"):
        ledger = dpc.Ledger.in_memory(dpc.PureDP(1), person="id", ids=ids)
        table = dpc.Table({**columns, "id": np.arange(300) // 2}, SCHEMA, ledger, person="id", ids=ids)
        with recording_gate() as recording:
            dpc.ci_test(table, "x", "y", given=["z"], method=dpc.methods.Gcm(blocks=2), loss=dpc.PureDP(1))
        bounds[ids] = recording.passages[0].bound
    assert bounds["private"] == 2 * bounds["public"]


def test_weights_are_signs_and_start_with_the_plain_measure():
    given = Given(np.arange(8.0)[:, None], np.repeat([0, 1], 4)[:, None])
    rows = Arrays(np.zeros((8, 1)), np.zeros((8, 1)), given, np.zeros((8, 2)), np.ones(8, dtype=bool))
    found = weights(rows)
    assert found.shape == (8, 6) and (found[:, 0] == 1).all() and (np.abs(found) == 1).all()
