"""``python -O`` drops assert statements, of which the sources have none; no check of privacy may go with them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import pickle, sys
from pathlib import Path
import numpy as np
import dpcausal as dpc
from dpcausal import errors
from dpcausal.mechanisms.additive import geometric, laplace
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity

if not sys.flags.optimize:
    raise SystemExit("asserts are on: this run shows nothing")
path = sys.argv[1]
schema = dpc.Schema({"x": dpc.Bounded(-1, 1), "y": dpc.Bounded(-1, 1)})
x = np.linspace(-1, 1, 24)
ledger = dpc.Ledger.create(path, budget=dpc.PureDP(2), protect="test")
table = dpc.Table({"x": x, "y": x**3}, schema, ledger, missing="impute")
usual = {"score": "spearman", "loss": dpc.PureDP(1), "method": dpc.papers.Holdout()}
ask = lambda **arguments: dpc.direction(table, "x", "y", **(usual | arguments))
claim = Sensitivity(1, Norm.L1, Relation.REPLACE_ONE, "example")
other = Sensitivity(1, Norm.L1, Relation.ADD_OR_REMOVE_ONE, "example")
allotment = dpc.Ledger.in_memory(dpc.PureDP(1)).charge(dpc.PureDP(1), task="example")

def simulated(call):
    with dpc.simulated_noise(1):
        call()

refusals = [
    (errors.LossError, lambda: dpc.PureDP(float("nan"))),
    (errors.LossError, lambda: ask(loss=dpc.NoPrivacy())),
    (errors.LossError, lambda: ask(loss=dpc.PureDP(21))),
    (errors.UnprovenError, lambda: ask(score="iqr", loss=dpc.ApproxDP(1, 1e-6),
                                       method=dpc.papers.AnmTestPrivacyIqr())),
    (errors.LedgerError, lambda: simulated(ask)),
    (errors.FenceError, lambda: simulated(lambda: geometric(Query(1, claim, "step"), allotment, dpc.PureDP(1)))),
    (errors.FenceError, lambda: laplace(Query(1.0, other, "step"), allotment, dpc.PureDP(1))),
    (errors.FenceError, lambda: laplace(Query(1.0, claim, "step"), allotment, dpc.PureDP(2))),
    (errors.FenceError, lambda: Query(float("nan"), claim, "step")),
    (errors.ParameterError, lambda: Sensitivity(0, Norm.L1, Relation.REPLACE_ONE, "example")),
    (errors.SchemaError, lambda: dpc.Table({"x": x, "y": np.array(["a"] * 24)}, schema, ledger, missing="impute")),
    (errors.HiddenAnswerError, lambda: pickle.dumps([table, ledger, Query(1.0, claim, "step")])),
    (errors.LedgerError, lambda: dpc.Ledger.create(path, budget=dpc.PureDP(1))),
    (errors.LedgerError, lambda: ask(score="hsic", method="auto")),  # of another unit
    (errors.BudgetExceededError, lambda: [ask() for _ in range(3)]),
]
for kind, call in refusals:
    try:
        call()
    except errors.DpCausalError as error:
        if not isinstance(error, kind):
            raise SystemExit(f"{kind.__name__} was due, {error!r} came")
    else:
        raise SystemExit(f"{kind.__name__} was due, nothing came")
if ledger.remaining.epsilon != 0 or [entry.number for entry in ledger.entries()] != [1, 2]:
    raise SystemExit("a refusal spent, or the same question twice did not pay twice")
ledger.close()
raw = bytearray(Path(path).read_bytes())
raw[raw.rindex(b"replace-one")] ^= 1
Path(path).write_bytes(raw)
try:
    dpc.Ledger.open(path)
    raise SystemExit("a changed ledger was opened")
except errors.LedgerDamagedError:
    print(len(refusals), "refusals stand")
"""


@pytest.mark.parametrize("optimised", [True, False])
def test_every_refusal_stands_under_the_python_optimiser_and_the_program_notices_where_it_is_off(
    tmp_path: Path, optimised: bool
) -> None:
    # With its byte code kept, a second run does not compile scipy again.
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONOPTIMIZE")}
    run = [sys.executable, *(["-O", "-W", "error"] if optimised else []), "-c", PROGRAM, str(tmp_path / "study.ledger")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False, env=environment)
    expected = ("15 refusals stand\n", "", 0) if optimised else ("", "asserts are on: this run shows nothing\n", 1)
    assert (done.stdout, done.stderr, done.returncode) == expected
