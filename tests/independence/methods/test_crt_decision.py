"""The forms that look at all rows at once: what comes to the gate, how ε is shared, and what they find."""

import math
from typing import Any

import numpy as np
import pytest

from dpcausal.independence.methods import crt_decision as features
from dpcausal.independence.methods.crt_decision import chunks_of, size_of
from dpcausal.independence.question import rows_of
from dpcausal.mechanisms.gate import Passage, recording_gate
from dpcausal.papers.independence import priv_gcm
from dpcausal.papers.independence.priv_crt import published_resample_bound
from dpcausal.papers.independence.priv_gcm import published_products_bound
from dpcausal.papers.independence.priv_kendall import published_kendall, published_spearman
from dpcausal.privacy.budget import UNPROVEN
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.regression.residual_products import CHUNK_ROWS, products_sensitivity, resample_sum_sensitivity
from dpcausal.statistics.rank import conditional_kendall
from tests.independence.neighbours import HIGH, LOW, MODEL, SCHEMA, Rows, ask, plan_of

N = 60


def some(seed: int = 2) -> Rows:
    rng = np.random.default_rng(seed)
    rows = rng.uniform([-1, -1, -2, 0], [1, 3, 2, 2], (N, 4))
    rows[:, 3] = np.rint(rows[:, 3])
    return rows


def passed(rows: Rows, method: str, **arguments: Any) -> tuple[list[Passage], Any]:
    def as_it_is(event: Any, value: Any) -> Any:
        if event.mechanism == "noisy-max":
            return np.asarray(int(np.argmax(value)))
        return value

    with recording_gate(as_it_is) as recording:
        result = ask(rows, method, **arguments)
    return recording.passages, result


def by_hand(phi: Rows, rows: Rows, penalty: float) -> Rows:
    """Return the residual products, from the normal equations."""
    U = np.column_stack([rows[:, 0], (rows[:, 1] - 1) / 2])
    system = phi.T @ phi + N * penalty / 2 * np.eye(phi.shape[1])
    return np.prod(U - phi @ np.linalg.solve(system, phi.T @ U), axis=1)


@pytest.mark.parametrize("constants", ["corrected", "published"])
def test_the_published_form_brings_every_product_at_its_constant(constants, monkeypatch):
    chunks, rows, honest = [], some(), features.chunks_of
    monkeypatch.setattr(features, "chunks_of", lambda *given: chunks.append(honest(*given)) or chunks[-1])
    (passage,), t = passed(rows, "PrivGCM", constants=constants)
    R = by_hand(np.vstack([part for _, part in chunks[0]()]), rows, 10.0)
    assert passage.value == pytest.approx(R, abs=1e-9)
    stated = {"published": published_products_bound(10.0), "corrected": float(products_sensitivity(N, 10.0).bound)}
    assert passage.bound == pytest.approx(stated[constants], rel=1e-9)
    assert t.statistic == pytest.approx(math.sqrt(N) * R.mean() / R.std())


@pytest.mark.parametrize("constants", ["corrected", "published"])
def test_the_published_randomisation_scores_ranks_by_their_distance(constants):
    (passage,), t = passed(some(), "PrivCRT", constants=constants, given=["z"])
    scores = passage.value
    assert scores.shape == (20,) and scores.max() == 0 and (np.diff(np.sign(np.diff(scores))) <= 0).all()
    assert passage.event.mechanism == "noisy-max" and t.pvalue == (1 + t.statistic) / 20
    (other,), _ = passed(some(), "PrivCRT", given=["z"])
    ratio = published_resample_bound(10.0) / resample_sum_sensitivity(N, 10.0).rounded_up
    if constants == "published":
        assert other.value == pytest.approx(scores * ratio, rel=1e-6)


def test_rank_tests_release_the_statistic_within_public_strata():
    rows = some()
    (passage,), _ = passed(rows, "kendall", given=["g"])
    assert float(passage.value) == conditional_kendall(rows[:, 0], rows[:, 1], rows[:, 3])


@pytest.mark.parametrize(
    ("method", "statistic", "bound"),
    [("Kendall of Priv-PC", published_kendall, 4.5 / math.sqrt(N)),
     ("Spearman of Priv-PC", published_spearman, 31 * math.sqrt(3 / (N - 3)))],
)
def test_rank_tests_as_published_have_the_published_statistic_and_constant(method, statistic, bound):
    rows = some()
    asked = {"given": ["g"], "accept_unproven": True}
    (passage,), t = passed(rows, method, **asked)
    assert float(passage.value) == pytest.approx(statistic(rows[:, 0], rows[:, 1], rows[:, 3]))
    assert float(passage.bound) == pytest.approx(bound) and t.statistic == passage.value
    # Of tau the proof fails: a stamp, and no claim.
    assert (UNPROVEN in t.guarantee.caveats) == (not t.guarantee.proofs) == method.startswith("Kendall")


def arrays_of(rows: Rows) -> Any:
    columns = plan_of(rows, "crt-decision").question.table.columns(("x", "y", "z", "g"))
    return rows_of(columns, SCHEMA, ("x",), ("y",), ("z", "g"))


def features_of(arrays: Any) -> Rows:
    return np.vstack([part for _, part in chunks_of(arrays, SCHEMA, ("z", "g"), 0.1, generator_from_seed(1))()])


@pytest.mark.proves("residual-rounding")
@pytest.mark.proves("resample-product-sum")
@pytest.mark.parametrize("n", [CHUNK_ROWS + 57, 2 * CHUNK_ROWS, 131])
def test_features_responses_and_copies_of_a_row_are_the_same_bits_whatever_stands_beside_it(n):
    rng = np.random.default_rng(n)
    rows = rng.uniform(LOW, HIGH, (n, 4))
    beside, same = rows.copy(), rng.random(n) < 0.5
    beside[~same] = rng.choice(np.stack([LOW, HIGH, 0 * LOW]), int((~same).sum()))
    question: Any = plan_of(rows, "crt-decision").question
    computed = []
    for arrays in map(arrays_of, (rows, beside)):
        copies = MODEL.at(arrays.raw, row_by_row=n < 1_000).copies(3, (-1.0, 1.0), generator_from_seed(2)).T
        phi = features_of(arrays)
        assert phi.shape == (n, size_of(SCHEMA, ("z", "g"))) == (n, 203)
        assert np.linalg.norm(phi, axis=1) == pytest.approx(np.ones(n), abs=1e-11)
        computed.append(np.hstack([phi, copies, priv_gcm.responses(arrays, question)]))
    assert computed[0][same].tobytes() == computed[1][same].tobytes()
    assert (computed[0][~same] != computed[1][~same]).any()
