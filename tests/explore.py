"""Searches from whatever seed is given: the falsifier on every claim, the grey box on every call, random calls.

No part of the suite, which runs the same searches from seeds of its own; ``make fuzz`` runs this page.
"""

import random

import pytest

from dpcausal.audit import falsify
from dpcausal.papers.statistics import hsic as gaussian
from tests.direction.neighbours import ANSWERS
from tests.factories import make_quick
from tests.registry.index import SENSITIVITIES, TASKS
from tests.registry.rows import SensitivityRow, TaskRow
from tests.test_fuzz import PROPERTIES, run

pytestmark = pytest.mark.explores


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A seed that follows from the run's seed and the test's name."""
    return random.Random(f"{request.config.getoption('--hypothesis-seed')} {request.node.nodeid}").getrandbits(31)


@pytest.mark.parametrize("row", SENSITIVITIES, ids=[row.claim for row in SENSITIVITIES])
def test_no_neighbours_move_a_statistic_past_its_bound(
    row: SensitivityRow, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaussian, "TILE", 32)
    norm = row.sensitivity(max(row.sizes)).norm
    found = falsify(
        row.statistic, lambda m: row.sensitivity(m).bound, sizes=row.sizes, norm=norm, seed=seed, **row.domain
    )
    assert not found.violated, found.summary()


@pytest.mark.parametrize("row", TASKS, ids=[row.name for row in TASKS])
def test_a_call_brings_the_same_to_the_gate_on_neighbours(
    row: TaskRow, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_quick(monkeypatch)
    for answers in ANSWERS.values():
        audit = row.compare(seed, answers)
        assert audit.passages and not audit.violated, audit.summary()


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_random_calls_end_in_an_answer_or_in_one_of_our_errors(name: str) -> None:
    run(name, PROPERTIES[name].share, fixed=False)
