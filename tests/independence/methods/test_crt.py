"""Randomisation tests: exact ranks, copies that follow their own row, decisions without a p-value."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from benchmarks.rejections import rejection_rate
from dpcausal.errors import ParameterError
from dpcausal.independence.methods.model_x import ModelX, rowwise
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.privacy.noise import generator_from_seed
from tests.independence.neighbours import KINDS, SCHEMA, WITH_MODEL, answer_of, ask, audit, frame, plan_of
from tests.registry.rows import replaced

N = 130


def some(n: int = N, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    z = rng.uniform(-2, 2, n)
    x = np.clip(z / 4 + 0.4 * rng.standard_normal(n), -1, 1)
    y = np.clip(1 + z / 2 + 0.3 * rng.standard_normal(n), -1, 3)
    return np.column_stack([x, y, z, np.zeros(n)])


@pytest.mark.proves("resample-product-sum")
def test_a_model_that_fails_at_one_row_does_not_change_the_others():
    def mean(Z: Any) -> Any:
        if (Z[:, 0] > 1.9).any():
            raise ValueError("no such z")
        return Z[:, 0] / 4

    Z = np.linspace(-1, 1, 20)[:, None]
    other = Z.copy()
    other[3] = 2.0
    before, after = rowwise(mean, Z), rowwise(mean, other)
    assert after[3] == 0 and (np.delete(before, 3) == np.delete(after, 3)).all()


@pytest.mark.proves("resample-product-sum")
def test_the_forms_of_all_rows_ask_a_model_that_mixes_rows_row_by_row():
    def mean(Z: Any) -> Any:  # single simulated rows do not show it
        return np.full(len(Z), 1.0) if len(Z) > 30 and (Z[:, 0] > 1.99).any() else Z[:, 0] / 4

    rows = some(60)
    rows[:, 2] = np.clip(rows[:, 2], -1.9, 1.9)
    mixing = ModelX(mean=mean, sd=0.4)
    for method in ("crt-decision", "PrivCRT"):
        found = audit(rows, replaced(rows, 3, np.array([1.0, 3.0, 2.0, 0.0])), method=method, model_x=mixing)
        assert found.passages and not found.violated, found.summary()
    Z = rows[:, 2:3]
    other = Z.copy()
    other[3] = 2.0
    before, after = (mixing.at(each, row_by_row=True).centre for each in (Z, other))
    assert (np.delete(before, 3) == np.delete(after, 3)).all()
    before, after = (mixing.at(each).centre for each in (Z, other))
    assert (np.delete(before, 3) != np.delete(after, 3)).any()


@pytest.mark.parametrize("method", WITH_MODEL)
def test_a_dependence_is_found_by_every_method_with_a_model(method):
    data = dpc.simulate.smooth_design(2_000, effect=1.0, seed=4)
    model = dpc.ModelX(mean=lambda Z: np.exp(-(Z[:, 0] ** 2) / 2) * np.sin(2 * Z[:, 0]), sd=1.0)
    t = answer_of(data.columns, data.schema, given=["z1"], loss=dpc.PureDP(2), seed=2, missing="impute",
                  method=KINDS[method](model_x=model))  # fmt: skip
    assert t.decision == "dependent"


def test_a_decision_releases_no_pvalue_nor_rank():
    with recording_gate() as recording:
        t = ask(some(), "crt-decision")
    (passage,) = recording.passages
    assert t.pvalue is None and np.shape(passage.value) == () and passage.event.mechanism == "laplace"
    assert "no private p-value" in t.details() and t.to_dict()["pvalue"] is None


@pytest.mark.replication
def test_a_true_null_is_decided_against_no_more_often_than_alpha():
    # 150 tables at .05: at most 26 rejections, a false alarm of 8e-9.
    way = dpc.methods.CrtDecision(resamples=39)
    assert rejection_rate(200, loss=dpc.PureDP(1), method=way, effect=0.0, repetitions=150, seed=2) <= 26 / 150


SAMPLER = dpc.ModelX(sample=lambda Z, generator: Z[:, 0] / 4 + 0.4 * generator.standard_normal(len(Z)))


@pytest.mark.parametrize("model", ["fit", SAMPLER], ids=["fit", "sampler"])
def test_a_fitted_model_and_a_sampler_serve_in_blocks_only(model):
    with dpc.simulated_noise(1):
        t = ask(some(), "crt", model_x=model, given=["z"])
    assert 0 < t.pvalue <= 1 and any("approximate" in caveat for caveat in t.guarantee.caveats) == (model == "fit")
    for method in ("crt-decision", "PrivCRT"):
        with pytest.raises(ParameterError):
            ask(some(), method, model_x=model, given=["z"])


def test_a_model_of_levels_draws_them_with_their_probabilities():
    table = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    Z = np.repeat([[0.0], [1.0]], 20_000, axis=0)
    drawn = dpc.ModelX(table=table).at(Z).copies(1, (0.0, 2.0), generator_from_seed(1))[0]
    for code in (0, 1):
        shares = np.bincount(drawn[Z[:, 0] == code].astype(int), minlength=3) / 20_000
        assert np.abs(shares - table[code]).max() < 0.025  # six standard deviations


@pytest.mark.parametrize(("x", "model"), [
    ("x", {"mean": lambda Z: Z[:, 0] - Z[:, 0].mean(), "sd": 1.0}), ("x", {"mean": lambda Z: np.zeros(3), "sd": 1.0}),
    ("x", {"mean": lambda Z: 1 / 0, "sd": 1.0}), ("x", {"mean": lambda Z: Z[:, 0]}), ("a", {"mean": lambda Z: Z[:, 0]}),
    ("x", {"table": [[0.5, 0.5]]}),
])  # fmt: skip
def test_a_model_that_does_not_fit_is_refused_before_anything_is_spent(x: str, model: dict[str, Any]) -> None:
    table = dpc.Table(frame(some()), SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(1)))
    with pytest.raises(ParameterError):
        method = dpc.methods.Crt(model_x=dpc.ModelX(**model))
        dpc.ci_test(table, x, "y", given=["z"], loss=dpc.PureDP(1), method=method)
    assert not table.ledger.entries()


@pytest.mark.parametrize(
    "arguments",
    [
        {}, {"sd": 1.0}, {"mean": 3}, {"mean": abs, "table": [[1.0]]}, {"mean": abs, "sd": -1.0},
        {"table": [[0.5, 0.6]]}, {"mean": abs, "sd": 10**400}, {"table": np.zeros((0, 2))}, {"table": [[1, 0], [1]]},
    ],
)
def test_a_model_has_one_distribution(arguments):
    with pytest.raises(ParameterError):
        dpc.ModelX(**arguments)


def test_blocks_are_smaller_where_the_distribution_of_x_is_known() -> None:
    calls = ("crt", {}), ("crt", {"model_x": "fit"}), ("gcm", {})
    assert [plan_of(some(1_000), name, 2.0, **options).method.blocks for name, options in calls] == [12, 8, 8]


@pytest.mark.parametrize(("x", "given", "stated", "model"), [
    ("x", ["z", "a"], {"mean": {"a": -0.2, "intercept": 0.1, "z": 0.5}, "sd": 0.4},
     dpc.ModelX(mean=lambda z: 0.1 + 0.5 * z[:, 0] - 0.2 * z[:, 1], sd=0.4)),
    ("x", [], {"mean": 0, "sd": 0.5}, dpc.ModelX(mean=lambda z: np.zeros(len(z)), sd=0.5)),
    ("a", ["g"], {"mean": 0.4}, dpc.ModelX(mean=lambda z: np.full(len(z), 0.4))),
    ("a", ["g"], {"table": [[0.6, 0.4]] * 3}, dpc.ModelX(table=[[0.6, 0.4]] * 3)),
])  # fmt: skip
@pytest.mark.parametrize("kind", [dpc.methods.Crt, dpc.methods.CrtDecision])
def test_a_stated_distribution_answers_as_the_function_does(x, given, stated, model, kind):
    one, other = (
        answer_of(frame(some()), SCHEMA, x, given=given, loss=dpc.PureDP(1), method=kind(model_x=law))
        for law in (stated, model)
    )
    assert one.statistic == other.statistic
