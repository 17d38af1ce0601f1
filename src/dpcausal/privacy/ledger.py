"""The ledger: a budget, and every spend from it, kept so that it cannot be cheated.

A spend is on the disk before the first noise is drawn and is never refunded.  The lines are chained by hashes; the last
hash, the head, is printed in every result: whoever records it can recognise a ledger that was rolled back.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dpcausal.errors import LedgerDamagedError, LedgerError, LossError, ParameterError, with_signature_errors
from dpcausal.privacy.budget import CallBudget, caveats_of, event_fields, json_text, plain
from dpcausal.privacy.checks import check_budget, check_kind
from dpcausal.privacy.composition import Remaining, Totals, remaining
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, exact_amount, loss_text
from dpcausal.privacy.sensitivity import PrivacyUnit, Relation, Unit
from dpcausal.privacy.storage.entries import Entry, Verification
from dpcausal.privacy.storage.lines import ANALYST_KEY, QUESTION_KEY, Account, Spends, first_line, written_cost
from dpcausal.privacy.storage.log import analyst_here, logged
from dpcausal.privacy.storage.place import ledger_exists, place_of, refuse_lost, store_at
from dpcausal.privacy.storage.store import LedgerStore, write_new
from dpcausal.privacy.storage.witness import folder_of
from dpcausal.privacy.unpicklable import Uncopyable

__all__ = ["CallBudget", "Detail", "Entry", "Ledger", "Verification"]

Detail = Mapping[str, str | int | float | bool | list[Any] | None]
"""Public arguments of a call, as they go into its entry."""

LONGEST_DETAIL, LONGEST_ONCE = 2**16, 2**24  # characters, as JSON
DECLARE_UNIT = ("person", "unit", "ids", "protect")  # words of Ledger.create


class Ledger(Uncopyable):
    """A privacy budget and the record of all that was spent from it.

    Attributes
    ----------
    budget, private : Loss, bool
        The most that all spends together may cost one unit; ``private`` is False only without privacy.
    protects : PrivacyUnit
        That unit: rows, persons of a column, units of a column.  A spend for another one is refused before it happens.
    durable, path : bool, Path, str or None
        Whether threads, processes and later runs share it, and which file, or which database, it is.

    Notes
    -----
    *Guarantee*: all that was released under allotments of one ledger, chosen adaptively, is within ``budget``, for the
    relation of its entries and the unit that it protects, provided that each method satisfies the loss that it
    states.  *Source*: claims ``one-unit``, ``fully-adaptive-sums``, ``fully-adaptive-zcdp``, ``union-of-filters``,
    ``single-spend``.
    Not defended: code in the same process, and an older file restored together with its witness, unless a noted head
    is passed to ``open``.

    Examples
    --------
    >>> from dpcausal import PureDP
    >>> ledger = Ledger.in_memory(PureDP(1))
    >>> allotment = ledger.charge(PureDP(0.25), task="example")
    >>> ledger.remaining.epsilon, ledger.verify().ok
    (0.75, True)
    """

    confined = "a ledger does not leave its process: pass its path and open it there"

    __slots__ = ("__weakref__", "_closed", "_store")

    def __init__(self, store: LedgerStore) -> None:
        if not isinstance(store, LedgerStore):
            raise ParameterError("a ledger comes from Ledger.create, open, in_memory or without_privacy")
        self._store, self._closed = store, False

    @classmethod
    @with_signature_errors
    def create(
        cls, path: str | os.PathLike[str], *, budget: Loss, person: str | None = None, unit: str | None = None,
        ids: str = "private", protect: str = "everyone", accept_large_epsilon: bool = False,
        witness: str | os.PathLike[str] | None = None,
    ) -> Ledger:  # fmt: skip
        """Make a new ledger where none is yet: a file, its owner's alone, on a local disk, or rows of a database.

        Parameters
        ----------
        path : path or text
            Of the file; or ``postgresql://host/database?ledger=name``, which needs the extra ``postgres``.
        budget : Loss
            The most that all spends together may cost one unit; ε above 20 needs ``accept_large_epsilon=True``.
        person, ids : str, optional
            It protects persons, all rows of one value of this column of tables, as ``Table`` takes both words.
        unit : str, optional
            It protects units, the whole series of one value of this column of panels.
        protect : {"everyone", "test", "training"}
            Without either it protects rows: all, or those of one half, as ``direction`` takes the word.
        witness : path of a folder, optional
            Where it is noted how far the ledger went; by default ``DPCAUSAL_WITNESS``, or the user's state directory.

        Raises
        ------
        LedgerDamagedError
            A witness saw another ledger of this path that had spent, and it is gone.
        """
        protects = PrivacyUnit.of(person, unit, ids, protect)
        first = first_line(check_budget(budget, accept_large_epsilon), protects)
        place = place_of(path)
        return cls(store_at(place).create(place, first, folder_of(witness)))

    @classmethod
    @with_signature_errors
    def open(
        cls, path: str | os.PathLike[str], expected_head: str | None = None, *, read_only: bool = False,
        witness: str | os.PathLike[str] | None = None,
    ) -> Ledger:  # fmt: skip
        """Open a ledger file under any of its names: check it from its first line and redo its sums.

        A file that is altered, foreign, of another version, or less than its witness saw (cut short, restored from a
        copy, lost) is a LedgerDamagedError, any other fault a LedgerError.  ``witness`` as for ``create``.
        ``expected_head`` is one that was noted earlier, as results print it: a ledger without it was rolled back or is
        another.  With ``read_only`` nothing can be spent and nothing is written; the file need not be writable.
        """
        if expected_head is not None and not re.fullmatch("[0-9a-f]{64}", str(expected_head)):
            text = "expected_head must be all 64 hexadecimal digits that 'dpcausal ledger show' prints"
            raise ParameterError(text, argument="expected_head", rule="fingerprint")
        place = place_of(path)
        refuse_lost(path, witness)
        return cls(store_at(place)(place, expected_head, read_only=read_only, witnesses=folder_of(witness)))

    @classmethod
    @with_signature_errors
    def open_or_create(cls, path: str | os.PathLike[str], *, budget: Loss, **declared: Any) -> Ledger:
        """Open the ledger file of this budget and unit, or make it as ``create``; one of others is a LedgerError."""
        try:
            return cls.create(path, budget=budget, **declared)
        except LedgerError:
            if not ledger_exists(path):
                raise
        ledger = cls.open(path, witness=declared.get("witness"))
        if ledger.budget != budget:
            raise LedgerError(f"ledger {ledger.path}: its budget is {ledger.budget}, not {budget}")
        protects = PrivacyUnit.of(**{name: value for name, value in declared.items() if name in DECLARE_UNIT})
        if ledger.protects != protects:
            raise LedgerError(f"ledger {ledger.path}: it protects {ledger.protects} for good, not {protects}")
        return ledger

    @classmethod
    @with_signature_errors
    def in_memory(
        cls, budget: Loss, *, person: str | None = None, unit: str | None = None, ids: str = "private",
        protect: str = "everyone", accept_large_epsilon: bool = False,
    ) -> Ledger:  # fmt: skip
        """Make a ledger that lives in this process and ends with it; arguments as for ``create``."""
        protects = PrivacyUnit.of(person, unit, ids, protect)
        return cls(LedgerStore(BytesIO(first_line(check_budget(budget, accept_large_epsilon), protects))))

    @classmethod
    def without_privacy(cls) -> Ledger:
        """Make a ledger for exact answers, which protects nobody: it takes ``NoPrivacy()`` and nothing else."""
        return cls(LedgerStore(BytesIO(first_line(NoPrivacy(), PrivacyUnit()))))

    @property
    def budget(self) -> Loss:
        """The most that all spends may cost, as of the last time that the ledger was read."""
        return self._store.account_seen.budget

    @property
    def protects(self) -> PrivacyUnit:
        return self._store.account_seen.protects

    @property
    def durable(self) -> bool:
        return self._store.path is not None

    @property
    def private(self) -> bool:
        return not self.budget.exact

    @property
    def path(self) -> Path | str | None:
        return self._store.path

    @property
    def created(self) -> tuple[str, str]:
        """When it was made, to the minute of UTC, and the version of the library that made it."""
        return self._open().account().created

    @property
    def remaining(self) -> Remaining:
        """What is left of the budget, as of now."""
        account = self._open().account()
        return remaining(account.budget, account.totals)

    @property
    def parts(self) -> dict[str, Loss]:
        """The part of each analyst, empty where the budget is not divided among analysts."""
        return dict(self._open().account().parts)

    @property
    def analysts(self) -> dict[str, Remaining]:
        """What is left of each analyst's part."""
        account = self._open().account()
        return {name: remaining(part, account.part_totals.get(name, Totals())) for name, part in account.parts.items()}

    @property
    def renewals(self) -> list[tuple[str, str, Loss]]:
        """When the budget was raised, why, and to what."""
        return self._open().account().renewals

    @property
    def head(self) -> str:
        """The hash of the whole ledger up to now, 64 hexadecimal digits."""
        return self._open().account().head

    def entries(self) -> list[Entry]:
        """Return all spends, the oldest first."""
        spends, entries = Spends(), list[Entry]()
        self._open().read_anew(Account(), spends)
        for record, totals in spends:
            del record["nonce"]
            members = record | {name: json_text(record[name]) for name in ("detail", "once")}
            entries.append(Entry(**members, cost=written_cost(record["loss"], record["zcdp"]), totals=totals))
        return entries

    def verify(self) -> Verification:
        """Check the chain, each cost, the sums and the budget once more, from the first line to the last."""
        account, problems = Account(), list[str]()
        try:
            self._open().read_anew(account)
        except LedgerDamagedError as error:
            problems = [str(error)]
        witness = self._store.witness
        seen = None if witness is None else witness.seen()
        return Verification(
            not problems, account.totals.spends, account.head, tuple(problems), account.incomplete, account.lines,
            None if witness is None else witness.path, 0 if seen is None else seen.lines,
        )  # fmt: skip

    def charge(
        self,
        loss: Loss,
        *,
        task: str,
        unit: Unit = Unit.ROW,
        unit_column: str = "",
        relation: Relation = Relation.REPLACE_ONE,
        zcdp: ZCDP | None = None,
        detail: Detail = MappingProxyType({}),
        once: Mapping[str, Any] = MappingProxyType({}),
        unproven: bool = False,
        key: str = "",
        refresh: bool = False,
        before: Callable[[], None] | None = None,
    ) -> CallBudget:
        """Commit the whole cost of a call as spent, and return the allotment that its releases use up.

        Parameters
        ----------
        loss, task : Loss, str
            The most that the call costs, and what it pays for in 1 to 200 printable characters.
        unit, unit_column, relation : Unit, str, Relation
            Whose record is protected, the column that names persons or units, against which change.  All entries share
            the relation; the unit must be the one that the ledger protects.
        zcdp : ZCDP, optional
            A zCDP guarantee that the same releases also have, beside a PureDP or ApproxDP loss.
        detail, once : mapping
            Public arguments, for the record; and public declarations that hold for the whole ledger: a later spend
            that changes one, or of a mapping one key, is refused.
        unproven : bool
            The call has no valid proof: refused by a ledger file.
        key, refresh : str, bool
            The key of exactly this question, for ``cached``: spent for once, unless ``refresh``.
        before : callable, optional
            Called once everything was checked and before anything is written: what must not fail after the spend.

        Raises
        ------
        BudgetExceededError, LedgerError
            The budget does not admit it; it contradicts an earlier spend, or cannot be written.  Nothing was granted.
        """
        store = self._open()
        check_kind(loss, self.budget)
        members = event_fields(loss, zcdp, task, unit, unit_column, relation)
        analyst = analyst_here(divided=bool(store.account_seen.parts))
        detail = {ANALYST_KEY: analyst, **detail} if analyst else detail
        detail = {**detail, QUESTION_KEY: key} if key else detail
        members |= {"detail": plain(detail, "detail", LONGEST_DETAIL), "once": plain(once, "once", LONGEST_ONCE)}
        caveats = caveats_of(self.private, self.durable, unproven)
        record = members | {"caveats": "; ".join(caveats)}
        with logged(record, str(self.path or "in memory")) as log:
            if before is not None:
                store.append("spend", record, once_only=not refresh, trial=True)
                before()
            account = store.append("spend", record, once_only=not refresh)
            log(account)
        number, at = account.totals.spends, account.stamps[-1]
        return CallBudget(loss, zcdp, number, account.head, unit, relation, at, caveats, self.durable)

    @with_signature_errors
    def renew(self, more: Loss, *, reason: str, accept_large_epsilon: bool = False) -> None:
        """Raise the budget by an amount of its kind: a decision of the data holder, never because of a result.

        The whole, ``budget``, is what all spends of the ledger's life may cost.  *Source*: claim ``renewal``.
        """
        if type(more) is not type(self.budget) or self.budget.exact:
            raise LossError("a budget is raised by an amount of its own kind", argument="more", rule="type", value=more)
        if not isinstance(reason, str) or not 1 <= len(reason) <= 500 or not reason.isprintable():
            raise ParameterError("reason must be 1 to 500 printable characters", argument="reason", rule="text")
        budget: Any = self._open().account().budget
        budget = check_budget(budget + more, accept_large_epsilon)
        self._store.append("renewal", {"budget": loss_text(budget), "reason": reason})

    @with_signature_errors
    def divide(self, parts: Mapping[str, Any]) -> None:
        """Give each analyst a part of the budget, as an ε, or a ρ: nobody else can spend, and nobody beyond a part.

        A later division may lower parts and add names; it may raise a part only after a renewal.  An analyst is who
        ``DPCAUSAL_ANALYST`` names, or the user of the system: this shares a budget out, and stops no forger.
        """
        if self.budget.exact:
            raise LedgerError("a ledger without privacy has no budget to divide")
        budget: Any = self._open().account().budget
        whole = budget.exact_rho if isinstance(budget, ZCDP) else budget.exact_epsilon
        losses = {name: one if isinstance(one, type(budget)) else budget.part(exact_amount(one, "a part") / whole)
                  for name, one in parts.items()}  # fmt: skip
        self._store.append("parts", {"parts": {str(name): loss_text(one) for name, one in losses.items()}})

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of all lines up to now to a new file."""
        write_new(Path(os.path.abspath(path)), self._open().content())

    def declare(self, once: Mapping[str, Any], *, unit: Unit, unit_column: str = "") -> None:
        """Write, once and free, what is public for the ledger's life; a LedgerError where it stands otherwise."""
        store, plainly = self._open(), plain(once, "once", LONGEST_ONCE)
        if store.account().undeclared(PrivacyUnit(unit, unit_column), plainly):
            store.append("declaration", {"unit": unit.value, "column": unit_column, "once": plainly})

    @property
    def declared(self) -> dict[str, Any]:
        """What was declared public for the ledger's life, by name; of a mapping its parts by theirs."""
        return self._open().account().declared

    def store(self, number: int, answer: Mapping[str, Any]) -> None:
        """Write what was released under a spend beside it, once; a LedgerError where there is no such spend.

        It costs nothing, and whoever reads the ledger reads it: keep released answers only.  One of any length is kept.
        """
        if type(number) is not int:
            raise ParameterError("number must be that of a spend")
        self._open().append("answer", {"number": number, "answer": plain(answer, "answer")})

    def answer(self, number: int) -> dict[str, Any] | None:
        """Return the answer that was kept beside the spend of that number, ``None`` if there is none."""
        text = self._open().account().answers.get(number)
        return None if text is None else dict(json.loads(text))

    def cached(self, key: str) -> tuple[int, dict[str, Any]] | None:
        """Return the newest answer to exactly this question with the number of its spend, ``None`` if nobody asked it.

        A LedgerError where it was spent for, and no answer was kept: the run was ended in between, or goes on.
        """
        account = self._open().account()
        answered = [number for number in account.spends_by_key.get(key, ()) if number in account.answers]
        if not answered:
            account.check_unspent(key)
            return None
        return answered[-1], dict(json.loads(account.answers[answered[-1]]))

    def close(self) -> None:
        """Take no more calls.  Optional."""
        self._closed = True

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> LedgerStore:
        if self._closed:
            raise LedgerError("this ledger was closed")
        return self._store

    def __repr__(self) -> str:
        name = f"'{Path(self.path).name}'" if self.path else "in memory"
        try:
            left = "closed" if self._closed else f"remaining: {self.remaining}"
        except LedgerError:
            left = "it cannot be read"
        return f"Ledger({name}, budget={self.budget!r}, {left})"
