"""The witness: a ledger that was cut short, put back, copied or lost is refused, and a kill in between is no damage."""

import os
import re
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpcausal.cli import app
from dpcausal.errors import LedgerDamagedError, LedgerError
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.storage.lines import Account
from dpcausal.privacy.storage.witness import Note

STEP = PureDP(0.125)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPCAUSAL_WITNESS", str(tmp_path / "witnesses"))
    return tmp_path / "witnesses"


def spend(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.charge(STEP, task="after")


def command(*words: object) -> int:
    return CliRunner().invoke(app, [str(word) for word in words], env=dict(os.environ)).exit_code


def rewritten(content: bytes, first: bytes, then: bytes) -> bytes:
    """Return lines in which words were replaced, under hashes that are in order again."""
    lines, previous = list[bytes](), b""
    for line in content.replace(first, then).splitlines():
        body = re.sub(rb'"previous":"[0-9a-f]*"', b'"previous":"%s"' % previous, line.rpartition(b',"hash"')[0])
        previous = sha256(body).hexdigest().encode()
        lines.append(body + b',"hash":"%s"}\n' % previous)
    return b"".join(lines)


def order(content: bytes, *numbers: int) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join(lines[number] for number in numbers)


CONTENTS: dict[str, Callable[[bytes, bytes, bytes], bytes]] = {
    "an older copy": lambda old, now, other: old,
    "cut after a line": lambda old, now, other: order(now, 0, 1, 2),
    "cut to its first line": lambda old, now, other: order(now, 0),
    "cut within a line": lambda old, now, other: now[:-100],
    "without the end of its last line": lambda old, now, other: now[:-9],
    "emptied": lambda old, now, other: b"",
    "edited": lambda old, now, other: now.replace(b"call 3", b"call 8"),
    "a line gone": lambda old, now, other: order(now, 0, 1, 3, 4, 5, 6),
    "two lines changed places": lambda old, now, other: order(now, 0, 1, 3, 2, 4, 5, 6),
    "a line twice": lambda old, now, other: order(now, 0, 1, 2, 3, 4, 5, 6, 6),
    "a line of another ledger": lambda old, now, other: now + order(other, 1),
    "another ledger": lambda old, now, other: other,
    "its budget raised and all hashes made again": lambda old, now, other: rewritten(now, b"PureDP(1)", b"PureDP(9)"),
    "a cost lowered and all hashes made again": lambda old, now, other: rewritten(now, b"0.125", b"0.001"),
    "an older copy that went on": lambda old, now, other: old + order(rewritten(now, b"after", b"other"), -1),
}
"""What may stand in a ledger's place: of its older content, its own, and another ledger's."""


@pytest.mark.parametrize("way", CONTENTS)
def test_a_ledger_that_was_tampered_with_is_refused_with_code_4(path: Path, directory: Path, way: str) -> None:
    old = path.read_bytes()
    spend(path)
    now, copy, other = path.read_bytes(), directory / "copy.ledger", directory / "other.ledger"
    Ledger.create(other, budget=PureDP(1)).close()
    spend(other)
    path.write_bytes(CONTENTS[way](old, now, other.read_bytes()))
    for words in (["verify"], ["show"], ["show", "--json"], ["show", "--jsonl"]):
        assert command("ledger", words[0], path, *words[1:]) == 4
    for read_only in (False, True):
        with pytest.raises(LedgerDamagedError):
            Ledger.open(path, read_only=read_only)
    if way not in ("another ledger", "its budget raised and all hashes made again"):  # these are known by their place
        shutil.copy(path, copy)
        assert command("ledger", "verify", copy) == 4
    path.write_bytes(now)
    spend(path)


def moved(path: Path) -> Path:
    return path.rename(path.with_name("moved.ledger"))


PLACES: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "deleted": (Path.unlink, ("verify",)),
    "deleted and made again": (Path.unlink, ("create", "--epsilon", "1")),
    "renamed": (moved, ("verify",)),
    "renamed and made again": (moved, ("create", "--epsilon", "1")),
    "renamed, continued and opened by its old name": (lambda path: spend(moved(path)), ("verify",)),
    "renamed, continued and made again": (lambda path: spend(moved(path)), ("create", "--epsilon", "1")),
}


@pytest.mark.parametrize("way", PLACES)
def test_a_ledger_that_is_not_where_it_was_is_refused_with_code_4(path: Path, way: str) -> None:
    change, words = PLACES[way]
    spend(path)
    change(path)
    assert command("ledger", words[0], path, *words[1:]) == 4
    assert not path.exists()


@pytest.mark.parametrize("witness", ["deleted", "older too", "elsewhere", "unreadable"])
def test_without_a_witness_a_noted_fingerprint_refuses_an_older_copy(path: Path, folder: Path, witness: str) -> None:
    (seen,) = (Path(file) for file in folder.iterdir())
    older, old = seen.read_bytes(), path.read_bytes()
    spend(path)
    head = Ledger.open(path).head
    path.write_bytes(old)
    if witness == "older too":
        seen.write_bytes(older)
    elif witness != "elsewhere":
        seen.unlink()
        if witness == "unreadable":
            seen.mkdir()
    first = ("--witness", folder / "empty") if witness == "elsewhere" else ()
    assert command(*first, "ledger", "verify", path) == 0
    assert command(*first, "ledger", "verify", path, "--fingerprint", head) == 4


def test_of_two_copies_one_goes_on(path: Path, directory: Path) -> None:
    copy = directory / "copy.ledger"
    shutil.copy(path, copy)
    spend(path)  # seen from here on
    shutil.copy(path, copy)
    with Ledger.open(path) as one, Ledger.open(copy) as other:
        other.charge(STEP, task="the copy goes on")
        with pytest.raises(LedgerDamagedError):
            one.charge(STEP, task="the original too")
    with pytest.raises(LedgerDamagedError):
        Ledger.open(path)


def test_a_lost_ledger_is_neither_opened_nor_made_anew(path: Path) -> None:
    spend(path)
    witness = Ledger.open(path, read_only=True).verify().witness
    path.unlink()
    for call in (lambda: Ledger.open(path), lambda: Ledger.create(path, budget=PureDP(1)),
                 lambda: Ledger.open_or_create(path, budget=PureDP(1))):  # fmt: skip
        with pytest.raises(LedgerDamagedError):
            call()
    assert not path.exists() and witness is not None
    witness.unlink()
    Ledger.create(path, budget=PureDP(1)).close()


def test_a_ledger_that_spent_nothing_may_be_made_again(directory: Path) -> None:
    for _ in range(2):
        Ledger.create(directory / "new.ledger", budget=PureDP(1)).close()
        (directory / "new.ledger").unlink()
    with pytest.raises(LedgerError):
        Ledger.open(directory / "new.ledger")


def test_a_kill_between_ledger_and_witness_is_no_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    spend(path)
    with monkeypatch.context() as patched, Ledger.open(path) as ledger:
        patched.setattr(Note, "write", die)
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(STEP, task="killed")
    found = Ledger.open(path).verify()
    assert found.ok and found.witnessed == found.lines - 1
    spend(path)
    found = Ledger.open(path).verify()
    assert found.witnessed == found.lines


LEFT = [b"\0" * 300, b'{"lines":99', b"\n\n", b'{"lines":true,"head":"x","path":"y"}\n', b"[]\n"]


@pytest.mark.parametrize("left", LEFT)
def test_what_a_power_failure_leaves_of_a_witness_is_passed_over(path: Path, left: bytes) -> None:
    spend(path)
    witness = Ledger.open(path).verify().witness
    assert witness is not None
    with witness.open("ab") as file:
        file.write(left)
    spend(path)
    found = Ledger.open(path).verify()
    assert found.ok and found.witnessed == found.lines


def test_a_witness_that_cannot_be_written_stops_no_spend_and_verify_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPCAUSAL_WITNESS", "/dev/null/none")
    spend(path)
    found = Ledger.open(path).verify()
    assert found.ok and found.witnessed == 0


def test_a_witness_elsewhere_is_named_by_argument(path: Path, directory: Path, folder: Path) -> None:
    elsewhere = directory / "elsewhere"
    with Ledger.open(path, witness=elsewhere) as ledger:
        ledger.charge(STEP, task="t")
    assert len(list(elsewhere.glob("*.witness"))) == 1 and len(list(folder.iterdir())) == 1
    assert CliRunner().invoke(app, ["--witness", str(elsewhere), "ledger", "verify", str(path)]).exit_code == 0


def test_times_are_minutes_and_an_answer_has_its_spends(path: Path) -> None:
    account = Account()
    account.read(path.read_bytes())
    assert all(len(stamp) == len("2026-01-01T00:00+00:00") for stamp in account.stamps)
    with Ledger.open(path) as ledger:
        assert ledger.charge(STEP, task="t").at[:16] == ledger.entries()[-1].at[:16]


def test_a_witness_that_cannot_be_read_hides_no_other(path: Path, folder: Path) -> None:
    """Seen to fail: a folder of that name ended the search, and a lost ledger could be made anew."""
    spend(path)
    (folder / "0.witness").mkdir()
    path.unlink()
    for call in (lambda: Ledger.open(path), lambda: Ledger.create(path, budget=PureDP(1))):
        with pytest.raises(LedgerDamagedError):
            call()


def test_a_witness_that_can_only_be_read_still_refuses(
    path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: a copy that was opened before the original went on could be spent from."""
    spend(path)
    shutil.copy(path, directory / "copy.ledger")
    own = os.open

    def read_only(name: Any, flags: int, *mode: int, **place: int) -> int:
        if str(name).endswith(".witness") and flags & os.O_RDWR:
            raise PermissionError
        return own(name, flags, *mode, **place)

    with Ledger.open(directory / "copy.ledger") as copy:
        spend(path)
        monkeypatch.setattr(os, "open", read_only)
        with pytest.raises(LedgerDamagedError):
            copy.charge(STEP, task="t")


def test_a_ledger_that_takes_the_place_of_one_that_had_spent_is_refused(path: Path, directory: Path) -> None:
    """Seen to fail: a fresh ledger that was moved over a spent one brought its whole budget."""
    spend(path)
    fresh, used = directory / "fresh.ledger", directory / "used.ledger"
    for one in (fresh, used):
        Ledger.create(one, budget=PureDP(1)).close()
    spend(used)
    spent, kept = path.read_bytes(), directory / "kept.ledger"
    os.replace(path, kept)
    link = directory / "link.ledger"
    link.symlink_to(path)
    for other in (fresh, used):
        shutil.copy(other, path)
        for name in (path, link):
            for read_only in (False, True):
                with pytest.raises(LedgerDamagedError):
                    Ledger.open(name, read_only=read_only)
        assert CliRunner().invoke(app, ["ledger", "verify", str(path)]).exit_code == 4
    os.replace(kept, path)
    spend(path)
    assert path.read_bytes().startswith(spent)


def test_a_ledger_may_be_moved_to_where_none_or_a_trial_was(path: Path, directory: Path) -> None:
    spend(path)
    trial = directory / "trial.ledger"
    Ledger.create(trial, budget=PureDP(1)).close()
    here = path
    for place in (trial, directory / "elsewhere.ledger", path):
        os.replace(here, place)
        spend(place)
        here = place


def test_a_pipe_in_place_of_a_witness_makes_nobody_wait(path: Path, folder: Path) -> None:
    """Seen to fail: each opening waited for ever."""
    witness = Ledger.open(path, read_only=True).verify().witness
    assert witness is not None
    witness.unlink()
    for pipe in (witness, folder / "a.witness"):
        os.mkfifo(pipe)
    spend(path)
    assert Ledger.open(path).verify().ok
    with pytest.raises(LedgerError):
        Ledger.create(path, budget=PureDP(1))
