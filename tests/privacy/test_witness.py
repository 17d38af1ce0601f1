"""The witness: a ledger that was cut short, put back, copied or lost is refused, and a kill in between is no damage."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpcausal import Ledger, PureDP
from dpcausal.errors import LedgerDamagedError, LedgerError
from dpcausal.privacy.storage import store
from dpcausal.privacy.storage.lines import Account
from dpcausal.privacy.storage.witness import Note
from tests.commands import command

STEP = PureDP(0.125)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPCAUSAL_WITNESS", str(tmp_path / "witnesses"))
    return tmp_path / "witnesses"


def spend(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.charge(STEP, task="after")


PLACES: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink, "renamed": lambda path: path.rename(path.with_name("moved.ledger")),
    "renamed and continued": lambda path: spend(path.rename(path.with_name("moved.ledger"))),
    # Seen to fail: a folder of that name ended the search, and a lost ledger could be made anew.
    "deleted beside a witness that cannot be read": lambda path: [
        Path(os.environ["DPCAUSAL_WITNESS"], "0.witness").mkdir(), path.unlink()],
}  # fmt: skip


@pytest.mark.parametrize("way", PLACES)
def test_a_ledger_that_is_not_where_it_was_is_neither_opened_nor_made_anew(path: Path, folder: Path, way: str) -> None:
    spend(path)
    PLACES[way](path)
    for words in (("verify", path), ("create", path, "--epsilon", 1)):
        assert command("ledger", *words).exit_code == 4
    for call in (Ledger.open, Ledger.create, Ledger.open_or_create):
        with pytest.raises(LedgerDamagedError):
            call(path, **({} if call == Ledger.open else {"budget": PureDP(1)}))
    assert not path.exists()
    shutil.rmtree(folder)
    Ledger.create(path, budget=PureDP(1)).close()


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
    assert command(*first, "ledger", "verify", path).exit_code == 0
    for noted, code in ((head, 4), (head[:-1], 2)):
        refused = command(*first, "ledger", "verify", path, "--fingerprint", noted)
        assert (refused.exit_code, refused.stdout) == (code, "")
        assert code == 2 or "the noted head is not in the chain: rolled back" in refused.stderr


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
    assert command("--witness", elsewhere, "ledger", "verify", path).exit_code == 0


def test_times_are_minutes_and_an_answer_has_its_spends(path: Path) -> None:
    account = Account()
    account.read(path.read_bytes())
    assert all(len(stamp) == len("2026-01-01T00:00+00:00") for stamp in account.stamps)
    with Ledger.open(path) as ledger:
        assert ledger.charge(STEP, task="t").at[:16] == ledger.entries()[-1].at[:16]


@pytest.mark.parametrize("fault", [PermissionError(), TimeoutError("busy"), OSError(errno.ENOLCK, "none")], ids=repr)
def test_a_witness_that_can_only_be_read_or_not_be_locked_still_refuses(
    path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch, fault: OSError
) -> None:
    """Seen to fail: a copy that was opened before the original went on could be spent from."""
    spend(path)
    shutil.copy(path, directory / "copy.ledger")
    opened, locked = os.open, store._lock

    def read_only(name: Any, flags: int, *mode: int, **place: int) -> int:
        if str(name).endswith(".witness") and flags & os.O_RDWR:
            raise fault
        return opened(name, flags, *mode, **place)

    def of_ledgers_only(file: Any, writing: bool = False) -> None:
        if file.mode == "ab+":
            raise fault
        locked(file, writing)

    with Ledger.open(directory / "copy.ledger") as copy:
        spend(path)
        if isinstance(fault, PermissionError):
            monkeypatch.setattr(os, "open", read_only)
        else:
            monkeypatch.setattr(store, "_lock", of_ledgers_only)
        with pytest.raises(LedgerDamagedError):
            copy.charge(STEP, task="t")


def test_the_same_spend_after_a_restored_copy_has_another_fingerprint(path: Path, folder: Path) -> None:
    """Seen to fail: within one minute, from one process, both lines were the same, and so were their hashes."""
    old, heads = path.read_bytes(), set[str]()
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        path.write_bytes(old)
        spend(path)
        heads.add(Ledger.open(path).head)
    assert len(heads) == 3
    path.write_bytes(old)
    shutil.rmtree(folder)
    with pytest.raises(LedgerDamagedError):
        Ledger.open(path, heads.pop())


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
        assert command("ledger", "verify", path).exit_code == 4
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
