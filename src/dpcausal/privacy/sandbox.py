"""The region in which private rows are read: output is suppressed, and a failure shows nothing of its cause.

A warning, a print, a log line may quote a row, and an exception of any kind may come for the sake of one.

``catch_warnings``, ``redirect_stdout`` and ``logging.disable`` save what belongs to the whole process and put it back:
of two threads that overlap one is not suppressed, and the process keeps what neither of them left.  Here nothing is
saved. Before each function that speaks stands one that asks who speaks and is silent for those inside; the first region
puts them there, the last takes them away, and one that some other library puts back later does nothing.

| who | is silent |
|---|---|
| a thread inside a region | while it is inside |
| a thread that Python did not start, as an engine's that calls a function of its frame | while any region is open |
| every thread, for external code or an engine may use any | while external code runs, or an engine in this process |

What is not reached: writing past ``sys.stdout``, ``sys.stderr`` and ``logging``, to files, descriptors, sockets or a
notebook's display; other processes; a thread that goes on after its external code has returned.
"""

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")


class _ThreadState(threading.local):
    regions = 0
    """How many it is inside."""

    is_host = False
    """Whether it is the one that runs external code."""

    signalled: Sequence[BaseException] = ()
    """What handlers of signals raised since the outermost region began."""


_here = _ThreadState()
_external_code = threading.Lock()
"""Held while external code runs."""

_changing = threading.RLock()
_open: set[int] = set()
"""The threads inside regions."""

_engines: set[object] = set()
"""One for each engine that runs in this process."""


def is_suppressed() -> bool:
    if _here.regions or _engines or _external_code.locked():
        return True
    return bool(_open) and isinstance(threading.current_thread(), threading._DummyThread)


# ------------------------------------------------------------------------------------- what speaks


def _suppress(speak: Callable[..., Any]) -> Callable[..., Any]:
    def suppressed(*arguments: Any, **named: Any) -> Any:
        if not is_suppressed():
            return speak(*arguments, **named)
        return len(arguments[-1]) if arguments and isinstance(arguments[-1], str) else None  # as ``write`` does

    return suppressed


class _Stream:
    def __init__(self, stream: Any) -> None:
        self._stream, self.write = stream, _suppress(stream.write)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Hook:
    def __init__(self, owner: Any, name: str, replacement: Callable[[Any], Any]) -> None:
        self.owner, self.name, self.own = owner, name, vars(owner).get(name)
        self.replacement = replacement(getattr(owner, name))
        setattr(owner, name, self.replacement)

    def remove(self) -> None:
        if vars(self.owner).get(self.name) is not self.replacement:
            return  # another came after, and may have kept this one to call it
        if self.own is None:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.own)


class _ByThread(type):
    def __subclasscheck__(cls, category: type) -> bool:
        return _here.regions > 0


class _Inside(Warning, metaclass=_ByThread):
    """The category of whatever a thread inside a region warns of, and of nothing else."""


_IGNORED = ("ignore", None, _Inside, None, 0)
"""A filter too, since one that makes errors of warnings would make one record's an error."""

_SPEAKERS = ((warnings, "_showwarnmsg"), (logging.Logger, "handle"), (sys, "unraisablehook"), (threading, "excepthook"))
"""Every warning goes through the first; unlike ``showwarning``, no ``catch_warnings`` puts it back."""

_STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")
_first_streams = [(getattr(sys, name), name) for name in _STREAMS]
"""Those that another thread, which redirects its output now, may restore in a moment."""

_hooks: list[_Hook] = []
_filtered: list[list[Any]] = []


def _is_hook(function: Any) -> bool:
    return any(hook.replacement is function for hook in _hooks)


def _install_hooks() -> None:
    with _changing:
        for owner, name in _SPEAKERS:
            if not _is_hook(getattr(owner, name)):
                _hooks.append(_Hook(owner, name, _suppress))
        for stream, name in (*((getattr(sys, name), name) for name in _STREAMS), *_first_streams):
            if stream is None or _is_hook(stream) or _is_hook(stream.write):
                continue
            try:  # the object itself, not its place in sys, which others take too
                _hooks.append(_Hook(stream, "write", _suppress))
            except (AttributeError, TypeError):
                if getattr(sys, name) is stream:
                    _hooks.append(_Hook(sys, name, _Stream))
        filters: Any = warnings.filters
        if not filters or filters[0] is not _IGNORED:
            filters.insert(0, _IGNORED)  # no word of it to the registries: what was shown once is not shown again
            _filtered.append(filters)


def _remove_hooks() -> None:
    with _changing:
        _open.discard(threading.get_ident())
        if _open:
            return
        while _hooks:
            _hooks.pop().remove()
        ours: Any = warnings.filters  # perhaps a copy
        _filtered.append(ours)
        while _filtered:
            filters = _filtered.pop()
            filters[:] = [one for one in filters if one is not _IGNORED]


# ------------------------------------------------------------------------------------- the regions


def isolated(action: Callable[[], Result]) -> Result:
    """Return ``action()``: what it warns of, prints, logs, or fails at without raising is suppressed. What it raises is
    raised, but for a handler of a signal: what that raised, bare of where it interrupted."""
    # In the main thread, the only one that signals reach, what their handlers raise is noted, and raised also where the
    # code that it broke into held it back.
    is_outermost = not _here.regions and threading.current_thread() is threading.main_thread()
    signalled: list[BaseException] = []
    handlers: dict[int, Any] = {}
    if is_outermost:
        _here.signalled = signalled
    try:
        for number in _SIGNALS if is_outermost else ():
            handler = signal.getsignal(number)
            if isinstance(handler, _RecordingSignalHandler):  # left where a signal came in the last line of all
                handler = handler.handler
            if callable(handler):
                handlers[number] = handler
                signal.signal(number, _RecordingSignalHandler(handler, signalled))
        _open.add(threading.get_ident())
        _here.regions += 1  # nothing that a signal may interrupt stands between this and the try
        try:
            _install_hooks()
            with np.errstate(all="ignore"):
                result = action()
        finally:
            _here.regions -= 1
            if not _here.regions:
                _remove_hooks()
    except BaseException:
        if not signalled:
            raise
    finally:
        if is_outermost:
            _here.signalled = ()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if signalled:
        raise _strip_traceback(signalled[-1])
    return result


def isolated_or_default(action: Callable[[], Result], otherwise: Result) -> Result:
    """Return ``action()``, with output suppressed, or ``otherwise`` where it fails, whatever it raises. A
    KeyboardInterrupt or SystemExit, a GeneratorExit, a MemoryError may come from a record as any other may; only what a
    handler of a real signal raised goes on."""

    def tried() -> Result:
        try:
            result = action()
        except BaseException:  # a panic of another language is no Exception
            result = otherwise
        if _here.signalled:
            raise _strip_traceback(_here.signalled[-1])
        return result

    return isolated(tried)


def alone(action: Callable[[], Result]) -> Result:
    """Return ``action()``, which runs external code, one at a time, with output suppressed in every thread."""
    if _here.is_host:
        return isolated(action)
    with _external_code:
        _here.is_host = True
        try:
            return isolated(action)
        finally:
            _here.is_host = False


def isolated_process_wide(action: Callable[[], Result]) -> Result:
    """Return ``action()``, which runs an engine, with output suppressed in every thread; external code takes turns."""
    one = object()
    try:
        _engines.add(one)
        return isolated(action)
    finally:
        _engines.discard(one)


# ------------------------------------------------------------------------------------------ signals

_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGBREAK")
    if hasattr(signal, name)
]


class _RecordingSignalHandler:
    def __init__(self, handler: Callable[..., Any], signalled: list[BaseException]) -> None:
        self.handler, self.signalled = handler, signalled

    def __call__(self, number: int, frame: Any) -> Any:
        try:
            return self.handler(number, frame)
        except BaseException as error:
            self.signalled.append(error)
            raise


def _strip_traceback(error: BaseException) -> BaseException:
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _after_fork() -> None:
    global _external_code, _changing
    _changing = threading.RLock()
    if not _here.is_host:
        _external_code = threading.Lock()
    if not _here.regions:
        _open.clear()
        _engines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
