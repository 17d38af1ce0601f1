"""The ledger: a budget, and every spend from it, kept so that it cannot be cheated.

A spend is committed before the first noise is drawn and is never refunded.  The rows are chained by hashes; the
last hash, the head, is printed in every result: whoever notes it can tell a ledger that was rolled back.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, NoReturn

from dpcausal.errors import (
    BudgetExceededError,
    HiddenAnswerError,
    LedgerError,
    LossError,
    ParameterError,
    UnprovenError,
)
from dpcausal.privacy.allotment import Allotment, check_pair
from dpcausal.privacy.call import unfit
from dpcausal.privacy.composition import Remaining, admit, cost_of, remaining, spent_text
from dpcausal.privacy.ledger_check import Verification
from dpcausal.privacy.ledger_entry import FORMAT, Entry, Header, Row, cells, loss_text, parse_loss, sealed, totals_of
from dpcausal.privacy.ledger_snapshot import SnapshotStore
from dpcausal.privacy.ledger_store import MemoryStore, SqliteStore, Store
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.noise import simulated

__all__ = ["Allotment", "Detail", "Entry", "Ledger", "Verification"]

Detail = Mapping[str, str | int | float | bool | list[Any] | None]
"""Public arguments of a call, as they go into its entry."""

LARGEST_BUDGET = 10**6
"""No larger ε or ρ is taken as a budget: integer totals would come near their end."""

LONGEST_DETAIL = 65536
_HEAD = re.compile("[0-9a-f]{64}")

WITHOUT_PRIVACY = "no privacy: exact answers"
SIMULATED = "no privacy: the noise is simulated and predictable"
UNPROVEN = "no privacy is claimed: the proof of the published variant fails"


class Ledger:
    """A privacy budget and the record of all that was spent from it.

    Made by ``create``, ``open``, ``in_memory`` or ``without_privacy``.

    Attributes
    ----------
    budget : Loss
        The most that all spends together may cost one unit.
    durable : bool
        Whether it is a file, which threads, processes and later runs share.
    private : bool
        False only without privacy.
    path : Path or None
        The file.

    Notes
    -----
    *Guarantee*: all that was released under allotments of one ledger, chosen adaptively, is within ``budget``, for
    the relation of its entries and the units they name, provided that each method bears out the loss that it
    asked for.  *Source*: claims ``fully-adaptive-sums``, ``fully-adaptive-zcdp``, ``union-of-filters``,
    ``single-spend``.

    Not defended: code in the same process, a clock, and a restored older file unless a noted head is passed to
    ``open``.

    Examples
    --------
    >>> ledger = Ledger.in_memory(PureDP(1))
    >>> allotment = ledger.allot(PureDP(0.25), task="example")
    >>> ledger.remaining.epsilon
    0.75
    >>> ledger.verify().ok
    True
    """

    __slots__ = ("__weakref__", "_budget", "_closed", "_library", "_store")

    def __init__(self, store: Store) -> None:
        if not isinstance(store, Store):
            raise ParameterError("a ledger comes from Ledger.create, open, in_memory or without_privacy")
        self._store = store
        self._budget = parse_loss(store.header.budget)
        self._closed = False
        self._library = _library()

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, budget: Loss) -> Ledger:
        """Make a new ledger file.

        Parameters
        ----------
        path : path
            Where no file is yet, in a directory that exists, on a local disk.  Readable and writable by its owner.
        budget : PureDP, ApproxDP or ZCDP
            What all spends together may cost.

        Raises
        ------
        LedgerError
            A file is there already, or none can be made.
        """
        header = _header(_checked_budget(budget))
        return cls(SqliteStore.create(_checked_path(path), header))

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], expected_head: str | None = None, *, read_only: bool = False
    ) -> Ledger:
        """Open a ledger file and check it.

        Parameters
        ----------
        path : path
            A ledger that ``create`` made.
        expected_head : str, optional
            A head that was noted earlier, as results print it: a ledger that does not hold it was rolled back or is
            another one, and is refused.
        read_only : bool
            For a check: the ledger as it is now, from a file and a directory that need not be writable and stay as
            they are.  Nothing can be spent.  Refused while a log lies beside the file.

        Raises
        ------
        LedgerDamagedError
            The file is truncated, altered, foreign, newer or rolled back.
        LedgerError
            It is missing, not writable, in use (``read_only``), or cannot be used for another reason.
        """
        if expected_head is not None and not (isinstance(expected_head, str) and _HEAD.fullmatch(expected_head)):
            raise ParameterError("expected_head must be 64 hexadecimal digits, as results print it")
        checked = _checked_path(path)
        return cls(SnapshotStore(checked, expected_head) if read_only else SqliteStore.open(checked, expected_head))

    @classmethod
    def in_memory(cls, budget: Loss) -> Ledger:
        """Make a ledger that lives in this process and ends with it."""
        return cls(MemoryStore(_header(_checked_budget(budget))))

    @classmethod
    def without_privacy(cls) -> Ledger:
        """Make a ledger for exact answers: it takes ``NoPrivacy()`` and nothing else."""
        return cls(MemoryStore(_header(NoPrivacy())))

    @property
    def budget(self) -> Loss:
        return self._budget

    @property
    def durable(self) -> bool:
        return self._store.path is not None

    @property
    def private(self) -> bool:
        return not isinstance(self._budget, NoPrivacy)

    @property
    def path(self) -> Path | None:
        return self._store.path

    @property
    def remaining(self) -> Remaining:
        """What is left of the budget, as of now."""
        return remaining(self._budget, totals_of(self._open_store().last()))

    @property
    def head(self) -> str:
        """The hash that stands for the whole ledger up to now, 64 hexadecimal digits."""
        row = self._open_store().last()
        return self._store.header.hash if row is None else str(row[-1])

    def entries(self) -> list[Entry]:
        """Return all spends, the oldest first."""
        return [Entry.from_row(row) for row in self._open_store().rows()]

    def verify(self) -> Verification:
        """Check the pages, the chain, each cost, the sums and the budget, from the first row to the last."""
        return self._open_store().verify()

    def allot(
        self,
        loss: Loss,
        *,
        task: str,
        unit: Unit = Unit.ROW,
        relation: Relation = Relation.REPLACE_ONE,
        zcdp: ZCDP | None = None,
        detail: Detail = MappingProxyType({}),
        once: Detail = MappingProxyType({}),
        unproven: bool = False,
    ) -> Allotment:
        """Commit the whole cost of a call as spent, and return the allotment that its releases use up.

        Parameters
        ----------
        loss : Loss
            The most that the call costs, of a kind that the budget is counted in.
        task : str
            What it pays for: 1 to 200 printable characters.
        unit, relation : Unit, Relation
            Whose record is protected, against which change.  All entries of one ledger share the relation.
        zcdp : ZCDP, optional
            A zCDP guarantee that the same releases also have, beside a PureDP or ApproxDP loss.
        detail : mapping
            Public arguments, for the record.
        once : mapping
            Public declarations that hold for the whole ledger: an entry with another value of the same name refuses it.
        unproven : bool
            The call has no valid proof: refused by a ledger file.

        Raises
        ------
        LedgerError
            An earlier entry declared something else; nothing was spent.
        BudgetExceededError
            The budget does not admit it; nothing was spent.
        """
        store = self._open_store()
        self._check_loss(loss)
        check_pair(loss, zcdp)
        if not isinstance(unit, Unit) or not isinstance(relation, Relation):
            raise ParameterError("unit must be a Unit and relation a Relation")
        if not isinstance(task, str) or not 1 <= len(task) <= 200 or not task.isprintable():
            raise ParameterError("task must be 1 to 200 printable characters")
        caveats = self._caveats(unproven)
        words = (loss_text(loss), None if zcdp is None else loss_text(zcdp), unit.value, relation.value)
        if once:
            self._check_once(once)
            detail = {**detail, "once": dict(once)}  # type: ignore[dict-item]
        told = (self._library, task, *words, _detail_text(detail), "; ".join(caveats))
        cost = cost_of(loss, zcdp)

        def following(last: Row | None) -> Row:
            if last is not None and last[8] != relation.value and self.private:
                raise LedgerError(f"this ledger counts {last[8]}: a spend under {relation.value} would not add up")
            before = totals_of(last)
            after = admit(self._budget, before, cost)
            if after is None:
                left = str(remaining(self._budget, before))
                raise BudgetExceededError(str(loss), spent_text(self._budget, before), left, self._mismatch(loss))
            number, previous = (1, store.header.hash) if last is None else (last[0] + 1, last[-1])
            return sealed((number, _now(), os.getpid(), *told, *cells(cost, after), previous))

        row = store.append(following)
        return Allotment(loss, zcdp, (row[0], row[-1], unit, relation), caveats, self.durable)

    def close(self) -> None:
        """Close the file; the ledger takes no more calls.  Optional."""
        self._closed = True
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_store(self) -> Store:
        if self._closed:
            raise LedgerError("this ledger was closed")
        return self._store

    def _check_loss(self, loss: Loss) -> None:
        if type(loss) not in (PureDP, ApproxDP, ZCDP, NoPrivacy):
            raise unfit(loss)
        if isinstance(loss, NoPrivacy) and self.private:
            raise LossError("NoPrivacy() is taken by Ledger.without_privacy() only")
        if not isinstance(loss, NoPrivacy) and not self.private:
            raise LossError("a ledger without privacy takes NoPrivacy() only")

    def _check_once(self, once: Detail) -> None:
        for entry in self.entries():
            known = json.loads(entry.detail).get("once", {})
            for name in once:
                if name in known and known[name] != once[name]:
                    raise LedgerError(f"entry {entry.number} of this ledger declared its {name}, once for all of it")

    def _caveats(self, unproven: bool) -> tuple[str, ...]:
        if simulated() and self.durable:
            raise LedgerError("simulated noise is not private: use Ledger.in_memory, a ledger file refuses it")
        if unproven and self.durable:
            raise UnprovenError("a ledger file takes proven calls only: use Ledger.in_memory")
        found = [(not self.private, WITHOUT_PRIVACY), (simulated(), SIMULATED), (unproven, UNPROVEN)]
        return tuple(text for holds, text in found if holds)

    def _mismatch(self, loss: Loss) -> str:
        if isinstance(self._budget, PureDP) and not isinstance(loss, PureDP):
            return "a PureDP budget pays for pure losses only"
        if isinstance(self._budget, ZCDP) and isinstance(loss, ApproxDP):
            return "a ZCDP budget pays for pure and zCDP losses only"
        return ""

    def __repr__(self) -> str:
        name = f"'{self.path.name}'" if self.path else "in memory"
        try:
            left = "closed" if self._closed else f"remaining: {self.remaining}"
        except LedgerError:
            left = "it cannot be read"
        return f"Ledger({name}, budget={self._budget}, {left})"

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, _memo: object) -> Ledger:
        return self

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        raise HiddenAnswerError("a ledger does not leave its process: pass its path and open it there")


def _checked_budget(budget: Loss) -> Loss:
    if type(budget) not in (PureDP, ApproxDP, ZCDP):
        raise LossError("budget must be PureDP, ApproxDP or ZCDP")
    amount = budget.exact_rho if isinstance(budget, ZCDP) else budget.exact_epsilon  # type: ignore[union-attr]
    if amount > LARGEST_BUDGET:
        raise LossError("a budget's epsilon or rho must be at most one million")
    return budget


def _checked_path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str) or "\0" in os.fspath(path):
        raise ParameterError("the path of a ledger must be text or a path")
    return Path(os.path.abspath(path))


def _header(budget: Loss) -> Header:
    return Header(FORMAT, _now(), os.getpid(), _library(), loss_text(budget))


def _detail_text(detail: Detail) -> str:
    if not isinstance(detail, Mapping) or not all(isinstance(key, str) for key in detail):
        raise ParameterError("detail must be a mapping with text keys")
    try:
        text = json.dumps(dict(detail), sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        raise ParameterError("detail must hold text, finite numbers, booleans, None and lists of them") from None
    if len(text) > LONGEST_DETAIL:
        raise ParameterError(f"detail must be at most {LONGEST_DETAIL} characters as JSON")
    return text


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


@lru_cache(maxsize=1)
def _library() -> str:
    from importlib.metadata import version

    return version("dpcausal")
