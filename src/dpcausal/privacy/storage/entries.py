"""What a ledger says of its spends, and of itself when it is verified."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpcausal.privacy.composition import Cost, Totals, spent_text
from dpcausal.privacy.loss import Loss, exact_text, parse_loss


@dataclass(frozen=True)
class Entry:
    """One spend, as the ledger keeps it: amounts exact, times UTC to the minute (nothing depends on the clock).
    ``unit`` and ``column``: who is protected, as for the whole ledger.  ``detail`` and ``once`` are JSON with sorted
    keys: public arguments of the call, and what it declared for the whole ledger.  ``cost`` and ``totals``, in units,
    of this spend and of all up to it, are worked out at each reading."""

    number: int
    at: str
    pid: int
    library: str
    task: str
    loss: str
    zcdp: str | None
    unit: str
    column: str
    relation: str
    detail: str
    once: str
    caveats: str
    cost: Cost
    totals: Totals
    previous: str
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values for JSON: units of 1e-9 for ε, 1e-18 for δ, 5e-19 for ρ; ``event`` has
        exact amounts. A number of units is whole, or a text as ``"1000000000/3"``."""
        loss = parse_loss(self.loss)
        amounts = loss.amounts | ({} if self.zcdp is None else parse_loss(self.zcdp).amounts)
        event = {name: exact_text(amount) for name, amount in amounts.items()}
        sums = {name: {key: str(value) if isinstance(value, Fraction) else value for key, value in part.items()}
                for name, part in (("cost", vars(self.cost)), ("totals", self.totals._asdict()))}  # fmt: skip
        public = {"detail": json.loads(self.detail), "once": json.loads(self.once)}
        return vars(self) | sums | public | {"event": {"kind": type(loss).__name__} | event}


def total_text(budget: Loss, entries: Sequence[Entry]) -> str:
    """Return the sum of all spends, with its δ: of ε while every spend has one, else of ρ."""
    if len(entries) == 1:
        return str(parse_loss(entries[0].loss))
    return spent_text(budget, entries[-1].totals if entries else Totals()).partition(" or ")[0]


@dataclass(frozen=True)
class Verification:
    """The outcome of checking a ledger from its first line to its last: the first rule that is broken, with its line.
    ``entries`` and ``head``: spends found in order, and the hash of the last of their lines.  ``incomplete``: bytes of
    a write that failed, after which nothing was released.  ``lines``, ``witness`` and ``witnessed``: how many lines
    there are, the file of the witness, if there is a place for one, and how many it saw, 0 where there is none."""

    ok: bool
    entries: int
    head: str
    problems: tuple[str, ...] = ()
    incomplete: int = 0
    lines: int = 0
    witness: Path | None = None
    witnessed: int = 0

    def __bool__(self) -> bool:
        return self.ok
