"""An allotment: one call's share of the budget, already committed as spent, that its releases may use up."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpcausal.errors import FenceError, LedgerError, LossError, ParameterError, UnprovenError
from dpcausal.privacy.composition import Amount, cost_of
from dpcausal.privacy.loss import RHO_UNITS, ZCDP, ApproxDP, Loss, implies, largest_rho, loss_text
from dpcausal.privacy.noise import is_simulated
from dpcausal.privacy.sensitivity import Relation, Unit
from dpcausal.privacy.unpicklable import Uncopyable


@dataclass(frozen=True)
class Event:
    """One release: what it claims to cost, and how its noise was set; all public and fixed before the draw. ``label``
    is the query's public name, ``scale`` 0 for an exact answer; ``zcdp`` a guarantee that the same release also has and
    that is better than the ε²/2 of its ε."""

    mechanism: str
    label: str
    loss: Loss
    sensitivity: float
    norm: str
    scale: float
    proof: str
    zcdp: ZCDP | None = None

    def to_dict(self) -> dict[str, str | float | None]:
        zcdp = None if self.zcdp is None else repr(self.zcdp)
        return vars(self) | {"loss": repr(self.loss), "zcdp": zcdp}


WITHOUT_PRIVACY = "no privacy: exact answers"
SIMULATED = "no privacy: the noise is simulated and predictable"
UNPROVEN = "no privacy is claimed: the proof of the published variant fails"


_Account = tuple[Amount, Amount]
"""Caps, or sums, of one kind of cost, in units as ``Cost``: the amount (ε or ρ) and the δ beside it."""

_Caps = tuple[_Account | None, _Account | None]


@dataclass(frozen=True, eq=False)
class CallBudget(Uncopyable):
    """The budget of one call: the ledger has committed all of it before any data is read, and gives none back.

    Inside it every release is booked before its noise is drawn, in exact fractions.  The releases must satisfy
    each guarantee that the ledger was charged for:

    * a pure or (ε, δ) loss: the ε's and δ's sum to at most (ε, δ).  An (ε, δ) loss whose first release is in zCDP
      is booked in ρ instead, up to the largest ρ that implies (ε, δ);
    * a zCDP loss, or a ``zcdp`` given beside the loss: the ρ's sum to at most ρ, a pure ε counting ε²/2; the sums of
      ε are then booked as well, unless that ρ implies the loss.

    ``number`` and ``ledger_head`` are those of the ledger's entry; ``caveats`` say why it is not ``private``.
    """

    confined = "an allotment does not leave its process: it could be spent twice"

    loss: Loss
    zcdp: ZCDP | None
    number: int
    ledger_head: str
    unit: Unit
    relation: Relation
    at: str
    caveats: tuple[str, ...]
    durable: bool
    _events: list[Event] = field(default_factory=list, init=False)
    _sums: list[_Account] = field(default_factory=lambda: [(0, 0), (0, 0)], init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _pid: int = field(default_factory=os.getpid, init=False)

    @property
    def exact(self) -> bool:
        return self.loss.exact

    @property
    def private(self) -> bool:
        return not self.caveats

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    def spend(self, event: Event) -> None:
        """Book a release before its noise is drawn. A FenceError if it does not fit what is left, or may not use it
        here: in a forked process, where the same share could be spent twice, or with simulated noise under a private
        allotment."""
        if os.getpid() != self._pid:
            raise FenceError(f"'{event.label}': an allotment serves the process that it was granted to, not a fork")
        if self.private and is_simulated():
            raise FenceError(f"'{event.label}': noise is simulated here, and the allotment was granted as private")
        with self._lock:
            caps = _caps(self.loss, self.zcdp, (self._events or [event])[0])
            if caps is not None:
                self._sums[:] = self._booked(caps, event)
            elif not event.loss.exact:
                raise FenceError(f"'{event.label}': a ledger without privacy gives exact answers only")
            self._events.append(event)

    def _booked(self, caps: _Caps, event: Event) -> list[_Account]:
        cost, after = cost_of(event.loss, event.zcdp), list[_Account]()
        parts = (cost.epsilon, cost.delta), (cost.rho, cost.rho_delta)
        for cap, (total, total_delta), (amount, delta) in zip(caps, self._sums, parts, strict=True):
            after.append((total + (amount or 0), total_delta + delta))
            if cap is not None and (amount is None or after[-1][0] > cap[0] or after[-1][1] > cap[1]):
                raise FenceError(
                    f"'{event.label}' costs {event.loss}, more than is left of the {self.loss} allotted to this call"
                )
        return after

    def __repr__(self) -> str:
        return f"Allotment({self.loss}, entry {self.number}, {len(self._events)} released)"


def caveats_of(private: bool, durable: bool, unproven: bool) -> tuple[str, ...]:
    if is_simulated() and durable:
        raise LedgerError("simulated noise is not private: use Ledger.in_memory, a ledger file refuses it")
    if unproven and durable:
        raise UnprovenError("a ledger file takes proven calls only: use Ledger.in_memory")
    labels = [(not private, WITHOUT_PRIVACY), (is_simulated(), SIMULATED), (unproven, UNPROVEN)]
    return tuple(text for holds, text in labels if holds)


def event_fields(
    loss: Loss, zcdp: ZCDP | None, task: str, unit: Unit, unit_column: str, relation: Relation
) -> dict[str, Any]:
    if zcdp is not None and not isinstance(zcdp, ZCDP):
        raise LossError("zcdp must be a ZCDP amount")
    if zcdp is not None and (isinstance(loss, ZCDP) or loss.exact):
        raise LossError("zcdp is given beside a PureDP or ApproxDP loss only")
    if not isinstance(unit, Unit) or not isinstance(relation, Relation):
        raise ParameterError("unit must be a Unit and relation a Relation")
    if not isinstance(unit_column, str):
        raise ParameterError("unit_column must be the name of a column")
    if not isinstance(task, str) or not 1 <= len(task) <= 200 or not task.isprintable():
        raise ParameterError("task must be 1 to 200 printable characters")
    amounts = {"loss": loss_text(loss), "zcdp": None if zcdp is None else loss_text(zcdp)}
    return {"task": task, **amounts, "unit": unit.value, "column": unit_column, "relation": relation.value}


def json_text(value: object) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))


def plain(given: Mapping[str, Any], name: str, longest: int = sys.maxsize) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise ParameterError(f"{name} must be a mapping with text keys")
    try:
        text = json_text(dict(given))
    except (TypeError, ValueError, RecursionError):
        raise ParameterError(f"{name} must hold text, finite numbers, booleans, None and lists of them") from None
    if len(text) > longest:
        raise ParameterError(f"{name} must be at most {longest} characters as JSON")
    made: dict[str, Any] = json.loads(text)
    return made


def _caps(loss: Loss, zcdp: ZCDP | None, first: Event) -> _Caps | None:
    """Return the caps of the sums and of zCDP, ``None`` where an account need not be kept; ``None`` without privacy.
    The account of an (ε, δ) loss is chosen by the first release, before it is drawn: never by anything that was
    released inside.  Of a loss alone ε²/2-zCDP and its δ follow from the sums."""
    if loss.exact:
        return None
    if isinstance(loss, ApproxDP) and zcdp is None and isinstance(first.loss, ZCDP):
        return None, (largest_rho(loss.exact_epsilon, loss.exact_delta) * RHO_UNITS, 0)
    cost = cost_of(loss, zcdp)
    sums = None if cost.epsilon is None or (zcdp and implies(zcdp, loss)) else (cost.epsilon, cost.delta)
    return sums, (cost.rho, 0) if cost.rho is not None and (zcdp or isinstance(loss, ZCDP)) else None
