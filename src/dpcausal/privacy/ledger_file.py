"""The lines of a ledger: what they hold, what all of them come to, and where they are kept, a file or memory.

Each line is a JSON object.  Its last member ``hash`` is the SHA-256 of the line up to ``,"hash":``; ``previous`` is the
hash of the line before, so that the last hash, the head, stands for the whole history.  The first line names the format
and the budget; then there is a ``spend`` for each allotment, and an ``answer`` for each that was kept beside its spend.

A file is locked by ``flock``, for all its names at once: hard links, bind mounts, symbolic links.  Each step opens and
closes the file: the lock belongs to one opening, so threads and forks have their own, and a fork inherits none.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from hashlib import sha256
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from dpcausal.errors import BudgetExceededError, LedgerDamagedError, LedgerError
from dpcausal.privacy.allotment import json_text
from dpcausal.privacy.call import refusal
from dpcausal.privacy.composition import Caps, Cost, Totals, admit, caps_of, cost_of
from dpcausal.privacy.loss import Loss, NoPrivacy, parse_loss
from dpcausal.privacy.neighbours import PERSONS, Relation, Unit

FORMAT = 2  # of the lines; 1 was an SQLite file

MEMBERS = {
    "ledger": "kind format at pid library budget previous hash",
    "spend": "kind number at pid library task loss zcdp unit relation detail once caveats previous hash",
    "answer": "kind number at pid library answer previous hash",
}
"""What each kind of line holds, in this order."""

Spends = list[tuple[dict[str, Any], Totals]]  # what spends hold but for their kind, and the totals after each

ASKED = "asked"
"""In a spend's detail: what stands for exactly this question, where its answer is to be kept."""

BUSY_SECONDS = 60.0  # that a step waits for the lock before it gives up

_turns = threading.RLock()  # one step at a time in this process; a fork waits for its end
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_turns.acquire, after_in_parent=_turns.release, after_in_child=_turns.release)

_library = lru_cache(maxsize=1)(partial(version, "dpcausal"))
_RELATIONS, _UNITS = {relation.value for relation in Relation}, {unit.value for unit in Unit}


@dataclass
class Account:
    """What the lines of a ledger come to, read from the first.

    ``once``: what was declared for the whole ledger, as JSON.  ``asked``: the spends for each question.  ``head``: the
    hash of the ``last`` line, which has its line break.  ``size``: the bytes of all ``lines``; ``torn``: of what
    follows them.
    """

    budget: Loss = field(default_factory=NoPrivacy)
    caps: Caps | None = None
    totals: Totals = field(default_factory=Totals)
    relation: str = ""
    unit: str = ""
    once: dict[str, str] = field(default_factory=dict)
    answers: dict[int, str] = field(default_factory=dict)
    asked: dict[str, tuple[int, ...]] = field(default_factory=dict)
    head: str = ""
    last: bytes = b""
    lines: int = 0
    size: int = 0
    torn: int = 0

    def read(self, raw: bytes, expected_head: str | None = None, spends: Spends | None = None) -> int:
        """Check and count what a file holds from ``last`` on; return how much of it is whole lines.

        The head that is expected must be among those that are read.  ``spends`` takes those with their totals.
        """
        if not self.lines:
            _check_format(raw)
        text, kept = _whole_lines(raw)
        if not text.startswith(self.last):
            raise LedgerDamagedError(f"line {self.lines} is gone or altered: it was cut short or rolled back")
        found = expected_head in (None, self.head)
        for line in text[len(self.last) :].split(b"\n")[:-1]:
            try:
                record = self.take(line)
            except (LedgerError, BudgetExceededError) as error:
                rule = error if isinstance(error, LedgerError) else "it is above the budget"
                raise LedgerDamagedError(f"line {self.lines + 1}: {rule}") from None
            except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
                raise LedgerDamagedError(f"line {self.lines + 1}: it is malformed") from None
            found = found or self.head == expected_head
            if spends is not None and record.pop("kind") == "spend":
                spends.append((record, self.totals))
        if not found:
            raise LedgerDamagedError("the noted head is not in the chain: rolled back, or another ledger")
        self.torn = len(raw) - kept
        return kept

    def take(self, line: bytes) -> dict[str, Any]:
        """Count the next line by the rules that bind its writer and its readers alike; refuse it if it breaks one."""
        if not _is_sealed(line):
            raise LedgerError("it was altered: its hash does not match")
        record: dict[str, Any] = json.loads(line.decode())
        kind = record["kind"]
        if [*record] != MEMBERS[kind].split() or (kind == "ledger") != (self.lines == 0):
            raise LedgerError("its members are not those of a line of this format")
        if record["previous"] != self.head:
            raise LedgerError("it does not follow the line before")
        if kind == "ledger":
            self.budget = parse_loss(record["budget"])
            self.caps = caps_of(self.budget)
        elif kind == "spend":
            self._spend(record)
        elif 1 <= record["number"] <= self.totals.spends and record["number"] not in self.answers:
            self.answers[record["number"]] = json_text(record["answer"])
        else:
            raise LedgerError("an answer is kept once, beside a spend of this ledger")
        self.head, self.last, self.lines = record["hash"], line + b"\n", self.lines + 1
        self.size += len(self.last)
        return record

    def _spend(self, record: dict[str, Any]) -> None:
        if record["number"] != self.totals.spends + 1:
            raise LedgerError(f"it is not spend {self.totals.spends + 1}")
        relation = record["relation"]
        if record["unit"] not in _UNITS or relation not in _RELATIONS:
            raise LedgerError("it names an unknown unit or relation")
        if self.relation not in ("", relation) and not self.budget.exact:
            raise LedgerError(f"this ledger counts {self.relation}: a spend under {relation} would not add up")
        unit = record["unit"]
        if self.unit not in ("", unit) and {self.unit, unit} & set(PERSONS) and not self.budget.exact:
            raise LedgerError(f"this ledger protects a {self.unit}: a spend for a {unit} would not add up")
        once = {name: json_text(value) for name, value in record["once"].items()}
        for name, text in once.items():
            if self.once.get(name, text) != text:
                raise LedgerError(f"'{name}' was declared otherwise, and stands once for a ledger; nothing was spent")
        totals = admit(self.budget, self.totals, written_cost(record["loss"], record["zcdp"]), self.caps)
        if totals is None:
            raise refusal(parse_loss(record["loss"]), self.budget, self.totals)
        self.totals, self.relation, self.unit = totals, relation, unit
        self.once |= once
        asked = record["detail"].get(ASKED)
        if isinstance(asked, str) and asked:
            self.asked[asked] = (*self.asked.get(asked, ()), totals.spends)

    def check_unasked(self, asked: str) -> None:
        """Refuse a question that was spent for."""
        if asked in self.asked:
            number = self.asked[asked][-1]
            raise LedgerError(
                f"spend {number} paid for exactly this, and no answer is kept: its run was ended in between, or still "
                "goes on; nothing was spent now, again=True pays anew"
            )


def sealed(kind: str, told: Mapping[str, Any]) -> bytes:
    """Return a line, with its line break, that tells this and when and by what it was written."""
    stamp = {"at": datetime.now(UTC).isoformat(timespec="microseconds"), "pid": os.getpid(), "library": _library()}
    whole = {"kind": kind, "format": FORMAT, **stamp, "previous": "", **told}
    record = {name: whole[name] for name in MEMBERS[kind].split()[:-1]}
    body = json.dumps(record, allow_nan=False, separators=(",", ":")).encode()[:-1]
    return body + _seal(body) + b"\n"


def _seal(body: bytes) -> bytes:
    return b',"hash":"%s"}' % sha256(body).hexdigest().encode()


def _is_sealed(line: bytes, length: int = len(_seal(b""))) -> bool:
    return line[-length:] == _seal(line[:-length])


def _check_format(raw: bytes) -> None:
    found = re.match(rb'{"kind":"ledger","format":(\d{1,9}),[^\n]*\n', raw)
    if found is None:
        sqlite = raw.startswith(b"SQLite format 3\0")
        raise LedgerDamagedError("an SQLite ledger of version 0.1" if sqlite else "not a ledger of this library")
    if int(found[1]) != FORMAT:
        raise LedgerDamagedError(f"of a newer version of this library: format {int(found[1])}, not {FORMAT}")


def _whole_lines(raw: bytes) -> tuple[bytes, int]:
    """Return the lines that were written in full, and how many bytes they take.

    What follows the last line break is left of a write that failed, zeros or the beginning of a line: no release came
    after it.  A line that lacks only its line break counts as written.  Anything else is damage.
    """
    end = raw.rfind(b"\n") + 1
    tail = raw[end:]
    line = tail[: tail.rfind(b"}") + 1]
    if _is_sealed(line):
        return raw[:end] + line + b"\n", end + len(line)
    if not re.fullmatch(rb"[ -~]*\0*", tail):
        raise LedgerDamagedError("its end is scrambled")
    return raw[:end], end


@lru_cache(maxsize=1024)
def written_cost(loss: str, zcdp: str | None) -> Cost:
    """Return the cost of a loss, and of the zCDP amount beside it, as a line words them."""
    beside: Any = None if zcdp is None else parse_loss(zcdp)
    return cost_of(parse_loss(loss), beside)


class Store:
    """The lines of one ledger.  Every fault of its file is a ``LedgerError``; none is granted a spend."""

    def __init__(self, place: Path | BytesIO, expected_head: str | None = None, *, read_only: bool = False) -> None:
        self.path = place if isinstance(place, Path) else None
        self._place, self._mode, self._pid = place, "rb" if read_only else "r+b", os.getpid()
        self._identity: os.stat_result | None = None
        self._account = Account()
        self.account(expected_head)

    @classmethod
    def create(cls, path: Path, budget: str) -> Store:
        """Make a ledger file, whole or not at all, its owner's alone; an existing file is refused."""
        with _named_faults(path):
            with tempfile.NamedTemporaryFile(prefix=".ledger-", dir=path.parent, buffering=0) as file:
                _lock(file, writing=True)
                _write_through(file, sealed("ledger", {"budget": budget}))
                os.link(file.name, path)
            with suppress(PermissionError):  # a directory that cannot be read
                directory = os.open(path.parent, os.O_RDONLY)
                os.fsync(directory)  # now the name is as durable as what it names
                os.close(directory)
        return cls(path)

    def account(self, expected_head: str | None = None) -> Account:
        """Return what the lines come to, as of now."""
        with self._step() as file:
            self._account, _ = self._caught_up(file, expected_head)
            return self._account

    def read_anew(self, account: Account, spends: Spends | None = None) -> None:
        """Read everything into a new account; what was seen before must be in it."""
        with self._step() as file:
            file.seek(0)
            account.read(file.read(), self._account.head, spends)

    def append(
        self, kind: str, told: dict[str, Any], *, once_only: bool = False, trial: bool = False
    ) -> Account:
        """Commit the next line; whatever is raised, nothing was granted.

        ``once_only``: a question not yet asked.  ``trial``: check all of it, and write nothing.
        """
        if self._mode == "rb":
            raise LedgerError(f"ledger {self.path}: it was opened to be read only; nothing can be spent from it")
        with self._step(writing=True) as file:
            account, end = self._caught_up(file)
            if once_only:
                account.check_unasked(told["detail"].get(ASKED, ""))
            missing = b"\n" * (account.size - end)  # of a line that lacks its line break
            line = sealed(kind, {"number": account.totals.spends + 1, "previous": account.head} | told)
            account.take(line[:-1])
            if os.getpid() != self._pid and not account.budget.exact:
                raise LedgerError("a fork would spend the budget twice: for several processes use Ledger.create")
            if trial:
                return account
            if file.seek(0, os.SEEK_END) != end + account.torn:
                raise LedgerError("it was written to in the middle of this spend; nothing was granted")
            try:
                if account.torn:
                    file.truncate(end)
                _write_through(file, missing + line)
                if self.path:
                    self._check_place(file, self.path)
            except BaseException:
                with suppress(OSError):
                    file.truncate(end)
                raise
            self._account = account
            return account

    def _caught_up(self, file: IO[bytes], expected_head: str | None = None) -> tuple[Account, int]:
        """Return what the lines come to, and where the next one goes."""
        known = self._account
        account = replace(known, once=dict(known.once), answers=dict(known.answers), asked=dict(known.asked))
        start = file.seek(account.size - len(account.last))
        return account, start + account.read(file.read(), expected_head)

    @contextmanager
    def _step(self, *, writing: bool = False) -> Iterator[IO[bytes]]:
        """Lend the lines, while no other thread or process has them."""
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
        """Refuse a file that is not the one that was opened first, or not what its path leads to now."""
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError("not a file")
        if not all(os.path.samestat(found, other) for other in (os.stat(path), self._identity or found)):
            raise LedgerDamagedError("it was moved away or replaced by another file")
        self._identity = found


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_APPEND | getattr(os, "O_NONBLOCK", 0))  # so that no pipe makes it wait


def _lock(file: IO[bytes], writing: bool) -> None:
    """Wait for the lock of a file: to write alone, or to read with others."""
    import fcntl  # POSIX only

    end = time.monotonic() + BUSY_SECONDS
    while True:
        with suppress(BlockingIOError):
            return fcntl.flock(file, (fcntl.LOCK_EX if writing else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        if time.monotonic() > end:
            raise TimeoutError("others kept it busy for too long")
        time.sleep(0.0005)


def _write_through(file: IO[bytes], text: bytes) -> None:
    """Have all of a text at the end of a file and on the disk, or raise."""
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
    """Turn a fault of the file or the system into an error of ours that names the file."""
    try:
        yield
    except LedgerDamagedError as error:
        raise LedgerDamagedError(f"ledger {path}: {error}; nothing can be spent from it") from None
    except ImportError:
        raise LedgerError(f"ledger {path}: a ledger file needs the locks of a POSIX system") from None
    except OSError as error:
        rule = _RULES.get(error.errno or 0, error.strerror or str(error))
        raise LedgerError(f"ledger {path}: {rule}; nothing was granted") from error
