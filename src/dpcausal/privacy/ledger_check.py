"""The check of a whole ledger: the chain, the costs, the sums and the budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from dpcausal.errors import LedgerDamagedError
from dpcausal.privacy.composition import SATURATED, Cost, Totals, admit, cost_of
from dpcausal.privacy.ledger_entry import COST, TOTALS, Header, Row, cells, hash_of_row, parse_loss, totals_of
from dpcausal.privacy.loss import ZCDP, NoPrivacy
from dpcausal.privacy.neighbours import Relation, Unit


@dataclass(frozen=True)
class Verification:
    """The outcome of checking a ledger from its header to its last row.

    Attributes
    ----------
    ok : bool
        Nothing was found.
    entries : int
        Rows that were found in order.
    head : str
        The hash of the last of these, or of the header.
    problems : tuple of str
        The first rule that is broken, with its row; empty if ``ok``.
    """

    ok: bool
    entries: int
    head: str
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.ok


def examine(header: Header, rows: Iterable[Row], *, recount: bool, expected_head: str | None = None) -> Verification:
    """Check every row: its number and the chain; with ``recount`` also its cost, the totals and the budget.

    Parameters
    ----------
    header : Header
        The ledger's header, its own hash already compared.
    rows : iterable of Row
        All rows in order.
    recount : bool
        Whether to redo the sums too.
    expected_head : str, optional
        A head noted earlier: it must be in the chain.
    """
    count, head = 0, header.hash
    found = expected_head in (None, head)
    checked = _chained(head, rows)
    try:
        for row in _recounted(header.budget, checked) if recount else checked:
            count, head = count + 1, str(row[-1])
            found = found or head == expected_head
    except LedgerDamagedError as error:
        return Verification(False, count, head, (str(error),))
    except (ValueError, TypeError, ArithmeticError):
        return Verification(False, count, head, (f"entry {count + 1} is malformed",))
    if not found:
        return Verification(False, count, head, ("the noted head is not in the chain: rolled back, or another ledger",))
    return Verification(True, count, head)


def _chained(head: str, rows: Iterable[Row]) -> Iterator[Row]:
    for number, row in enumerate(rows, start=1):
        if row[0] != number:
            raise LedgerDamagedError(f"entry {number} is missing")
        if row[-2] != head:
            raise LedgerDamagedError(f"entry {number} does not follow the entry before it")
        head = hash_of_row(row[:-1])
        if row[-1] != head:
            raise LedgerDamagedError(f"entry {number} was altered: its hash does not match")
        yield row


def _recounted(budget_text: str, rows: Iterable[Row]) -> Iterator[Row]:
    """Redo the sums on plain integers, not by the filter that admitted them: a second opinion, and a fast one.

    The filter is asked once, about the last row: sums only grow and each of its conditions stays broken once it is
    broken (claim ``union-of-filters``), so a last spend that it admits shows that it admitted all before.
    """
    budget = parse_loss(budget_text)
    free = isinstance(budget, NoPrivacy)
    epsilon = delta = rho = rho_delta = 0
    sums_open = zcdp_open = True
    row: Row | None = None
    before: Row | None = None
    for following in rows:
        before, row = row, following
        # Local names for the cells: this loop is run for each of 100,000 rows.
        cost = cost_epsilon, cost_delta, cost_rho, cost_rho_delta = row[COST]
        if cost != _cost_cells(row[5], row[6]):
            raise LedgerDamagedError(f"entry {row[0]} does not cost what its loss says")
        if row[7] not in _UNITS or row[8] not in _RELATIONS:
            raise LedgerDamagedError(f"entry {row[0]} names an unknown unit or relation")
        if not free:
            sums_open = sums_open and cost_epsilon is not None
            zcdp_open = zcdp_open and cost_rho is not None
            epsilon += cost_epsilon or 0
            delta += cost_delta
            rho += cost_rho or 0
            rho_delta += cost_rho_delta
            if epsilon > SATURATED or delta > SATURATED or rho > SATURATED or rho_delta > SATURATED:
                epsilon, delta = min(SATURATED, epsilon), min(SATURATED, delta)
                rho, rho_delta = min(SATURATED, rho), min(SATURATED, rho_delta)
        if row[_SUMS] != (row[0], epsilon, delta, rho, rho_delta, sums_open, zcdp_open):
            raise LedgerDamagedError(f"entry {row[0]} has totals that are not the sums")
        if before is not None and before[_CLOSED]:
            raise LedgerDamagedError(f"entry {row[0]} was spent after the ledger had closed")
        yield row
    if row is not None and admit(budget, totals_of(before), Cost(*row[COST])) != totals_of(row):
        raise LedgerDamagedError("the entries are above the budget")


@lru_cache(maxsize=1024)
def _cost_cells(loss: str, zcdp: str | None) -> Row:
    beside = None if zcdp is None else parse_loss(zcdp)
    if beside is not None and not isinstance(beside, ZCDP):
        raise ValueError("not a zCDP amount")
    return cells(cost_of(parse_loss(loss), beside), Totals())[: COST.stop - COST.start]


_CLOSED = TOTALS.stop - 1
_SUMS = slice(TOTALS.start, _CLOSED)
"""Where a row says that the ledger closed with it, and the totals before that."""

_UNITS = frozenset(unit.value for unit in Unit)
_RELATIONS = frozenset(relation.value for relation in Relation)
