"""Every task and method, by each kind of loss on two designs, answers with fixed coins what is on record, bit for bit.

``battery.json`` holds calls as a user writes them, with methods as objects so that another default changes none, and
what they released: its first values and a hash of all of them and of the noise that was drawn.  All is from the tree
before methods were objects (39b34ab), but what stands under ``changed`` with its reason.  A change that is meant:

    python -m tests.battery "why the answers that differ are right"
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32

from threadpoolctl import threadpool_limits

import dpcausal as dpc
from tests.battery import machine, words

RECORD = Path(__file__).with_name("battery.json")
RELEASED = {
    "cause", "margin", "scores", "penalty", "width", "statistic", "pvalue", "decision", "adjusted", "decisions", "from",
    "to", "directed", "reported", "counterfactual", "att", "interval", "donor_weight", "path_noise", "counts",
    "middles", "widths", "covariance", "values", "deviation",
}  # fmt: skip
REPEATED = {"settings", "guarantee", "graph", "knowledge", "constants"}


def told(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what was released, by name."""
    value = value.to_dict() if hasattr(value, "to_dict") else value
    for part in value if isinstance(value, (list, tuple)) else ():
        yield from told(part)
    for name in sorted(value.keys() - REPEATED) if isinstance(value, dict) else ():
        yield from [(name, value[name])] if name in RELEASED else told(value[name])


def answer(name: str, call: str, design: str, kind: str) -> str:
    """Return the first released values of a call and a hash of all, or the class of its refusal."""
    charge, seen = dpc.Ledger.charge, []
    noted = lambda *asked, **options: seen.append(charge(*asked, **options)) or seen[-1]  # noqa: E731
    with dpc.simulated_noise(crc32(f"{name}/{design}".encode())), mock.patch.object(dpc.Ledger, "charge", noted):
        try:
            released = [part for part in told(eval(call, words(design, kind, call))) if part[1] not in (None, "", [])]
        except dpc.errors.DpCausalError as refusal:
            return type(refusal).__name__
    events = [event for allotment in seen for event in allotment.events]
    drawn = Counter(f"{e.mechanism} of {e.sensitivity:.12g} at {e.scale:.12g}: {e.loss!r}" for e in events)
    whole = sorted(json.dumps(part) for part in [*released, *drawn.items()])
    first = json.dumps([value for _, value in released][:3])
    short = json.loads(first, parse_float=lambda digits: float(f"{round(float(digits), 9):.6g}"))
    return f"{json.dumps(short)[1:-1]:.40} #{hashlib.sha256(json.dumps(whole).encode()).hexdigest()[:12]}"


@threadpool_limits.wrap(limits=1, user_api="blas")
def differences(record: dict[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """Return name, design, losses, answer on record and today's, of those that differ."""
    end, found = "\n" if record["machine"] == machine() else " #", []
    for name, (call, designs) in record["calls"].items():
        for design, answers in designs.items():
            for kinds, was in answers.items():
                today = {answer(name, call, design, kind) for kind in kinds.split()}
                found += [(name, design, kinds, was, now) for now in today if was.split(end)[0] != now.split(end)[0]]
    return found


def test_answers_are_those_on_record() -> None:
    assert not ["  ".join(change) for change in differences(json.loads(RECORD.read_text(encoding="utf-8")))]
