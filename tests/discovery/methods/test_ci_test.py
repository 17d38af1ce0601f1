"""PC by the tests of ``ci_test``: one budget for all, tests that public rules refuse, what it finds."""

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import DpCausalError, LossError


def table_of(budget: dpc.PureDP) -> dpc.Table:
    rng = np.random.default_rng(1)
    a, c = rng.normal(size=600), rng.normal(size=600)
    frame = {"a": a, "b": 0.9 * a + 0.3 * rng.normal(size=600), "c": c}
    ledger = dpc.Ledger.in_memory(budget, accept_large_epsilon=True)
    return dpc.Table(frame, dpc.Schema(dict.fromkeys(frame, dpc.Bounded(-4, 4))), ledger)


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
    loss, way = dpc.PureDP(60), dpc.methods.CiTest(test="kendall", max_order=1)
    found = dpc.discover(table_of(loss), loss=loss, method=way, accept_large_epsilon=True)
    assert any("up to 3 tests given 0 with epsilon 10 or more each" in note for note in found.guarantee.caveats)
    assert steps[:3] == [("tests given 0", place) for place in (1, 2, 3)]
    assert len([step for step in steps if step[0].startswith("tests")]) == found.tests


def test_what_no_test_can_do_is_refused_before_the_spend() -> None:
    table, loss = table_of(dpc.PureDP(1)), dpc.PureDP(1e-8)  # of which a test's share is below what any takes
    for error, options in (
        (DpCausalError, {"loss": dpc.PureDP(1), "method": dpc.methods.CiTest(test="t-test")}),
        (DpCausalError, {"loss": loss, "method": "ci-test"}), (LossError, {"loss": dpc.ZCDP(1), "method": "ci-test"}),
    ):  # fmt: skip
        with pytest.raises(error):
            dpc.discover(table, **options)
    assert not table.ledger.entries()
