"""PC by the tests of ``ci_test``: one budget for all, tests that public rules refuse, what it finds."""

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import DpCausalError, LossError

SCHEMA = dpc.Schema({name: dpc.Bounded(-4, 4) for name in "abc"})


def frame(rows: int = 600) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    a, c = rng.normal(size=rows), rng.normal(size=rows)
    return {"a": a, "b": np.clip(0.9 * a + 0.3 * rng.normal(size=rows), -4, 4), "c": c}


def asked(loss: dpc.PureDP | dpc.NoPrivacy, **more: object) -> dpc.Discovery:
    without = isinstance(loss, dpc.NoPrivacy)
    ledger = dpc.Ledger.without_privacy() if without else dpc.Ledger.in_memory(loss, accept_large_epsilon=True)
    table = dpc.Table(frame(), SCHEMA, ledger)
    question = {"knowledge": more.pop("knowledge", None)}
    way = dpc.methods.CiTest(**more)  # type: ignore[arg-type]
    return dpc.discover(table, loss=loss, method=way, accept_large_epsilon=True, **question)  # type: ignore[arg-type]


def test_what_each_test_gets_is_told_before_and_the_tests_are_counted_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rich.progress import Progress

    steps: list[tuple[str, int]] = []
    monkeypatch.setattr(
        Progress, "update", lambda self, task, **found: steps.append((found["description"], found["completed"]))
        if "description" in found else None,
    )  # fmt: skip
    monkeypatch.setattr("dpcausal.core.progress.is_terminal", lambda: True)
    found = asked(dpc.PureDP(60), test="kendall", max_order=1)
    assert any("up to 3 tests given 0 with epsilon 10 or more each" in note for note in found.guarantee.caveats)
    assert steps[:3] == [("tests given 0", place) for place in (1, 2, 3)]
    assert len([step for step in steps if step[0].startswith("tests")]) == found.tests


def test_what_no_test_can_do_is_refused_before_the_spend() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    table = dpc.Table(frame(), SCHEMA, ledger, missing="impute")
    with pytest.raises(DpCausalError):
        dpc.discover(table, loss=dpc.PureDP(1), method=dpc.methods.CiTest(test="t-test"))
    with pytest.raises(DpCausalError):  # the first test's share is below what any test takes
        dpc.discover(table, loss=dpc.PureDP(1e-8), method="ci-test")
    with pytest.raises(LossError):
        dpc.discover(table, loss=dpc.ZCDP(1), method="ci-test")
    assert not ledger.entries()
