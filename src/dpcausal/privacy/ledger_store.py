"""Where the lines of a ledger are kept: a file, or memory.

A file is locked by ``flock``, for all its names at once: hard links, bind mounts, symbolic links.  Each step opens and
closes the file: the lock belongs to one opening, so threads and forks have their own, and a fork inherits none.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from dpcausal.errors import LedgerDamagedError, LedgerError
from dpcausal.privacy.ledger_lines import QUESTION_KEY, Account, Spends, sealed
from dpcausal.privacy.sensitivity import PrivacyUnit

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
    """The file of one ledger's witness, elsewhere: how far it was seen to go; ``ledger`` is its first line's hash.

    A ledger that was cut short, restored from a copy, or copied and continued is whole by its own lines; only somebody
    who saw more of it can detect that.  Each added line is noted afterwards, so that a kill in between leaves a witness
    that saw less, which is no fault.  A witness that cannot be written never stops a spend.
    """

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
        """Lend the witness while no other has it; where it cannot be written, what is noted goes nowhere."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file: IO[bytes] = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "a+b", 0)
        except OSError:
            yield Note(None, self.seen())
            return
        with file:
            seen = None
            with suppress(OSError):
                lock(file)
                seen = _last(file)
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


def check_new(folder: Path | None, path: Path) -> None:
    if (known := _witness_at(folder, path, ever=True)) is not None:
        raise LedgerDamagedError(
            f"ledger {path}: a ledger of this path was seen that had spent, and it is gone: put it back, or name "
            f"another path; if it was a trial that bears on nobody, delete its witness {known}"
        )


def check_lost(folder: Path | None, path: Path) -> None:
    if (known := _witness_at(folder, path, ever=True)) is not None:
        text = f"ledger {path}: it was seen here, by its witness {known}, and is gone"
        raise LedgerDamagedError(text, argument="ledger", rule="lost-ledger", hint="restore it from your backup")


def refuse_replaced_ledger(folder: Path, path: Path, own: Path) -> None:
    if (known := _witness_at(folder, path, own)) is not None:
        raise LedgerDamagedError(
            f"another ledger was seen here that had spent, and this one is in its place: put that one back, or move "
            f"this one to another path; if that one was a trial that bears on nobody, delete its witness {known}"
        )


def _witness_at(folder: Path | None, path: Path, but: Path | None = None, *, ever: bool = False) -> Path | None:
    place = os.path.realpath(path)
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


BUSY_SECONDS = 60.0  # that a step waits for the lock before it gives up

_turns = threading.RLock()  # one step at a time in this process; a fork waits for its end
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_turns.acquire, after_in_parent=_turns.release, after_in_child=_turns.release)


class LedgerStore:
    """The lines of one ledger.  Every fault of its file is a ``LedgerError``; none is granted a spend."""

    def __init__(
        self, place: Path | BytesIO, expected_head: str | None = None, *, read_only: bool = False,
        witnesses: Path | None = None,
    ) -> None:  # fmt: skip
        self.path = place if isinstance(place, Path) else None
        self._witnesses, self._name = witnesses, os.path.realpath(place) if isinstance(place, Path) else ""
        self._place, self._mode, self._pid = place, "rb" if read_only else "r+b", os.getpid()
        self._identity: os.stat_result | None = None
        self._account = Account()
        with self._step() as file:
            self._account, _ = self._caught_up(file, expected_head)
            if (witness := self.witness) is not None:  # writers hold the file's lock meanwhile
                seen = witness.seen()
                witness.check(seen, self._account)
                if seen is None or seen.path != self._name:
                    refuse_replaced_ledger(witness.folder, Path(self._name), witness.path)

    @classmethod
    def create(cls, path: Path, first: bytes, witnesses: Path | None) -> LedgerStore:
        if not os.path.lexists(path):
            check_new(witnesses, path)
        with _named_faults(path):
            with tempfile.NamedTemporaryFile(prefix=".ledger-", dir=path.parent, buffering=0) as file:
                _lock(file, writing=True)
                _write_through(file, first)
                os.link(file.name, path)
            with suppress(PermissionError):  # a directory that cannot be read
                directory = os.open(path.parent, os.O_RDONLY)
                os.fsync(directory)  # now the name is as durable as what it names
                os.close(directory)
        return cls(path, witnesses=witnesses)

    @property
    def witness(self) -> Witness | None:
        if self._witnesses is None or self.path is None:
            return None
        return Witness(self._witnesses, self._account.heads[0])

    @property
    def declared(self) -> PrivacyUnit:
        return self._account.protects

    def account(self) -> Account:
        """Return what the lines come to, as of now."""
        with self._step() as file:
            self._account, _ = self._caught_up(file)
            return self._account

    def read_anew(self, account: Account, spends: Spends | None = None) -> None:
        with self._step() as file:
            file.seek(0)
            account.read(file.read(), self._account.head, spends)

    def append(self, kind: str, members: dict[str, Any], *, once_only: bool = False, trial: bool = False) -> Account:
        """Commit the next line; whatever is raised, nothing was granted.

        ``once_only``: a question not yet asked.  ``trial``: check all of it, and write nothing.
        """
        if self._mode == "rb":
            raise LedgerError(f"ledger {self.path}: it was opened to be read only; nothing can be spent from it")
        with self._step(writing=True) as file, self._noting() as note:
            account, end = self._caught_up(file)
            if self.witness is not None:
                self.witness.check(note.seen, account)
            if once_only:
                account.check_unspent(members["detail"].get(QUESTION_KEY, ""))
            missing = b"\n" * (account.size - end)  # of a line that lacks its line break
            if kind == "answer" and 1 <= members["number"] <= account.totals.spends:
                members = members | {"at": account.stamps[members["number"] - 1]}
            line = sealed(kind, {"number": account.totals.spends + 1, "previous": account.head} | members)
            account.take(line[:-1])
            if os.getpid() != self._pid and not account.budget.exact:
                raise LedgerError("a fork would spend the budget twice: for several processes use Ledger.create")
            if trial:
                return account
            if file.seek(0, os.SEEK_END) != end + account.incomplete:
                raise LedgerError("it was written to in the middle of this spend; nothing was granted")
            try:
                if account.incomplete:
                    file.truncate(end)
                _write_through(file, missing + line)
                if self.path:
                    self._check_place(file, self.path)
            except BaseException:
                with suppress(OSError):
                    file.truncate(end)
                raise
            self._account = account
            note.write(account, self._name)
            return account

    def _noting(self) -> AbstractContextManager[Note]:
        return nullcontext(Note()) if self.witness is None else self.witness.held(partial(_lock, writing=True))

    def _caught_up(self, file: IO[bytes], expected_head: str | None = None) -> tuple[Account, int]:
        account = self._account.after()
        start = file.seek(account.size - len(account.last))
        return account, start + account.read(file.read(), expected_head)

    @contextmanager
    def _step(self, *, writing: bool = False) -> Iterator[IO[bytes]]:
        with _turns:
            if isinstance(self._place, BytesIO):
                yield self._place
                return
            with _named_faults(self._place), open(self._place, self._mode, buffering=0, opener=_opener) as file:
                self._pid = os.getpid()
                _lock(file, writing)
                self._check_place(file, self._place)
                yield file

    def _check_place(self, file: IO[bytes], path: Path) -> None:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a file")
        if not all(os.path.samestat(status, other) for other in (os.stat(path), self._identity or status)):
            raise LedgerDamagedError("it was moved away or replaced by another file")
        self._identity = status


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_APPEND | getattr(os, "O_NONBLOCK", 0))  # so that no pipe makes it wait


def _lock(file: IO[bytes], writing: bool) -> None:
    import fcntl  # POSIX only

    end = time.monotonic() + BUSY_SECONDS
    while True:
        with suppress(BlockingIOError):
            return fcntl.flock(file, (fcntl.LOCK_EX if writing else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        if time.monotonic() > end:
            raise TimeoutError("others kept it busy for too long")
        time.sleep(0.0005)


def _write_through(file: IO[bytes], text: bytes) -> None:
    file.seek(0, os.SEEK_END)
    if file.write(text) != len(text):
        raise OSError(errno.ENOSPC, "")
    if not isinstance(file, BytesIO):
        import fcntl

        full = getattr(fcntl, "F_FULLFSYNC", None)  # where fsync stops short of the disk
        os.fsync(file.fileno()) if full is None else fcntl.fcntl(file, full)


_RULES = {errno.EEXIST: "a file is there already, and is never replaced: Ledger.open, or open_or_create"}
_RULES |= dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "no such file or folder; 'dpcausal ledger create' makes a file")
_RULES |= dict.fromkeys((errno.ENOSPC, errno.EFBIG, errno.EDQUOT), "the disk is full or the file may not grow")
_RULES |= dict.fromkeys((errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS), "no locks or links here: use a local disk")


@contextmanager
def _named_faults(path: Path) -> Iterator[None]:
    try:
        yield
    except LedgerDamagedError as error:
        raise LedgerDamagedError(f"ledger {path}: {error}; nothing can be spent from it") from None
    except ImportError:
        raise LedgerError(f"ledger {path}: a ledger file needs the locks of a POSIX system") from None
    except OSError as error:
        rule = _RULES.get(error.errno or 0, error.strerror or str(error))
        raise LedgerError(f"ledger {path}: {rule}; nothing was granted") from error
