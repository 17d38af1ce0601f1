"""The four attacks fail on every public call, and succeed on libraries that are broken as others were."""

import pytest

from tests.factories import make_quick
from tests.registry.attacks import ATTACKS, WAYS, Attack, Way, fallen
from tests.test_registry import spending_calls

quick = pytest.fixture(make_quick, autouse=True)


TASKS = {way.task for way in WAYS}


def test_every_call_that_spends_is_attacked() -> None:
    assert spending_calls() == TASKS
    assert len(ATTACKS) == 4


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.task} {way.name}")
def test_an_attack_fails_on_the_library(attack: Attack, way: Way) -> None:
    assert not attack.succeeds(way)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_every_task_falls_to_an_attack_where_the_library_is_broken(attack: Attack) -> None:
    tasks = {broken: {way.task for way in fallen(attack, broken)} for broken in attack.broken}
    assert set().union(*tasks.values()) == TASKS
    assert all(tasks.values()), tasks
