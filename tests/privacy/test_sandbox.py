"""Regions in which nothing is heard: threads that overlap, other libraries' filters, failures of all kinds, signals."""

import contextlib
import io
import logging
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dpcausal.privacy import sandbox as region
from dpcausal.privacy.sandbox import alone, is_suppressed, isolated, isolated_or_default, isolated_process_wide
from tests import voices
from tests.voices import Heard, Steps, together

WORD = "zephyrquill"


class Panic(BaseException):
    """As libraries in other languages raise."""


def state() -> dict[str, Any]:
    left = region._open, region._hooks, region._filtered, region._external_code.locked(), is_suppressed()
    return voices.state() | {"all handlers": [signal.getsignal(number) for number in region._SIGNALS], "left": left}


def speak(who: str = WORD) -> None:
    print(f"{who} prints")
    print(f"{who} complains", file=sys.stderr)
    logging.getLogger("test").debug("%s logs", who)
    warnings.warn(f"{who} warns", UserWarning, stacklevel=1)


SPEECH = ("prints", "complains", "logs", "warns")


# ------------------------------------------------------------------------------------------ one thread


def test_nothing_is_heard_inside_and_all_is_as_before(heard: Heard) -> None:
    before = state()
    assert isolated(lambda: [speak(), 7][-1]) == 7
    assert heard() == ""
    assert state() == before
    speak()
    assert all(f"{WORD} {kind}" in heard_now for heard_now in [heard()] for kind in SPEECH)


KINDS = (ValueError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration, Warning, Panic)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_region_raises_is_raised_or_contained_and_all_is_as_before(
    kind: type[BaseException], heard: Heard
) -> None:
    def fail() -> int:
        speak()
        raise kind(WORD)

    before, found = state(), list[int]()
    for held in (isolated, alone):
        with pytest.raises(kind):
            held(fail)
    together(lambda: found.append(isolated_or_default(fail, 2)))
    assert found == [2] and isolated_or_default(fail, 3) == 3 and isolated_or_default(lambda: 6, 3) == 6
    assert isolated(lambda: isolated_or_default(lambda: alone(lambda: isolated_or_default(fail, 4)), 5)) == 4
    assert heard() == ""
    assert state() == before


def test_numpy_is_quiet_inside_and_as_before_afterwards() -> None:
    with np.errstate(all="raise"):
        assert np.isnan(isolated(lambda: np.array([0.0]) / np.array([0.0])))
        with pytest.raises(FloatingPointError):
            np.array([0.0]) / np.array([0.0])


def test_a_warning_is_no_error_inside_where_warnings_are_errors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        isolated(lambda: warnings.warn(WORD, UserWarning, stacklevel=1))
        isolated(lambda: warnings.warn_explicit(WORD, RuntimeWarning, "file", 1, registry={}))
        with pytest.raises(UserWarning):
            warnings.warn(WORD, UserWarning, stacklevel=1)


def test_filters_that_code_inside_sets_for_itself_do_not_make_it_heard(heard: Heard) -> None:
    def loud() -> None:
        with warnings.catch_warnings():
            warnings.resetwarnings()
            warnings.simplefilter("always")
            speak()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.showwarning = lambda *told, **named: print(*told)
            speak()
        assert not caught

    before = state()
    isolated(loud)
    assert heard() == ""
    assert state() == before


def test_what_was_shown_once_is_not_shown_again_after_a_region(heard: Heard) -> None:
    registry: dict[Any, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for _ in range(3):
            warnings.warn_explicit(WORD, UserWarning, "file", 1, registry=registry)
            isolated(lambda: None)
    assert heard().count(WORD) == 1


def test_an_object_that_fails_when_it_is_dropped_is_not_heard(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    class Final:
        def __del__(self) -> None:
            raise ValueError(WORD)

    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda failure: told.append(str(failure.exc_value)))
    before = state()
    isolated(lambda: Final() and None)
    assert not told and state() == before
    Final()
    assert told == [WORD]


class Narrow:
    """A stream that takes no other ``write``."""

    __slots__ = ("heard",)

    def __init__(self) -> None:
        self.heard: list[str] = []

    def write(self, text: str) -> int:
        self.heard.append(text)
        return len(text)

    def flush(self) -> None:
        self.heard.append("")


def test_a_stream_that_cannot_be_changed_is_replaced_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Narrow()
    monkeypatch.setattr(sys, "stdout", stream)

    def work() -> None:
        print(WORD, flush=True)
        together(lambda: print("another"))

    isolated(work)
    assert sys.stdout is stream and WORD not in stream.heard and "another" in stream.heard


def test_there_may_be_no_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        monkeypatch.setattr(sys, name, None)
    assert isolated(lambda: [print(WORD), 5][-1]) == 5


# ---------------------------------------------------------------------------------------------- threads


def test_the_region_that_ends_first_leaves_the_other_unheard(heard: Heard) -> None:
    turn = Steps("one in", "two in", "one out", "two speaks", "two out")
    before = state()
    together(lambda: turn.held(isolated, "one"), lambda: turn.held(isolated, "two", ("two speaks", speak)))
    assert heard() == ""
    assert state() == before


def test_others_are_heard_while_a_region_is_open(heard: Heard) -> None:
    turn = Steps("reader in", "neighbour", "reader out")
    before = state()
    together(lambda: turn.held(isolated, "reader"), lambda: turn("neighbour", lambda: speak("a neighbour")))
    found = heard()
    assert WORD not in found and all(f"a neighbour {kind}" in found for kind in SPEECH)
    assert state() == before


@pytest.mark.parametrize("held", [alone, isolated_process_wide], ids=lambda held: held.__name__)
def test_nobody_is_heard_while_a_guest_or_an_engine_runs_for_it_may_use_any_thread(
    held: Callable[..., Any], heard: Heard
) -> None:
    turn = Steps("helper is there", "guest in", "helper speaks", "guest out", "helper speaks again")
    before = state()

    def helper() -> None:
        turn("helper is there")
        turn("helper speaks", speak)
        turn("helper speaks again", lambda: speak("a neighbour"))

    together(lambda: turn.held(held, "guest"), helper)
    found = heard()
    assert WORD not in found and all(f"a neighbour {kind}" in found for kind in SPEECH)
    assert state() == before


def test_guests_run_one_at_a_time_and_may_nest() -> None:
    running, most = [0], [0]

    def external_code() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.01)
        alone(lambda: None)
        running[0] -= 1

    together(*[lambda: alone(external_code)] * 4)
    assert most == [1]
    isolated_process_wide(lambda: together(*[lambda: alone(external_code)] * 4))  # of an engine, whose threads they are
    assert most == [1] and not is_suppressed()


ORDERS = [
    ("other in", "region in", "other out", "region speaks", "region out"),
    ("other in", "region in", "region speaks", "region out", "other out"),
    ("region in", "other in", "region speaks", "region out", "other out"),
    ("region in", "other in", "region speaks", "other out", "region out"),
    ("region in", "other in", "other out", "region speaks", "region out"),
]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: ", ".join(order))
@pytest.mark.parametrize("held", [isolated, alone], ids=lambda held: held.__name__)
@pytest.mark.parametrize("record", [False, True])
def test_filters_of_another_thread_do_not_make_a_region_heard_and_are_put_back(
    held: Callable[..., Any], order: tuple[str, ...], record: bool, heard: Heard
) -> None:
    turn = Steps(*order)
    before = state()
    caught: list[Any] = []
    filters = warnings.catch_warnings(record=record)

    def other() -> None:
        turn("other in", lambda: [caught.append(filters.__enter__()), warnings.simplefilter("always")])
        turn("other out", lambda: filters.__exit__(None, None, None))

    together(other, lambda: turn.held(held, "region", ("region speaks", speak)))
    assert heard() == "" and caught in ([None], [[]])
    assert state() == before


@pytest.mark.parametrize("order", ORDERS[:2], ids=lambda order: ", ".join(order))
def test_a_stream_that_another_thread_puts_back_is_silent_too(
    order: tuple[str, ...], heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = Steps(*order)
    monkeypatch.setattr(region, "_first_streams", [(sys.stdout, "stdout")])  # as it is without a test that captures
    before = state()
    kept = io.StringIO()
    redirection = contextlib.redirect_stdout(kept)

    def other() -> None:
        turn("other in", lambda: [redirection.__enter__(), print("a neighbour")])
        turn("other out", lambda: redirection.__exit__(None, None, None))

    together(other, lambda: turn.held(isolated, "region", ("region speaks", lambda: print(WORD))))
    assert WORD not in heard() and kept.getvalue() == "a neighbour\n"
    assert state() == before


def test_many_threads_at_random_are_unheard_and_leave_all_as_it_was(heard: Heard) -> None:
    before, interval = state(), sys.getswitchinterval()

    def reader(seed: int) -> None:
        coins = random.Random(seed)
        for _ in range(60):
            held = coins.choice([isolated, isolated, alone, lambda work: isolated_or_default(work, None)])
            with contextlib.suppress(ValueError):
                held(lambda: work(coins))

    def work(coins: random.Random) -> None:
        speak()
        toss = coins.random()
        if toss < 0.2:
            isolated(speak)
        if toss > 0.8:
            raise ValueError(WORD)

    def other() -> None:
        for _ in range(200):
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.simplefilter("error", DeprecationWarning)

    try:
        sys.setswitchinterval(1e-5)
        together(*[lambda seed=seed: reader(seed) for seed in range(6)], other)
    finally:
        sys.setswitchinterval(interval)
    assert heard() == ""
    assert state() == before


def test_a_child_forked_while_another_thread_runs_a_guest_can_run_its_own() -> None:
    turn = Steps("guest in", "fork", "guest out")

    def fork() -> None:
        child = os.fork()
        if child == 0:
            signal.alarm(120)
            fine = not is_suppressed() and alone(lambda: is_suppressed()) and not is_suppressed()
            os._exit(0 if fine else 1)
        assert os.waitpid(child, 0)[1] == 0

    together(lambda: turn.held(alone, "guest"), lambda: turn("fork", fork))


# ---------------------------------------------------------------------------------------------- signals


def press() -> None:
    """Interrupt as the keyboard does, and wait until it is noticed."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)


@contextlib.contextmanager
def handled(number: int, handler: Any) -> Iterator[None]:
    kept = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, kept)


def stubborn() -> None:
    try:
        raise ValueError(WORD)
    except ValueError:
        with contextlib.suppress(BaseException):
            press()
        raise LookupError(WORD)


def deaf() -> None:
    with contextlib.suppress(BaseException):
        press()


@pytest.mark.parametrize("work", [press, stubborn, deaf])
@pytest.mark.parametrize(
    "held",
    [
        isolated,
        alone,
        lambda work: isolated_or_default(work, None),
        lambda work: isolated(
            lambda: isolated_or_default(lambda: alone(lambda: isolated_or_default(work, None)), None)
        ),
    ],
    ids=["unheard", "alone", "contained", "nested"],
)
def test_a_real_interrupt_goes_on_through_whatever_holds_it_back_and_tells_nothing(
    held: Callable[..., Any], work: Callable[[], None]
) -> None:
    before = state()
    with pytest.raises(KeyboardInterrupt) as caught:
        held(work)
    chain, error = [], caught.value
    while error is not None:
        chain.append(error)
        error = error.__context__ or error.__cause__  # type: ignore[assignment]
    assert len(chain) == 1 and WORD not in repr(chain)
    frame = caught.value.__traceback__
    names = []
    while frame is not None:
        names.append(frame.tb_frame.f_code.co_name)
        frame = frame.tb_next
    assert "press" not in names and "stubborn" not in names and "deaf" not in names
    assert state() == before


def test_what_a_handler_of_another_signal_raises_goes_on() -> None:
    def late(*_: object) -> None:
        raise TimeoutError("late")

    with handled(signal.SIGALRM, late):
        before = state()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(TimeoutError, match="late"):
            isolated_or_default(lambda: time.sleep(5), None)
        assert state() == before


def test_a_handler_that_raises_nothing_breaks_nothing_off() -> None:
    seen: list[int] = []
    with handled(signal.SIGINT, lambda number, frame: seen.append(number)):
        assert isolated_or_default(lambda: [os.kill(os.getpid(), signal.SIGINT), time.sleep(0.05), 3][-1], None) == 3
    assert seen == [signal.SIGINT]


def test_interrupts_at_any_moment_leave_nobody_silent() -> None:
    # In a process of its own, whose lines outside of a try no interrupt ends.
    program = (
        "import os, signal, sys, threading, time\n"
        "from dpcausal.privacy import sandbox as region\n"
        "from dpcausal.privacy.sandbox import alone, isolated, isolated_or_default, is_suppressed\n"
        "caught, raised, guarded = 0, 0, False\n"
        "def press(*_):\n"
        "    global raised, guarded\n"
        "    if not guarded: return  # between two tries nothing would catch it\n"
        "    raised, guarded = raised + 1, False\n"
        "    raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGINT, press)\n"
        "sending = True\n"
        "def sender():\n"
        "    global sending\n"
        "    for _ in range(300):\n"
        "        time.sleep(0.002); os.kill(os.getpid(), signal.SIGINT)\n"
        "    sending = False  # an interrupt inside of is_alive() would mark the thread as ended\n"
        "thread = threading.Thread(target=sender); thread.start()\n"
        "while sending:\n"
        "    try:\n"
        "        guarded = True\n"
        "        while sending:\n"
        "            isolated_or_default(lambda: alone(lambda: isolated(lambda: sum(range(50)))), None)\n"
        "            if is_suppressed(): print('is_suppressed'); sys.exit(1)\n"
        "        guarded = False\n"
        "    except KeyboardInterrupt:\n"
        "        caught += 1\n"
        "        if is_suppressed(): os.write(1, b'is_suppressed'); os._exit(1)\n"
        "isolated(lambda: None)\n"
        "kept = signal.getsignal(signal.SIGINT) is press\n"
        "print(raised == caught > 9, is_suppressed(), region._open, region._hooks, region._filtered, kept)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True False set() [] [] True\n", "")
