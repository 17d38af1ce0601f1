"""The gate: checks, then spends, then draws; and the recording gate that stands in its place."""

import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcausal import ZCDP, ApproxDP, Ledger, NoPrivacy, PureDP, Relation, Unit, simulated_noise
from dpcausal.errors import FenceError, LedgerError, ParameterError, UnprovenError
from dpcausal.mechanisms.additive import gaussian, geometric, l2_ball, laplace
from dpcausal.mechanisms.gate import book_exact, exact, recording_gate, release
from dpcausal.mechanisms.selection import noisy_max
from dpcausal.privacy import noise
from dpcausal.privacy.budget import CallBudget, Event
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity
from tests.voices import together

CANARY = 918273645.5


def query(answer: Any = CANARY, norm: Norm = Norm.L1, relation: Relation = Relation.REPLACE_ONE,
          unit: Unit = Unit.ROW, bound: Any = 1) -> Query:  # fmt: skip
    return Query(answer, Sensitivity(bound, norm, relation, "kendall-tau", unit), "margin")


ONE, HALF = PureDP(1), PureDP(0.5)


def granted(loss: Loss = ONE, **options: Any) -> CallBudget:
    budget = ZCDP(9) if isinstance(loss, ZCDP) else ApproxDP(9, 1e-6)
    return Ledger.in_memory(budget).charge(loss, task="test", **options)


def event(loss: Loss = HALF) -> Event:
    return Event("laplace", "margin", loss, 1.0, "l1", 2.0, "kendall-tau")


def test_the_spend_is_booked_before_the_answer_is_drawn() -> None:
    allotment, seen = granted(), []

    def draw(answer: Any) -> str:
        seen.append((allotment.events, float(answer)))
        return "drawn"

    assert release(query(), allotment, event(), draw) == "drawn"
    assert seen == [((event(),), CANARY)]


def test_a_refused_release_never_sees_the_answer() -> None:
    allotment = granted(PureDP(0.25))
    with pytest.raises(FenceError):
        release(query(), allotment, event(PureDP(0.5)), lambda _: pytest.fail("the answer was read"))
    assert allotment.events == ()


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("relation", list(Relation))
def test_another_relation_or_unit_is_refused(unit: Unit, relation: Relation) -> None:
    allotment = granted(unit=Unit.ROW, relation=Relation.REPLACE_ONE)
    question = query(relation=relation, unit=unit)
    if (unit, relation) == (Unit.ROW, Relation.REPLACE_ONE):
        release(question, allotment, event(), lambda _: None)
        return
    with pytest.raises(FenceError, match="is proved for"):
        release(question, allotment, event(), lambda _: pytest.fail("the answer was read"))
    assert allotment.events == ()


@pytest.mark.parametrize("error", [FenceError("too large"), ValueError(str(CANARY)), OverflowError(CANARY)], ids=repr)
def test_an_error_of_the_draw_spends_and_tells_nothing(error: Exception) -> None:
    allotment = granted()

    def draw(answer: Any) -> None:
        held = answer + 0.0
        if held:
            raise error

    with pytest.raises(FenceError) as refused:
        release(query(), allotment, event(), draw)
    assert allotment.events == (event(),)
    assert refused.value.__context__ is None and refused.value.__cause__ is None
    # What a printer of tracebacks with locals would show, from the gate inwards.
    inside = refused.tb.tb_next
    assert inside is not None
    shown = traceback.TracebackException(FenceError, refused.value, inside, capture_locals=True)
    text = "".join(shown.format())
    assert "in release" in text and "9182736" not in text


def test_an_interrupt_of_the_draw_passes_and_the_spend_stands() -> None:
    allotment = granted()

    def draw(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release(query(), allotment, event(), draw)
    assert len(allotment.events) == 1


def test_the_same_query_twice_pays_twice() -> None:
    allotment = granted(PureDP(1))
    question = query()
    for _ in range(2):
        laplace(question, allotment, PureDP(0.5))
    with pytest.raises(FenceError):
        laplace(question, allotment, PureDP(0.5))
    assert len(allotment.events) == 2


# Exact answers


def test_an_exact_answer_leaves_only_a_ledger_without_privacy() -> None:
    for loss in (PureDP(1), ZCDP(1), ApproxDP(1, 1e-6)):
        allotment = granted(loss)
        with pytest.raises(FenceError, match="leaves only a ledger without privacy"):
            exact(query(), allotment)
        with pytest.raises(FenceError, match="leaves only a ledger without privacy"):
            book_exact("scores", allotment)
        assert allotment.events == ()
    allotment = Ledger.without_privacy().charge(NoPrivacy(), task="test")
    assert not allotment.private
    assert exact(query(), allotment) == CANARY
    assert allotment.events[0].mechanism == "exact" and allotment.events[0].scale == 0


def test_every_mechanism_gives_the_exact_answer_without_privacy() -> None:
    allotment = Ledger.without_privacy().charge(NoPrivacy(), task="test")
    vector = np.array([1.5, -2.5])
    assert laplace(query(vector), allotment, NoPrivacy()).tolist() == vector.tolist()
    assert gaussian(query(vector, Norm.L2), allotment, NoPrivacy()).tolist() == vector.tolist()
    assert l2_ball(query(vector, Norm.L2), allotment, NoPrivacy()).tolist() == vector.tolist()
    answer = geometric(query(7), allotment, NoPrivacy())
    assert answer == 7 and type(answer) is int
    assert noisy_max(query(np.array([1, 5, 5]), Norm.LINF), allotment, NoPrivacy()) == 1


def test_an_exact_array_is_the_callers_own() -> None:
    question = query(np.array([1.5, -2.5]))
    answer = exact(question, Ledger.without_privacy().charge(NoPrivacy(), task="test"))
    answer[0] = 9.0
    assert question._answer[0] == 1.5


# Simulated noise


def test_an_allotment_granted_as_private_gets_no_simulated_noise() -> None:
    allotment = granted()
    with simulated_noise(1), pytest.raises(FenceError):
        laplace(query(), allotment, PureDP(0.5))
    assert allotment.events == ()
    with simulated_noise(1):
        inside = granted()
        first = laplace(query(), inside, PureDP(0.5))
    assert not inside.private and inside.caveats
    with simulated_noise(1):
        assert laplace(query(), granted(), PureDP(0.5)) == first


def test_a_ledger_file_gets_no_simulated_noise_no_recording_and_no_unproven_call(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "study.ledger", budget=PureDP(1))
    for block in (simulated_noise(1), recording_gate()):
        with block, pytest.raises(LedgerError, match="simulated"):
            ledger.charge(PureDP(0.5), task="test")
    with pytest.raises(UnprovenError):
        ledger.charge(PureDP(0.5), task="published", unproven=True)
    assert ledger.entries() == []
    allotment = ledger.charge(PureDP(0.5), task="test")
    for block in (simulated_noise(1), recording_gate()):
        with block, pytest.raises(FenceError):
            release(query(), allotment, event(), lambda _: pytest.fail("the answer was read"))
    assert allotment.events == () and ledger.remaining.epsilon == 0.5


# The recording gate


def study(data: Any, allotment: CallBudget, wrong: float = 1.0) -> list[Any]:
    """A method of four releases; ``wrong`` scales what one of them hides below its stated bound."""
    n = len(data)
    return [
        laplace(query(data.mean() * wrong, bound=1 / n), allotment, PureDP(0.1)),
        geometric(query(int((data > 0.5).sum())), allotment, PureDP(0.1)),
        noisy_max(query(np.array([data.sum(), n - data.sum()]), Norm.LINF), allotment, PureDP(0.1)),
        l2_ball(query(np.array([data.sum(), 0.0]), Norm.L2), allotment, PureDP(0.1)),
    ]


def passages(data: Any, answers: Any = "low", wrong: float = 1.0) -> Any:
    with recording_gate(answers) as recording:
        results = study(data, granted(), wrong)
    return recording.passages, results


DATA = np.array([0.0, 0.25, 0.5, 1.0])


def test_fixed_answers_are_what_was_asked_for() -> None:
    _, low = passages(DATA, "low")
    _, high = passages(DATA, "high")
    assert (low[0], low[1], low[2]) == (-1e6, -(10**6), 0)
    assert (high[0], high[1], high[2]) == (1e6, 10**6, 1)
    assert high[3].tolist() == [1e6, 1e6]
    recorded, told = passages(DATA, lambda event, value: value if event.mechanism != "noisy-max" else np.asarray(1))
    assert told[0] == DATA.mean() and told[2] == 1
    assert len(recorded) == 4
    with pytest.raises(ParameterError), recording_gate("middle"):  # type: ignore[arg-type]
        pass


def test_the_recording_gate_asks_for_no_noise_and_spends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_opendp", lambda: pytest.fail("noise was drawn"))
    with recording_gate():
        allotment = granted(PureDP(0.4))
        study(DATA, allotment)
        with pytest.raises(FenceError):
            laplace(query(), allotment, PureDP(0.1))
    assert len(allotment.events) == 4


def test_nothing_is_private_under_a_recording_gate() -> None:
    outside = granted()
    with recording_gate() as recording:
        inside = granted()
        assert not inside.private and noise.is_simulated()
        first = noise.public_generator()[1]
        with pytest.raises(FenceError):
            laplace(query(), outside, PureDP(0.5))
    assert recording.passages == [] and outside.events == ()
    assert not noise.is_simulated()
    with recording_gate():
        assert noise.public_generator()[1] == first  # the same splits on both neighbours
    with simulated_noise(5), recording_gate():
        other = noise.public_generator()[1]
    with simulated_noise(5):
        assert noise.public_generator()[1] == other != first


def test_a_recording_ends_with_its_block_and_stays_in_its_thread() -> None:
    with pytest.raises(ZeroDivisionError), recording_gate() as recording:
        raise ZeroDivisionError
    laplace(query(), granted(), PureDP(0.5))
    assert recording.passages == []
    with recording_gate() as recording:
        together(lambda: laplace(query(), granted(), PureDP(0.5)))
    assert recording.passages == []


def test_a_recording_does_not_print_what_it_holds() -> None:
    with recording_gate() as recording:
        laplace(query(), granted(), PureDP(0.5))
    assert recording.passages[0].value == CANARY
    assert "9182736" not in repr(recording)
