"""A run answers what the run before it answered: what is drawn follows from sources and names alone."""

import random
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcausal.privacy import noise


def drawn() -> list[object]:
    found: list[object] = []

    @given(st.tuples(st.integers(), st.floats(), st.text()))
    @settings(max_examples=400, database=None, derandomize=True)
    def each(case: object) -> None:
        found.append(case)

    each()
    return [repr(case) for case in found]


def test_modules_that_happen_to_be_loaded_do_not_change_what_hypothesis_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = drawn()
    assert len(before) >= 400
    file = tmp_path / "loaded_elsewhere.py"
    file.write_text(f"CONSTANTS = {[10**6 + k for k in range(400)]}, {[k / 7 for k in range(1, 400)]}\n")
    module = ModuleType("loaded_elsewhere")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert drawn() == before


def test_hypothesis_searches_from_a_seed_of_the_tests_own(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--hypothesis-profile"):
        assert settings.default.derandomize and settings.default.database is None and settings.default.deadline is None


def test_public_coins_follow_from_the_name_of_the_test(request: pytest.FixtureRequest) -> None:
    seed = request.config.getoption("--hypothesis-seed") or ""
    known = random.Random(f"{seed} {request.node.nodeid}")
    states = [known.getrandbits(32), known.getrandbits(32)]
    assert noise.public_generator()[1] == known.getrandbits(63)
    assert random.getstate() == random.Random(states[0]).getstate()


@pytest.mark.fresh_bits
def test_a_test_may_ask_for_the_bits_of_the_operating_system() -> None:
    import secrets

    assert noise.secrets is secrets
