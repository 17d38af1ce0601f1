"""The graph of a release of moments: free, in the learnt shape, its noise stated as large as it is."""

import numpy as np

import dpcausal as dpc
from dpcausal.privacy.noise import generator_from_seed
from tests import factories


def released(seed: int, n: int, loss: dpc.ApproxDP) -> tuple[dpc.Release, dpc.Cpdag, dpc.Ledger]:
    """Return moments of six columns of a chain with a fork, one of them a hundred times as wide as another."""
    rng = np.random.default_rng(seed)
    a, e = rng.normal(size=(2, n))
    b = 0.8 * a + rng.normal(size=n)
    c = b + rng.normal(size=n)
    d = 0.7 * b - e + rng.normal(size=n)
    frame = {"a": a, "b": 10 * b, "c": 0.1 * c, "d": d, "e": e, "f": rng.normal(size=n)}
    truth = dpc.Cpdag.from_dag(list(frame), [("a", "b"), ("b", "c"), ("b", "d"), ("e", "d")])
    with dpc.simulated_noise(seed):
        private = factories.table(frame, dict.fromkeys(frame, dpc.Bounded(-100, 100)), loss)
        return dpc.moments(private, list(frame), loss=loss), truth, private.ledger


def test_a_release_of_moments_is_asked_for_its_graph_for_nothing() -> None:
    loss = dpc.ApproxDP(1, 1e-6)
    found = []
    for seed in range(5):
        moments, truth, ledger = released(seed, 10_000, loss)
        asked = moments.discover()
        assert asked.method == "moments" and asked.guarantee == moments.guarantee and len(ledger.entries()) == 1
        found.append(asked.graph.f1(truth))
        assert dpc.Release.from_json(moments.to_json()).discover().graph == asked.graph
    assert np.mean(found) > 0.9


def test_the_variance_stated_for_a_graph_is_at_least_that_of_repeated_noise() -> None:
    """2,000 draws of the noise alone: the ratio of a sample variance to its law has a deviation of .03."""
    moments, _, _ = released(1, 20_000, dpc.ApproxDP(1, 1e-6))
    stated = moments.as_graph_release()
    generator = generator_from_seed(3)
    drawn = np.array([moments.with_extra_noise(generator).as_graph_release().covariance for _ in range(2_000)])  # type: ignore[attr-defined]
    seen = drawn.var(axis=0)[np.triu_indices(6, 1)]
    assert 0.5 < seen.max() / stated.variance < 1.2  # type: ignore[attr-defined]
