"""Mechanisms broken on purpose, each with the audit that must kill it, and right ones that no audit may flag.

Four kinds of audit: the **falsifier** on a statistic with its claimed sensitivity; the **grey box** on a call and two
neighbours; the **black box** on seeded outputs of the mechanism; the **ledger** check on the order of spend and draw.

False alarm.  The falsifier, the grey box and the ledger check compare exact numbers: what they flag is wrong.  Each
black-box audit runs at EACH = 1e-6/64 and there are at most 64 of them (a test counts), so the probability that any
right mechanism is flagged is at most 1e-6 by the union bound.

Power.  A black-box audit counts 60,000 outputs a side.  By the normal approximation its bound on log(p/q) falls short
by at most z(√((1 − p)/p) + √((1 − q)/q))/√60,000, z = 6.6 for EACH over 8 events in two directions.  The weakest
mutant has 0.8 of the noise of a claim of 1: true loss 1.25, p = ½, q = ½e^{−1.25} = .143, shortfall .093 of the .25
there is, and the rest is more than 10 of the standard deviations √(1 + 2.45²)/√60,000 = .011.
Seeds are fixed, so a kill is the same at each run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from dpcausal.audit import audit_samples, falsify

ALARM = 1e-6
MOST_BLACK_BOXES = 64
EACH = ALARM / MOST_BLACK_BOXES
DRAWS = 66_000
"""Outputs a side, the first eleventh of which choose the events."""

Kind = Literal["falsifier", "grey box", "black box", "ledger"]


@dataclass(frozen=True)
class Case:
    """A mutant or a control: its name, the kind of its audit, and the audit itself, true if it flags."""

    name: str
    kind: Kind
    flagged: Callable[[], bool]


def by_falsifier(name: str, statistic: Callable[[Any], Any], bound: Any, **domain: Any) -> Case:
    """Return a case for a statistic whose claimed sensitivity is ``bound``, a number or a function of m."""
    domain = {"sizes": (6, 11), "evaluations": 3_000, **domain}
    # Most mutants fall to a tenth of the search; what it does not see is searched for whole.
    tenth = domain | {"evaluations": domain["evaluations"] // 10}

    def flagged() -> bool:
        return any(falsify(statistic, bound, **asked).violated for asked in (tenth, domain))

    return Case(name, "falsifier", flagged)


def by_black_box(name: str, outputs: Callable[[int], tuple[Any, Any]], *, delta: float = 0.0) -> Case:
    """Return a case, at a claim of (1, δ), for a function of the number of outputs that returns them on D and D′."""

    def flagged() -> bool:
        first, second = outputs(DRAWS)
        return audit_samples(first, second, claimed=1.0, delta=delta, false_alarm=EACH).violated

    return Case(name, "black box", flagged)


def cases() -> tuple[dict[str, Case], dict[str, Case]]:
    """Return all mutants and all controls by name."""
    # Imported here: the pages below make their cases with the functions above.
    from tests import (
        mutants_calls,
        mutants_discovery,
        mutants_effects,
        mutants_independence,
        mutants_iqr,
        mutants_many,
        mutants_noise,
        mutants_panels,
        mutants_statistics,
        mutants_training,
    )

    pages = (
        mutants_noise,
        mutants_statistics,
        mutants_calls,
        mutants_iqr,
        mutants_many,
        mutants_discovery,
        mutants_effects,
        mutants_training,
        mutants_panels,
        mutants_independence,
    )
    mutants = [case for page in pages for case in page.MUTANTS]
    controls = [case for page in pages for case in page.CONTROLS]
    for group in (mutants, controls):
        assert len({case.name for case in group}) == len(group), "two cases of one name"
    return {case.name: case for case in mutants}, {case.name: case for case in controls}
