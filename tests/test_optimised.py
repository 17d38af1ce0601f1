"""``python -O`` drops assert statements; no check of privacy may go with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = '''
import pickle, sys
from pathlib import Path
import numpy as np
import dpcausal as dpc
from dpcausal import errors
from dpcausal.mechanisms.additive import geometric, laplace
from dpcausal.privacy.budget import Event
from dpcausal.privacy.sensitivity import Relation
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity

if not sys.flags.optimize:
    raise SystemExit("asserts are on: this run shows nothing")
assert False, "never reached under -O"

path = sys.argv[1]
schema = dpc.Schema({"x": dpc.Bounded(-1, 1), "y": dpc.Bounded(-1, 1)})
x = np.linspace(-1, 1, 24)
ledger = dpc.Ledger.create(path, budget=dpc.PureDP(2), protect="test")
table = dpc.Table({"x": x, "y": x**3}, schema, ledger, missing="impute")
usual = {"score": "spearman", "loss": dpc.PureDP(1), "method": dpc.papers.Holdout()}
ask = lambda **arguments: dpc.direction(table, "x", "y", **(usual | arguments))
claim = Sensitivity(1, Norm.L1, Relation.REPLACE_ONE, "example")
other = Sensitivity(1, Norm.L1, Relation.ADD_OR_REMOVE_ONE, "example")
memory = dpc.Ledger.in_memory(dpc.PureDP(100), accept_large_epsilon=True)
allotment = memory.charge(dpc.PureDP(1), task="example")

def twice():
    share = memory.charge(dpc.PureDP(1), task="example")
    for _ in range(2):
        share.spend(Event("laplace", "step", dpc.PureDP(1), 1.0, "l1", 1.0, "example"))

def simulated_on_file():
    with dpc.simulated_noise(1):
        ask()

def simulated_on_real_allotment():
    with dpc.simulated_noise(1):
        geometric(Query(1, claim, "step"), allotment, dpc.PureDP(1))

refusals = [
    (errors.LossError, lambda: dpc.PureDP(float("nan"))),
    (errors.LossError, lambda: dpc.PureDP(True)),
    (errors.LossError, lambda: dpc.PureDP(0)),
    (errors.LossError, lambda: dpc.ApproxDP(1, 1)),
    (errors.LossError, lambda: ask(loss=dpc.NoPrivacy())),
    (errors.LossError, lambda: ask(loss=dpc.PureDP(21))),
    (errors.UnprovenError, lambda: ask(score="iqr", loss=dpc.ApproxDP(1, 1e-6),
                                       method=dpc.papers.AnmTestPrivacyIqr())),
    (errors.LedgerError, simulated_on_file),
    (errors.FenceError, simulated_on_real_allotment),
    (errors.FenceError, lambda: laplace(Query(1.0, other, "step"), allotment, dpc.PureDP(1))),
    (errors.FenceError, lambda: laplace(Query(1.0, claim, "step"), allotment, dpc.PureDP(2))),
    (errors.FenceError, lambda: Query(float("nan"), claim, "step")),
    (errors.FenceError, twice),
    (errors.ParameterError, lambda: Sensitivity(0, Norm.L1, Relation.REPLACE_ONE, "example")),
    (errors.SchemaError, lambda: dpc.Bounded(1, 1)),
    (errors.SchemaError, lambda: dpc.Table({"x": x, "y": np.array(["a"] * 24)}, schema, ledger, missing="impute")),
    (errors.ParameterError, lambda: dpc.direction(dpc.Table(
        {"x": x[:3], "y": x[:3]}, schema, ledger, missing="impute"
    ), "x", "y",
                                                  loss=dpc.PureDP(1))),
    (errors.HiddenAnswerError, lambda: pickle.dumps(table)),
    (errors.HiddenAnswerError, lambda: pickle.dumps(ledger)),
    (errors.HiddenAnswerError, lambda: pickle.dumps(Query(1.0, claim, "step"))),
    (errors.LedgerError, lambda: dpc.Ledger.create(path, budget=dpc.PureDP(1))),
]
for kind, call in refusals:
    try:
        call()
    except errors.DpCausalError as error:
        if not isinstance(error, kind):
            raise SystemExit(f"{kind.__name__} was due, {error!r} came")
    else:
        raise SystemExit(f"{kind.__name__} was due, nothing came")
if ledger.entries():
    raise SystemExit("a refusal spent")

try:
    ask(score="hsic", method="auto")
except errors.LedgerError:
    pass
else:
    raise SystemExit("a spend of another unit was granted")
answers = [ask().margin for _ in range(2)]
if answers[0] == answers[1]:
    raise SystemExit("the same noise twice")
if ledger.remaining.epsilon != 0 or [entry.number for entry in ledger.entries()] != [1, 2]:
    raise SystemExit("the same query twice must pay twice")
try:
    ask()
    raise SystemExit("the budget did not hold")
except errors.BudgetExceededError:
    pass

head = ledger.head
ledger.close()
file = Path(path)
raw = bytearray(file.read_bytes())
place = raw.rindex(b"replace-one")
raw[place] ^= 1
file.write_bytes(raw)
try:
    dpc.Ledger.open(path)
    raise SystemExit("a changed ledger was opened")
except errors.LedgerDamagedError:
    pass
print(len(refusals), "refusals stand")
'''


def test_every_refusal_stands_under_the_python_optimiser(tmp_path: Path) -> None:
    # With its byte code kept, a second run does not compile scipy again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = [sys.executable, "-O", "-W", "error", "-c", PROGRAM, str(tmp_path / "study.ledger")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert (done.stdout, done.stderr, done.returncode) == ("21 refusals stand\n", "", 0)


def test_the_program_notices_that_asserts_are_on(tmp_path: Path) -> None:
    run = [sys.executable, "-c", PROGRAM, str(tmp_path / "study.ledger")]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONOPTIMIZE"}
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 1
    assert "asserts are on" in done.stderr
