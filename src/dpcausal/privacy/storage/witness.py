"""The witness of a ledger: how far it was seen to go, noted elsewhere than the ledger itself."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dpcausal.errors import LedgerDamagedError
from dpcausal.privacy.storage.lines import Account

VARIABLE = "DPCAUSAL_WITNESS"
"""Of the environment: the folder of the witnesses."""

TAIL = 4096
"""Bytes that hold a last line, but for a very long path."""

Lock = Callable[[IO[bytes]], None]


@dataclass(frozen=True)
class Seen:
    lines: int
    head: str
    path: str


def folder_of(witness: str | os.PathLike[str] | None = None) -> Path | None:
    named = witness or os.environ.get(VARIABLE)
    if named:
        return Path(os.path.abspath(named))
    state = os.environ.get("XDG_STATE_HOME")
    if state and os.path.isabs(state):
        return Path(state) / "dpcausal"
    with suppress(RuntimeError):  # there is no home
        return Path.home() / ".local" / "state" / "dpcausal"
    return None


@dataclass(frozen=True)
class Witness:
    """The file of one ledger's witness, elsewhere: how far it was seen to go; ``ledger`` is its first line's hash. A
    ledger that was cut short, restored from a copy, or copied and continued is whole by its own lines; only somebody
    who saw more of it can detect that.  Each added line is noted afterwards, so that a kill in between leaves a witness
    that saw less, which is no fault.  A witness that cannot be written never stops a spend."""

    folder: Path
    ledger: str

    @property
    def path(self) -> Path:
        return self.folder / f"{self.ledger[:32]}.witness"

    def seen(self) -> Seen | None:
        with suppress(OSError), open(self.path, "rb", opener=_at_once) as file:
            return _last(file)
        return None

    @contextmanager
    def held(self, lock: Lock) -> Iterator[Note]:
        """Lend the witness while no other has it; one that cannot be written or locked is read all the same."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file: IO[bytes] = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "a+b", 0)
        except OSError:
            yield Note(None, self.seen())
            return
        with file:
            try:
                lock(file)
                seen = _last(file)
            except OSError:
                seen = self.seen()
            yield Note(file, seen)

    def check(self, seen: Seen | None, account: Account) -> None:
        if seen is None or account.heads[seen.lines - 1 : seen.lines] == [seen.head]:
            return
        if seen.lines > account.lines:
            rule = f"it has {account.lines} lines, and its witness saw {seen.lines}, last at {seen.path}"
        else:
            rule = f"its line {seen.lines} is not the one that its witness saw, at {seen.path}"
        raise LedgerDamagedError(
            f"{rule}: this file was cut short, restored from an older copy, or is a copy of a ledger that went on; put "
            f"the newest one back, which the witness {self.path} knows"
        )


@dataclass(frozen=True)
class Note:
    file: IO[bytes] | None = None
    seen: Seen | None = None

    def write(self, account: Account, path: str) -> None:
        if self.file is None:
            return
        seen = {"lines": account.lines, "head": account.head, "path": path}
        line = json.dumps(seen, separators=(",", ":")).encode() + b"\n"
        with suppress(OSError):
            end = self.file.seek(0, os.SEEK_END)
            self.file.seek(max(0, end - 1))
            self.file.write((b"\n" if end and self.file.read(1) != b"\n" else b"") + line)


def check_new(folder: Path | None, path: Path | str) -> None:
    if (known := _witness_at(folder, path, ever=True)) is not None:
        raise LedgerDamagedError(
            f"ledger {path}: a ledger of this path was seen that had spent, and it is gone: put it back, or name "
            f"another path; if it was a trial that bears on nobody, delete its witness {known}"
        )


def check_lost(folder: Path | None, path: Path | str) -> None:
    if (known := _witness_at(folder, path, ever=True)) is not None:
        text = f"ledger {path}: it was seen here, by its witness {known}, and is gone"
        raise LedgerDamagedError(text, argument="ledger", rule="lost-ledger",
                                 hint="put it back, name its new path if you moved it, or restore the newest backup")


def refuse_replaced_ledger(folder: Path, path: str, own: Path) -> None:
    if (known := _witness_at(folder, path, own)) is not None:
        raise LedgerDamagedError(
            f"another ledger was seen here that had spent, and this one is in its place: put that one back, or move "
            f"this one to another path; if that one was a trial that bears on nobody, delete its witness {known}"
        )


def _witness_at(folder: Path | None, path: Path | str, but: Path | None = None, *, ever: bool = False) -> Path | None:
    place = path if isinstance(path, str) else os.path.realpath(path)
    noted = b'"path":' + json.dumps(place).encode()
    witnesses: list[Path] = []
    with suppress(OSError):
        witnesses = sorted(folder.glob("*.witness")) if folder else []
    for one in witnesses:
        # One that cannot be read hides none of the others.
        with suppress(OSError), open(one, "rb", opener=_at_once) as file:
            seen = _last(file)
            if one == but or seen is None or seen.lines == 1:
                continue
            file.seek(0)
            if seen.path == place or (ever and noted in file.read()):
                return one
    return None


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # so that no pipe makes it wait


def _last(file: IO[bytes]) -> Seen | None:
    end = file.seek(0, os.SEEK_END)
    for start in dict.fromkeys((max(0, end - TAIL), 0)):
        file.seek(start)
        for line in reversed(file.read().split(b"\n")):
            with suppress(ValueError, TypeError, KeyError, RecursionError):
                record: dict[str, Any] = json.loads(line)
                lines, head, path = record["lines"], record["head"], record["path"]
                if type(lines) is int and lines > 0 and isinstance(head, str) and isinstance(path, str):
                    return Seen(lines, head, path)
    return None
