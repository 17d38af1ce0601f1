"""Where the lines of a ledger are kept: a file, or memory; ``postgres`` keeps them in a database.

A file is locked by ``flock``, for all its names at once: hard links, bind mounts, symbolic links.  Each step opens and
closes the file: the lock belongs to one opening, so threads and forks have their own, and a fork inherits none.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from dpcausal.errors import LedgerDamagedError, LedgerError
from dpcausal.privacy.storage.lines import QUESTION_KEY, Account, Spends, sealed
from dpcausal.privacy.storage.witness import Note, Witness, check_new, refuse_replaced_ledger

BUSY_SECONDS = 60.0  # that a step waits for the lock before it gives up

one_step_at_a_time = threading.RLock()  # one step at a time in this process; a fork waits for its end
if hasattr(os, "register_at_fork"):
    one = one_step_at_a_time
    os.register_at_fork(before=one.acquire, after_in_parent=one.release, after_in_child=one.release)


class LedgerStore:
    """The lines of one ledger.  Every fault of its file is a ``LedgerError``; none is granted a spend."""

    def __init__(
        self, place: Any, expected_head: str | None = None, *, read_only: bool = False, witnesses: Path | None = None
    ) -> None:
        self.path, self._name = self._path_and_name(place)
        self._witnesses = witnesses
        self._place, self._mode, self._pid = place, "rb" if read_only else "r+b", os.getpid()
        self._identity: os.stat_result | None = None
        self._account = Account()
        with self._step() as file:
            self._account, _ = self._caught_up(file, expected_head)
            if (witness := self.witness) is not None:  # writers hold the file's lock meanwhile
                seen = witness.seen()
                witness.check(seen, self._account)
                if seen is None or seen.path != self._name:
                    refuse_replaced_ledger(witness.folder, self._name, witness.path)

    @staticmethod
    def _path_and_name(place: Path | BytesIO) -> tuple[Path | str | None, str]:
        return (place, os.path.realpath(place)) if isinstance(place, Path) else (None, "")

    @staticmethod
    def exists(path: Any) -> bool:
        return os.path.lexists(path)

    @classmethod
    def create(cls, path: Any, first: bytes, witnesses: Path | None) -> LedgerStore:
        if not cls.exists(path):
            check_new(witnesses, path)
        write_new(path, first)
        return cls(path, witnesses=witnesses)

    @property
    def witness(self) -> Witness | None:
        if self._witnesses is None or self.path is None:
            return None
        return Witness(self._witnesses, self._account.heads[0])

    @property
    def account_seen(self) -> Account:
        """What the lines came to when they were last read."""
        return self._account

    def account(self) -> Account:
        """Return what the lines come to, as of now."""
        with self._step() as file:
            self._account, _ = self._caught_up(file)
            return self._account

    def content(self) -> bytes:
        """Return all lines, checked."""
        with self._step() as file:
            file.seek(0)
            text = file.read()
            return text[: Account().read(text, self._account.head)]

    def read_anew(self, account: Account, spends: Spends | None = None) -> None:
        with self._step() as file:
            file.seek(0)
            account.read(file.read(), self._account.head, spends)

    def append(self, kind: str, members: dict[str, Any], *, once_only: bool = False, trial: bool = False) -> Account:
        """Commit the next line; whatever is raised, nothing was granted. ``once_only``: a question not yet asked.
        ``trial``: check all of it, and write nothing."""
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
                self._commit(file, missing + line)
            except BaseException:
                with suppress(OSError):
                    file.truncate(end)
                raise
            self._account = account
            note.write(account, self._name)
            return account

    def _commit(self, file: IO[bytes], text: bytes) -> None:
        _write_through(file, text)
        if isinstance(self._place, Path):
            self._check_place(file, self._place)

    def _noting(self) -> AbstractContextManager[Note]:
        return nullcontext(Note()) if self.witness is None else self.witness.held(partial(_lock, writing=True))

    def _caught_up(self, file: IO[bytes], expected_head: str | None = None) -> tuple[Account, int]:
        account = self._account.after()
        start = file.seek(account.size - len(account.last))
        return account, start + account.read(file.read(), expected_head)

    @contextmanager
    def _step(self, *, writing: bool = False) -> Iterator[IO[bytes]]:
        with one_step_at_a_time:
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


def write_new(path: Path, text: bytes) -> None:
    with _named_faults(path):
        with tempfile.NamedTemporaryFile(prefix=".ledger-", dir=path.parent, buffering=0) as file:
            _lock(file, writing=True)
            _write_through(file, text)
            os.link(file.name, path)
        with suppress(PermissionError):  # a directory that cannot be read
            directory = os.open(path.parent, os.O_RDONLY)
            os.fsync(directory)  # now the name is as durable as what it names
            os.close(directory)


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
