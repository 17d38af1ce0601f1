"""The lines of a ledger: what they hold, and what all of them come to.

Each line is a JSON object.  Its last member ``hash`` is the SHA-256 of the line up to ``,"hash":``; ``previous`` is the
hash of the line before, so that the last hash, the head, identifies the whole history.  The first line names the
format, the budget and the unit that is protected; then there is a ``spend`` for each allotment, an ``answer`` for each
that was kept beside its spend, a ``declaration`` of what is public for the ledger's life, a ``renewal`` for each larger
budget and ``parts`` where analysts have some of it each.  Times are minutes, and an answer's is its spend's: none shows
how long one took.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache, partial
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from dpcausal.errors import BudgetExceededError, LedgerDamagedError, LedgerError, Setting
from dpcausal.privacy.budget import json_text
from dpcausal.privacy.checks import refusal
from dpcausal.privacy.composition import Cost, Totals, admit, caps_of, cost_of, renewed
from dpcausal.privacy.loss import Loss, NoPrivacy, loss_text, parse_loss
from dpcausal.privacy.noise import public_name
from dpcausal.privacy.sensitivity import PrivacyUnit, Relation, Unit

FORMAT = 4  # of the lines; others are refused

MEMBERS = {kind: members.split() for kind, members in {
    "ledger": "kind format at pid library nonce budget unit column previous hash",
    "spend": "kind number at pid library nonce task loss zcdp unit column relation detail once caveats previous hash",
    "answer": "kind number at pid library nonce answer previous hash",
    "declaration": "kind at pid library nonce unit column once previous hash",
    "renewal": "kind at pid library nonce budget reason previous hash",
    "parts": "kind at pid library nonce parts previous hash",
}.items()}  # fmt: skip
"""What each kind of line holds, in this order."""

Spends = list[tuple[dict[str, Any], Totals]]  # what spends hold but for their kind, and the totals after each

QUESTION_KEY = "asked"
"""In a spend's detail: the key of exactly this question, where its result is to be cached."""

ANALYST_KEY = "analyst"
"""In a spend's detail: who asked."""

_decode: Callable[[str], tuple[dict[str, Any], int]] = json.JSONDecoder().raw_decode
_library = lru_cache(maxsize=1)(partial(version, "dpcausal"))
_RELATIONS = {relation.value for relation in Relation}


@dataclass
class Account:
    """What the lines of a ledger come to, read from the first.

    ``once``: what was declared for the whole ledger, as JSON, by name and, of a mapping, key.  ``spends_by_key``: those
    for each question.  ``stamps``: the minute of each spend.  ``heads``: the hash of each line; that of the ``last``,
    which has its line break, is ``head``.  ``size``: the bytes of all lines; ``incomplete``: of what follows them.
    ``created``: the minute of the first line, and the version that wrote it.  ``renewals``: the minute, reason and
    budget of each.  ``parts``: the budget of each analyst, which only a renewal may raise, by ``raisable``.
    """

    budget: Loss = field(default_factory=NoPrivacy)
    protects: PrivacyUnit = field(default_factory=PrivacyUnit)
    created: tuple[str, str] = ("", "")
    caps: Cost | None = None
    totals: Totals = field(default_factory=Totals)
    relation: str = ""
    renewals: list[tuple[str, str, Loss]] = field(default_factory=list)
    parts: dict[str, Loss] = field(default_factory=dict)
    part_totals: dict[str, Totals] = field(default_factory=dict)
    raisable: bool = True
    once: dict[tuple[str, str], str] = field(default_factory=dict)
    answers: dict[int, str] = field(default_factory=dict)
    spends_by_key: dict[str, tuple[int, ...]] = field(default_factory=dict)
    stamps: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    last: bytes = b""
    size: int = 0
    incomplete: int = 0

    @property
    def head(self) -> str:
        return self.heads[-1] if self.heads else ""

    @property
    def lines(self) -> int:
        return len(self.heads)

    @property
    def declared(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for (name, key), text in self.once.items():
            if key:
                values.setdefault(name, {})[key] = json.loads(text)
            else:
                values[name] = json.loads(text)
        return values

    def after(self) -> Account:
        own = "once", "answers", "spends_by_key", "stamps", "heads", "renewals", "parts", "part_totals"
        return replace(self, **{name: getattr(self, name).copy() for name in own})

    def read(self, raw: bytes, expected_head: str | None = None, spends: Spends | None = None) -> int:
        """Check and count what a file holds from ``last`` on; return how much of it is whole lines. The head that is
        expected must be among those that are read.  ``spends`` takes those with their totals."""
        if not self.lines:
            _check_format(raw)
        text, whole_length = _whole_lines(raw)
        if not text.startswith(self.last):
            raise LedgerDamagedError(f"line {self.lines} is gone or altered: it was cut short or rolled back")
        head_seen = expected_head in (None, self.head)
        for line in text[len(self.last) :].split(b"\n")[:-1]:
            try:
                record = self.take(line)
            except (LedgerError, BudgetExceededError) as error:
                rule = error if isinstance(error, LedgerError) else "it is above the budget"
                raise LedgerDamagedError(f"line {self.lines + 1}: {rule}") from None
            except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
                raise LedgerDamagedError(f"line {self.lines + 1}: it is malformed") from None
            head_seen = head_seen or self.head == expected_head
            if spends is not None and record.pop("kind") == "spend":
                spends.append((record, self.totals))
        if not head_seen:
            raise LedgerDamagedError("the noted head is not in the chain: rolled back, or another ledger")
        self.incomplete = len(raw) - whole_length
        return whole_length

    def take(self, line: bytes) -> dict[str, Any]:
        """Count the next line by the rules that bind its writer and its readers alike; refuse it if it breaks one."""
        if not _is_sealed(line):
            raise LedgerError("it was altered: its hash does not match")
        text = line.decode()
        record, end = _decode(text)
        if end != len(text):
            raise LedgerError("more than one object is on it")
        kind = record["kind"]
        if [*record] != MEMBERS[kind] or (kind == "ledger") != (not self.heads):
            raise LedgerError("its members are not those of a line of this format")
        if record["previous"] != self.head:
            raise LedgerError("it does not follow the line before")
        if kind == "ledger":
            self.budget = parse_loss(record["budget"])
            self.protects = privacy_unit(record["unit"], record["column"])
            self.caps, self.created = caps_of(self.budget), (record["at"], record["library"])
        elif kind == "spend":
            self._spend(record)
        elif kind == "declaration":
            self.once |= self.undeclared(privacy_unit(record["unit"], record["column"]), record["once"])
        elif kind == "renewal":
            self._renew(record["at"], record["reason"], parse_loss(record["budget"]))
        elif kind == "parts":
            self._divide({name: parse_loss(part) for name, part in record["parts"].items()})
        elif 1 <= record["number"] <= self.totals.spends and record["number"] not in self.answers:
            if record["at"] != self.stamps[record["number"] - 1]:
                raise LedgerError("the time of an answer is that of its spend")
            self.answers[record["number"]] = json_text(record["answer"])
        else:
            raise LedgerError("an answer is kept once, beside a spend of this ledger")
        self.heads.append(record["hash"])
        self.last = line + b"\n"
        self.size += len(self.last)
        return record

    def _spend(self, record: dict[str, Any]) -> None:
        if record["number"] != self.totals.spends + 1:
            raise LedgerError(f"it is not spend {self.totals.spends + 1}")
        relation = record["relation"]
        if relation not in _RELATIONS:
            raise LedgerError("it names an unknown relation")
        if self.relation not in ("", relation) and not self.budget.exact:
            raise LedgerError(f"this ledger counts {self.relation}: a spend under {relation} would not add up")
        once = self.undeclared(privacy_unit(record["unit"], record["column"]), record["once"])
        cost, analyst = written_cost(record["loss"], record["zcdp"]), record["detail"].get(ANALYST_KEY)
        totals = admit(self.budget, self.totals, cost, self.caps)
        if totals is None:
            raise refusal(parse_loss(record["loss"]), self.budget, self.totals)
        if self.parts:
            self._spend_of(analyst, parse_loss(record["loss"]), cost)
        self.totals, self.relation = totals, relation
        self.once |= once
        self.stamps.append(record["at"])
        key = record["detail"].get(QUESTION_KEY)
        if isinstance(key, str) and key:
            self.spends_by_key[key] = (*self.spends_by_key.get(key, ()), totals.spends)

    def _spend_of(self, analyst: str, loss: Loss, cost: Cost) -> None:
        if analyst not in self.parts:
            raise LedgerError(
                f"{analyst or 'nobody'} has no part of this ledger; {', '.join(self.parts)} have; nothing was spent",
                argument="analyst", rule="no-part", hint="set DPCAUSAL_ANALYST to the name of a part",
            )  # fmt: skip
        before = self.part_totals.get(analyst, Totals())
        after = admit(self.parts[analyst], before, cost)
        if after is None:
            raise refusal(loss, self.parts[analyst], before, f"of the part of {analyst}")
        self.part_totals[analyst] = after

    def _renew(self, at: str, reason: str, budget: Loss) -> None:
        if self.budget.exact or self.caps is None or not _covers(budget, self.budget):
            raise LedgerError("a renewal raises the budget by an amount of its own kind")
        self.budget, self.caps, self.raisable = budget, caps_of(budget), True
        self.totals = renewed(self.caps, self.totals)
        self.renewals.append((at, reason, budget))

    def _divide(self, parts: dict[str, Loss]) -> None:
        amounts = self.budget.amounts.items()
        sums = {name: sum((part.amounts[name] for part in parts.values()), Fraction(0)) for name, _ in amounts}
        if not parts or any(sums[name] > amount for name, amount in amounts):
            raise LedgerError("the parts of analysts are amounts of the budget's kind, and together at most the budget")
        if not (self.raisable or all(name in parts and _covers(old, parts[name]) for name, old in self.parts.items())):
            raise LedgerError("the part of an analyst may be lowered, and raised only after a renewal")
        self.parts, self.raisable = parts, False

    def undeclared(self, unit: PrivacyUnit, once: Mapping[str, Any]) -> dict[tuple[str, str], str]:
        """Return the declarations that are new; refuse those of another unit, or against an earlier one."""
        if unit is not self.protects and unit != self.protects and not self.budget.exact:
            raise self.protects.refusal(unit)
        if once == {}:
            return {}
        declared = declarations(once)
        for place, text in declared.items():
            earlier = self.once.get(place, text)
            if earlier != text:
                declaration = f"as {earlier}" if len(earlier) <= 80 else "otherwise"
                raise LedgerError(
                    f"'{' '.join(filter(None, place))}' was declared {declaration}, and stands once for a ledger; "
                    "nothing was spent; what differs needs a new ledger, whose budget comes on top of this one's",
                    argument="ledger", rule="declared-once",
                )  # fmt: skip
        return {place: text for place, text in declared.items() if place not in self.once}

    def check_unspent(self, key: str) -> None:
        if key in self.spends_by_key:
            number = self.spends_by_key[key][-1]
            raise LedgerError(
                f"spend {number} paid for exactly this question, but the run was interrupted before its result was "
                "saved, or still goes on; nothing was spent now",
                argument="refresh", rule="spent-without-answer", value=number,
                hint=("to pay again use ", Setting("refresh", True)),
            )  # fmt: skip


def _covers(large: Loss, small: Loss) -> bool:
    amounts = zip(large.amounts.values(), small.amounts.values(), strict=False)
    return type(large) is type(small) and all(one >= other for one, other in amounts)


def declarations(once: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    texts: dict[tuple[str, str], str] = {}
    for name, value in once.items():
        parts = value.items() if isinstance(value, Mapping) else [("", value)]
        texts |= {(name, key): json_text(part) for key, part in parts}
    return texts


def first_line(budget: Loss, protects: PrivacyUnit) -> bytes:
    """Return the first line of a ledger; its hash is of this ledger alone, and names it."""
    declared = {"budget": loss_text(budget), "unit": protects.unit.value, "column": protects.column}
    return sealed("ledger", declared)


def sealed(kind: str, members: Mapping[str, Any]) -> bytes:
    """Return a line, with its line break: these members, the time to the minute, and the writing process.

    Its random ``nonce`` makes it unlike any other: the same spend after a copy or a restored file has another hash.
    """
    stamp = {"at": datetime.now(UTC).isoformat(timespec="minutes"), "pid": os.getpid(), "library": _library()}
    stamp["nonce"] = public_name()
    whole = {"kind": kind, "format": FORMAT, **stamp, "previous": "", **members}
    record = {name: whole[name] for name in MEMBERS[kind][:-1]}
    body = json.dumps(record, allow_nan=False, separators=(",", ":")).encode()[:-1]
    return body + _seal(body) + b"\n"


def _seal(body: bytes) -> bytes:
    return b',"hash":"%s"}' % sha256(body).hexdigest().encode()


def _is_sealed(line: bytes, length: int = len(_seal(b""))) -> bool:
    return line[-length:] == _seal(line[:-length])


def _check_format(raw: bytes) -> None:
    match = re.match(rb'{"kind":"ledger","format":(\d{1,9}),[^\n]*\n', raw)
    if match is None:
        sqlite = raw.startswith(b"SQLite format 3\0")
        raise LedgerDamagedError("an SQLite ledger of version 0.1" if sqlite else "not a ledger of this library")
    if int(match[1]) != FORMAT:
        age = "a newer" if int(match[1]) > FORMAT else "an older"
        raise LedgerDamagedError(f"of {age} version of this library, format {int(match[1])}: read it with that version")


def _whole_lines(raw: bytes) -> tuple[bytes, int]:
    """Return the lines that were written in full, and how many bytes they take. What follows the last line break is
    left of a write that failed, zeros or the beginning of a line: no release came after it.  A line without only its
    line break counts as written.  Anything else is damage."""
    end = raw.rfind(b"\n") + 1
    tail = raw[end:]
    line = tail[: tail.rfind(b"}") + 1]
    if _is_sealed(line):
        return raw[:end] + line + b"\n", end + len(line)
    if not re.fullmatch(rb"[ -~]*\0*", tail):
        raise LedgerDamagedError("its end is scrambled")
    return raw[:end], end


@lru_cache(maxsize=1024)
def privacy_unit(unit: str, column: str) -> PrivacyUnit:
    return PrivacyUnit(Unit(unit), column)


@lru_cache(maxsize=1024)
def written_cost(loss: str, zcdp: str | None) -> Cost:
    zcdp_loss: Any = None if zcdp is None else parse_loss(zcdp)
    return cost_of(parse_loss(loss), zcdp_loss)
