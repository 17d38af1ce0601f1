"""What the process says and how it is set, for tests in which code of others speaks; threads that take turns."""

import logging
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

Heard = Callable[[], str]


def state() -> dict[str, Any]:
    """Return all of the process that code inside a region, or the region, could leave changed."""
    kind, keys, *rest = np.random.get_state()
    return {
        "filters": (id(warnings.filters), list(warnings.filters)),
        "showwarning": (warnings.showwarning, warnings._showwarnmsg, warnings._showwarnmsg_impl),  # type: ignore[attr-defined]
        "streams": (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__),
        "their writes": [vars(stream).get("write") for stream in (sys.stdout, sys.stderr, sys.__stdout__)],
        "logging": (logging.root.manager.disable, logging.Logger.handle, logging.root.level, logging.root.handlers[:]),
        "hooks": (sys.unraisablehook, threading.excepthook, sys.excepthook),
        "errstate": np.geterr(),
        "random": random.getstate(),
        "numpy": (kind, keys.tolist(), rest, id(np.random.get_bit_generator())),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)],
    }


class Ears(logging.Handler):
    """Collects what any logger says, at any level."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage())


@pytest.fixture
def heard(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    """Give a function that returns what was said since it was last asked: output, logs, warnings, unheard failures."""
    ears = Ears()
    monkeypatch.setattr(logging.root, "level", logging.DEBUG)
    monkeypatch.setattr(logging.root, "handlers", [*logging.root.handlers, ears])
    monkeypatch.setattr(sys, "unraisablehook", lambda failure: ears.heard.append(str(failure.exc_value)))
    monkeypatch.setattr(threading, "excepthook", lambda failure: ears.heard.append(str(failure.exc_value)))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "_showwarnmsg_impl", lambda told: ears.heard.append(str(told.message)))

        def said() -> str:
            texts = [*ears.heard, *capfd.readouterr()]
            ears.heard.clear()
            return " ".join(texts).strip()

        yield said


class Steps:
    """Lets threads take steps in a given order: each is begun when the one before it is done."""

    def __init__(self, *order: str) -> None:
        self.order, self.place, self.turned = order, 0, threading.Condition()

    def wait(self, step: str) -> None:
        """Wait until a step may begin."""
        with self.turned:
            assert self.turned.wait_for(lambda: self.order[self.place : self.place + 1] == (step,), timeout=120)

    def __call__(self, step: str, action: Callable[[], Any] = lambda: None) -> None:
        self.wait(step)
        action()
        with self.turned:
            self.place += 1
            self.turned.notify_all()

    def held(self, region: Callable[..., Any], who: str, *inside: tuple[str, Callable[[], Any]]) -> None:
        """Go into a region at the step ``<who> in``, take the steps inside, and leave it at ``<who> out``."""

        def steps() -> None:
            self(f"{who} in")
            for step, action in inside:
                self(step, action)
            self.wait(f"{who} out")

        self.wait(f"{who} in")
        region(steps)
        self(f"{who} out")


def together(*works: Callable[[], Any]) -> None:
    """Run each in a thread of its own, and raise what one of them raises."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not any(thread.is_alive() for thread in threads)
    if failures:
        raise failures[0]
