"""What accuracy to expect: the same call on made-up rows of the declared columns, under simulated noise.

Public numbers alone: the schema, n, the question, the loss.  The rows are spread evenly between bounds and over levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpcausal.data.panel import Panel
from dpcausal.data.schema import Bounded, Schema
from dpcausal.data.table import Table
from dpcausal.errors import DpCausalError
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ApproxDP
from dpcausal.privacy.noise import generator_from_seed, simulated_noise
from dpcausal.study.tasks import ask
from dpcausal.synthetic_control.ask import plan_synthetic_control

if TYPE_CHECKING:
    from dpcausal.study.file import QuestionPart

TRIALS, LINK = 10, 0.1
MOST_ROWS = 200_000
"""More are not made up: the forecast is then that of so many, on the careful side."""


def stand_in(schema: Schema, n: int, ledger: Ledger, *, seed: int | None = None, link: Any = (), **words: Any) -> Table:
    """Return a table of made-up rows that is publicly the same; without a seed all rows are alike.

    One row in ten has in the later columns of ``link`` what it has in the first.
    """
    coins = None if seed is None else generator_from_seed(seed)
    place = {name: np.zeros(n) if coins is None else coins.random(n) for name in schema}
    for name in link[1:]:
        if coins is not None:
            place[name] = np.where(coins.random(n) < LINK, place[link[0]], place[name])
    frame: dict[str, Any] = {}
    for name, column in schema.items():
        if isinstance(column, Bounded):
            frame[name] = column.lower + place[name] * column.width
        else:
            frame[name] = np.array(column.values)[(place[name] * len(column.values)).astype(np.int64)]
    if words.get("person") is not None:
        frame[words["person"]] = np.arange(n)
    return Table(frame, schema, ledger, **words)


def forecast(question: QuestionPart, schema: Schema | None, n: int, subject: Table | Panel, **words: Any) -> str:
    """Return what accuracy to expect of an answer, in words; empty where that is not foreseen."""
    try:
        if isinstance(subject, Panel):
            if question.task != "synthetic_control" or question.method != "auto":
                return ""
            asked = {name: question.arguments.get(name) for name in ("target", "start")}
            return plan_synthetic_control(subject, loss=question.loss(), **asked).verdict
        if schema is None or question.task not in ("effect", "ci_test"):
            return ""
        made = min(n, MOST_ROWS)
        if question.task == "ci_test":
            return _found(question, schema, made, words)
        return _interval(question, schema, made, words)
    except DpCausalError:
        return ""


def _interval(question: QuestionPart, schema: Schema, n: int, words: dict[str, Any]) -> str:
    with simulated_noise(1):
        found = ask(question, stand_in(schema, n, _ledger(), seed=2, **words))
    if found.interval is None:
        return f"no interval on made-up rows: {found.interval_reason}"
    low, high = found.interval
    return f"interval of about ±{(high - low) / 2:.3g} on {n} made-up rows; noise alone ±{1.96 * found.noise_error:.3g}"


def _found(question: QuestionPart, schema: Schema, n: int, words: dict[str, Any]) -> str:
    """Return how often a link of correlation about .1 is found."""
    x, y = question.arguments["x"], question.arguments["y"]
    pair = [one if isinstance(one, str) else one[0] for one in (x, y)]
    hits = 0
    for trial in range(TRIALS):
        with simulated_noise(trial):
            made = stand_in(schema, n, _ledger(), seed=trial, link=pair, **words)
            hits += ask(question, made).decision == "dependent"
    return f"a link of correlation {LINK:g} is found in {hits} of {TRIALS} made-up tables"


def _ledger() -> Ledger:
    return Ledger.in_memory(ApproxDP(1_000_000, 0.5))
