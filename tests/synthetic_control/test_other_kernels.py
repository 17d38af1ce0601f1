"""The same answer to the bit under another kernel of matrix products, as on another machine."""

import json
import os
import subprocess
import sys

PROGRAM = """
import json
import numpy as np
import dpcausal as dpc
made = dpc.simulate.factor_panel(400, effect=0.3, seed=5)
told = []
for method, loss in (("factor", dpc.ApproxDP(4, 1e-6)), ("matched", dpc.PureDP(4))):
    panel = dpc.Panel.from_arrays(np.round(made.donors, 6), np.round(made.target, 6), start=made.start,
                                  bounds=made.bounds, ledger=dpc.Ledger.in_memory(loss, unit="unit"))
    with dpc.simulated_noise(2):
        answer = dpc.synthetic_control(panel, loss=loss, method=method, force=True)
    loadings = None if answer.loadings is None else answer.loadings.tolist()
    told.append([answer.counterfactual.tolist(), answer.interval, answer.pvalue, answer.mixing, answer.fit, loadings])
print(json.dumps(told))
"""


def told_by(kernel: str) -> object:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ | {"OPENBLAS_CORETYPE": kernel},
                         capture_output=True, text=True, check=True, timeout=120)  # fmt: skip
    return json.loads(ran.stdout)


def test_another_kernel_of_products_moves_no_bit_of_an_answer() -> None:
    answers = [told_by(kernel) for kernel in ("Haswell", "Prescott")]
    assert answers[0] == answers[1]
