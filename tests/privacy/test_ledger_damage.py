"""Damage to a ledger's file, and power that fails while it is written: refused where in doubt, never a spend less."""

import itertools
import re
import shutil
import sqlite3
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcausal import Ledger, PureDP
from dpcausal.errors import BudgetExceededError, LedgerDamagedError, LedgerError
from dpcausal.privacy.storage.lines import sealed
from tests.commands import command
from tests.privacy.conftest import SPENDS, seen


def forged(
    path: Path, kind: str = "spend", of: str = "PureDP(0.5)", first: str = "PureDP(0.1)", **changes: Any
) -> None:
    """Write a ledger whose third line says what it must not; its hashes and their chain are in order."""
    spend = {"task": "t", "loss": first, "zcdp": None, "unit": "row", "column": "", "relation": "replace-one"}
    spend |= {"detail": {}, "once": {"seed": 7}, "caveats": "", "number": 1}
    first_told = {"budget": of, "unit": "row", "column": ""}
    told = [("ledger", first_told), ("spend", spend)]
    told.append((kind, spend | {"loss": "PureDP(0.1)", "number": 2} | changes))
    lines: list[bytes] = []
    for each, what in told:
        previous = lines[-1][-67:-3].decode() if lines else ""
        lines.append(sealed(each, {"previous": previous, **what}))
    path.write_bytes(b"".join(lines))


def test_lines_that_were_not_forged_pass(directory: Path) -> None:
    forged(directory / "study.ledger")
    assert Ledger.open(directory / "study.ledger").verify().entries == 2
    forged(directory / "study.ledger", kind="renewal", budget="PureDP(0.6)", reason="r")
    assert Ledger.open(directory / "study.ledger").budget == PureDP(0.6)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"loss": "PureDP(0.5)"}, "above the budget"),
        ({"loss": "ZCDP(0.001)"}, "above the budget"),
        ({"loss": "NoPrivacy()"}, "above the budget"),
        ({"of": "ApproxDP(1, 0.000001)", "first": "ApproxDP(1, 0.000001)"}, "above the budget"),  # it had closed
        ({"of": "ApproxDP(5, 0.000001)", "loss": "NoPrivacy()"}, "above the budget"),
        ({"loss": "PureDP(0.10)"}, "malformed"),
        ({"loss": "PureDP(-1)"}, "malformed"),
        ({"loss": "Loss()"}, "malformed"),
        ({"loss": 0.1}, "malformed"),
        ({"zcdp": "PureDP(0.1)"}, "malformed"),
        ({"number": 3}, "not spend 2"),
        ({"number": 1}, "not spend 2"),
        ({"previous": "0" * 64}, "does not follow"),
        ({"unit": "nobody"}, "malformed"),
        ({"unit": "donor"}, "do not add up"),
        ({"column": "id"}, "do not add up"),
        ({"relation": "any"}, "unknown relation"),
        ({"relation": "add-or-remove-one"}, "would not add up"),
        ({"once": {"seed": 8}}, "'seed' was declared as 7, and stands once for a ledger"),
        ({"once": []}, "malformed"),
        ({"kind": "answer", "answer": {}, "number": 2}, "beside a spend"),
        ({"kind": "answer", "answer": {}, "number": 0}, "beside a spend"),
        ({"kind": "answer", "answer": {}, "number": 1, "at": "2026-01-01T00:00+00:00"}, "time of an answer"),
        ({"kind": "ledger", "budget": "PureDP(100)", "nonce": ""}, "not those of a line"),
        *(({"kind": "renewal", "budget": budget, "reason": "r"}, "a renewal raises")
          for budget in ("PureDP(0.4)", "ZCDP(5)", "NoPrivacy()", "ApproxDP(1, 0.1)")),
    ],
)
def test_a_forged_line_is_found_at_every_opening(directory: Path, changes: dict[str, Any], problem: str) -> None:
    """What is wrong is what the line says: only a recount tells, and every opening does one."""
    path = directory / "study.ledger"
    forged(path, **changes)
    for read_only in (False, True):
        with pytest.raises(LedgerDamagedError, match=f"study.ledger: line [23]: .*{problem}.*nothing can be spent"):
            Ledger.open(path, read_only=read_only)


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


DAMAGED: dict[str, Callable[[bytes], bytes]] = {
    "a word": lambda now: now.replace(b"call 3", b"call 8"),
    "a hash": lambda now: now[:-10] + (b"1" if now[-10:-9] == b"0" else b"0") + now[-9:],
    "the budget": lambda now: now.replace(b"PureDP(1)", b"PureDP(9)"),
    "a line gone": lambda now: order(now, 0, 1, 3, 4, 5, 6),
    "the first line gone": lambda now: order(now, 1, 2, 3, 4, 5, 6),
    "two lines changed places": lambda now: order(now, 0, 1, 3, 2, 4, 5, 6),
    "a line twice": lambda now: order(now, 0, 1, 2, 3, 4, 5, 6, 6),
    "an empty line": lambda now: now + b"\n",
    "words after the last line": lambda now: now + b"epsilon 1\n",
    "line breaks of another system": lambda now: now.replace(b"\n", b"\r\n"),
    "another encoding": lambda now: now.decode().encode("utf-16"),
    "cut within its first line": lambda now: now[:100],
    "nothing": lambda now: b"",
    "zeros": lambda now: bytes(len(now)),
    "foreign text": lambda now: b"epsilon 1\n" * 1000,
    "foreign bytes": lambda now: np.random.default_rng(1).bytes(20_000),
    "an unknown kind of line": lambda now: rewritten(now, b'"answer","number"', b'"gift","number"'),
    "two objects on a line": lambda now: rewritten(now[:-1] + b'{"other":0,"hash":""}\n', b"", b""),
    "a newer format": lambda now: now.replace(b'"format":4', b'"format":5'),
}
"""What is wrong with a file by itself."""

WITNESSED: dict[str, Callable[[bytes, bytes, bytes], bytes]] = {
    "an older copy": lambda old, now, other: old,
    "cut after a line": lambda old, now, other: order(now, 0, 1, 2),
    "cut to its first line": lambda old, now, other: order(now, 0),
    "cut within a line": lambda old, now, other: now[:-100],
    "without the end of its last line": lambda old, now, other: now[:-9],
    "a line of another ledger": lambda old, now, other: now + order(other, 1),
    "another ledger": lambda old, now, other: other,
    "its budget raised and all hashes made again": lambda old, now, other: rewritten(now, b"PureDP(1)", b"PureDP(9)"),
    "a cost lowered and all hashes made again": lambda old, now, other: rewritten(now, b"0.125", b"0.001"),
    "an older copy that went on": lambda old, now, other: old + order(rewritten(now, b"after", b"other"), -1),
}
"""What may stand in a ledger's place: of its older content, its own, and another ledger's."""


@pytest.mark.parametrize("way", [*DAMAGED, *WITNESSED])
def test_a_file_that_was_tampered_with_is_refused_with_code_4_and_left_alone(
    path: Path, directory: Path, way: str
) -> None:
    old, other, copy = path.read_bytes(), directory / "other.ledger", directory / "copy.ledger"
    Ledger.create(other, budget=PureDP(1)).close()
    for ledger in (path, other):
        Ledger.open(ledger).charge(PureDP(0.125), task="after")
    now = path.read_bytes()
    altered = DAMAGED[way](now) if way in DAMAGED else WITNESSED[way](old, now, other.read_bytes())
    path.write_bytes(altered)
    for words in (["verify"], ["show"], ["show", "--json"], ["show", "--jsonl"]):
        done = command("ledger", words[0], path, *words[1:])
        assert (done.exit_code, done.stdout) == (4, "") and "study.ledger" in done.stderr
    for read_only, witness in itertools.product((False, True), (None, "/dev/null/none")):
        if way in DAMAGED or witness is None:
            with pytest.raises(LedgerDamagedError, match=r"study\.ledger: .*nothing can be spent"):
                Ledger.open(path, read_only=read_only, witness=witness)
    assert path.read_bytes() == altered
    if way not in ("another ledger", "its budget raised and all hashes made again"):  # these are known by their place
        shutil.copy(path, copy)
        assert command("ledger", "verify", copy).exit_code == 4
    path.write_bytes(now)
    assert Ledger.open(path).charge(PureDP(0.125), task="after").number == SPENDS + 2


def test_a_newer_format_and_an_older_one_say_so(path: Path, directory: Path) -> None:
    for number in (2, 17):
        path.write_bytes(re.sub(rb'"format":\d+', b'"format":%d' % number, path.read_bytes()))
        with pytest.raises(LedgerDamagedError, match=f"version of this library, format {number}"):
            Ledger.open(path)
    connection = sqlite3.connect(directory / "old.ledger")
    connection.execute("CREATE TABLE entries (number INTEGER PRIMARY KEY)")
    connection.close()
    with pytest.raises(LedgerDamagedError, match=r"old\.ledger: an SQLite ledger of version 0\.1"):
        Ledger.open(directory / "old.ledger")


def test_every_changed_byte_is_refused_or_changes_nothing(path: Path, directory: Path) -> None:
    """Each byte of the file takes three other values: in all but the last line break, which may be missed, it shows."""
    with Ledger.open(path) as ledger:
        before = seen(ledger)
    content, generator = path.read_bytes(), np.random.default_rng(2)
    changed_file, harmless = directory / "changed.ledger", []
    for offset in range(len(content)):
        for value in {0, 10, int(generator.integers(256)), content[offset] ^ 1} - {content[offset]}:
            changed_file.write_bytes(content[:offset] + bytes([value]) + content[offset + 1 :])
            try:
                changed = Ledger.open(changed_file, read_only=True)
            except LedgerError:
                continue
            assert seen(changed) == before
            assert changed.verify().ok
            harmless.append(offset)
    assert set(harmless) <= {len(content) - 1}


# Power that fails: a line that was being written is whole, cut off, or refused; what was granted before it stays.


def lost_power(content: bytes, start: int) -> dict[str, list[bytes]]:
    """Return what a file may hold after power failed while the bytes from ``start`` on were written."""
    line = content[start:]
    noise = np.random.default_rng(start).bytes(len(line))
    cuts = range(len(line) + 1)
    return {
        "cut off": [content[: start + cut] for cut in cuts],
        "zeros to the end": [content[: start + cut] + bytes(len(line) - cut) for cut in cuts],
        "zeros beyond the end": [content[: start + cut] + bytes(4096) for cut in cuts],
        "zeros up to there": [content[:start] + bytes(cut) + line[cut:] for cut in cuts],
        "noise to the end": [content[: start + cut] + noise[cut:] for cut in cuts],
        "noise up to there": [content[:start] + noise[:cut] + line[cut:] for cut in cuts],
        "one byte of noise": [content[: start + cut] + noise[cut : cut + 1] + line[cut + 1 :] for cut in cuts],
        "one zero": [content[: start + cut] + b"\0" + line[cut + 1 :] for cut in cuts[:-1]],
    }


@pytest.mark.parametrize("before", [1, 3, 5], ids=["the first spend", "an answer", "the last spend"])
def test_power_that_fails_while_a_line_is_written_costs_no_spend(
    path: Path, directory: Path, before: int, unwitnessed: None
) -> None:
    whole = path.read_bytes().splitlines(keepends=True)
    content, start = b"".join(whole[: before + 1]), len(b"".join(whole[:before]))
    (directory / "granted.ledger").write_bytes(content[:start])
    granted = Ledger.open(directory / "granted.ledger", read_only=True).entries()
    damaged, tally = directory / "damaged.ledger", {"refused": 0, "cut": 0, "kept": 0}
    for kind, states in lost_power(content, start).items():
        for state in states:
            damaged.write_bytes(state)
            try:
                ledger = Ledger.open(damaged)
            except LedgerDamagedError:
                assert not kind.startswith(("cut", "zeros to", "zeros beyond"))
                assert damaged.read_bytes() == state
                tally["refused"] += 1
                continue
            recorded = ledger.entries()
            assert recorded[: len(granted)] == granted
            assert ledger.charge(PureDP(0.125), task="after").number == len(recorded) + 1
            found = ledger.verify()
            assert (found.ok, found.entries, found.incomplete) == (True, len(recorded) + 1, 0)
            tally["kept" if content.startswith(damaged.read_bytes()[: len(content)]) else "cut"] += 1
    print(f"power lost within line {before + 1}: 0 spends under-recorded, {tally}")
    assert tally["kept"] >= 2
    assert min(tally["cut"], tally["refused"]) >= 2 * len(whole[before])


def test_damage_within_lines_that_were_granted_is_refused(path: Path, directory: Path) -> None:
    """A sector may be lost with what it held before: a line that ends and does not check may have been a spend."""
    content = path.read_bytes()
    line = content.splitlines(keepends=True)[-2]
    start, end = content.index(line), content.index(line) + len(line)
    generator, damaged = np.random.default_rng(4), directory / "damaged.ledger"
    for cut in range(start, end):
        for spoilt in (bytes(end - cut), generator.bytes(end - cut), bytes(1)):
            state = content[:cut] + spoilt + content[cut + len(spoilt) :]
            if state == content:
                continue
            damaged.write_bytes(state)
            with pytest.raises(LedgerDamagedError):
                Ledger.open(damaged)


def test_an_end_that_no_unfinished_write_leaves_is_refused(path: Path, directory: Path) -> None:
    """Without a line break at its end, too: the last line may have been a spend that was granted."""
    content = path.read_bytes()
    start, damaged = len(content) - len(content.splitlines(keepends=True)[-1]), directory / "damaged.ledger"
    noise = np.random.default_rng(5).integers(128, 256, len(content), dtype=np.uint8).tobytes()
    for cut in range(start, len(content) - 2):
        for state in (content[:cut] + noise[cut:], content[:cut] + b"\0" + content[cut + 1 : -1]):
            damaged.write_bytes(state)
            with pytest.raises(LedgerDamagedError, match="its end is scrambled"):
                Ledger.open(damaged)


def test_a_torn_line_is_left_out_by_readers_and_cut_off_by_the_next_spend(path: Path, unwitnessed: None) -> None:
    content = path.read_bytes()
    for torn in (b'{"kind":"spend","number":5,"at":"2025', bytes(300), b'{"kind":"spe' + bytes(50)):
        path.write_bytes(content + torn)
        with Ledger.open(path, read_only=True) as ledger:
            found = ledger.verify()
            assert (found.ok, found.entries, found.incomplete) == (True, SPENDS, len(torn))
        assert f"{len(torn)} bytes" in command("ledger", "verify", path).output
        with Ledger.open(path) as ledger:
            with pytest.raises(BudgetExceededError):
                ledger.charge(PureDP(2), task="too much")
            assert path.read_bytes() == content + torn  # whoever writes nothing cuts nothing
            ledger.charge(PureDP(0.01), task="next")
        assert path.read_bytes().startswith(content)
        assert path.read_bytes().count(b"\n") == content.count(b"\n") + 1
        assert Ledger.open(path).verify().incomplete == 0


def test_a_file_cut_short_is_an_older_copy_which_a_noted_head_tells(path: Path, unwitnessed: None) -> None:
    """Every beginning of a file that only grows was once the whole file: nothing in it can say that more was there."""
    content, head = path.read_bytes(), Ledger.open(path).head
    for length in range(len(content.splitlines(keepends=True)[0]), len(content) - 1, 7):
        path.write_bytes(content[:length])
        assert Ledger.open(path).verify().ok
        with pytest.raises(LedgerDamagedError, match="noted head"):
            Ledger.open(path, head)
