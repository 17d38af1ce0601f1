"""Made-up panels, their neighbours, and what a call brings to the gate on both."""

from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.synthetic_control.methods import choose_method
from dpcausal.synthetic_control.question import OneTreated
from tests.registry.rows import allotted

START, PERIODS, BOUNDS = 6, 9, dpc.Bounded(-1, 1)
LINE = np.array([0.1, 0.3, -0.2, 0.2, 0.0, 0.1, 0.4, 0.5, -0.1])
"""The target."""

WAYS: dict[str, dict[str, Any]] = {
    "matched by epsilon": {"method": "matched", "loss": dpc.PureDP(1)},
    "matched by rho": {"method": "matched", "loss": dpc.ZCDP(0.5)},
    "factor": {"method": "factor", "loss": dpc.ApproxDP(1, 1e-6)},
    "output-perturbation by epsilon": {"method": dpc.papers.OutputPerturbation(), "loss": dpc.PureDP(1)},
    "output-perturbation by rho": {"method": dpc.papers.OutputPerturbation(), "loss": dpc.ApproxDP(1, 1e-6)},
    "objective-perturbation": {"method": dpc.papers.ObjectivePerturbation(), "loss": dpc.ApproxDP(1, 1e-6)},
    "DPSC_out": {"method": dpc.papers.DpscOut(), "loss": dpc.PureDP(1)},
}  # fmt: skip
"""Ways to release whose proofs hold."""


def ledger_of(loss: Any) -> dpc.Ledger:
    """Return a ledger that holds just the loss."""
    exact = isinstance(loss, dpc.NoPrivacy)
    return dpc.Ledger.without_privacy() if exact else dpc.Ledger.in_memory(loss, unit="unit", accept_large_epsilon=True)


def granted(loss: Any, times: int = 1) -> Any:
    return allotted(loss, times, dpc.Unit.DONOR)


def panel_of(
    donors: Any, target: Any, loss: Any, start: Any = 10, bounds: Any = BOUNDS, times: Any = None
) -> dpc.Panel:
    """Return a panel whose ledger holds just the loss."""
    return dpc.Panel.from_arrays(donors, target, start=start, times=times, bounds=bounds, ledger=ledger_of(loss))


def answer_to(panel: dpc.Panel, loss: Any, seed: int = 1, **arguments: Any) -> Any:
    """Return the synthetic control of a panel, or of each of its targets, with the noise of a seed."""
    call = dpc.synthetic_controls if arguments.pop("several", False) else dpc.synthetic_control
    with dpc.simulated_noise(seed):
        return call(panel, loss=loss, **arguments)


def panel(donors: Any, ledger: dpc.Ledger, targets: int = 1) -> dpc.Panel:
    series: Any = LINE if targets == 1 else {"early": LINE, "late": LINE[::-1].copy()}
    start: Any = START if targets == 1 else {"early": START, "late": START + 1}
    return dpc.Panel.from_arrays(donors.copy(), series, start=start, bounds=BOUNDS, ledger=ledger)


def ask(donors: Any, **arguments: Any) -> Any:
    """Ask with a ledger of exactly the loss, forced, so that placebos are left out only for want of budget."""
    ledger = ledger_of(arguments["loss"])
    if arguments.pop("several", False):
        return dpc.synthetic_controls(panel(donors, ledger, 2), force=True, **arguments)
    return dpc.synthetic_control(panel(donors, ledger), force=True, **arguments)


def some_donors(rng: np.random.Generator, n: int) -> Any:
    """Return donors of an odd shape: alike, at the bounds, constant, jumping, missing, or anywhere."""
    kind = int(rng.integers(6))
    rows = {
        0: np.tile(LINE, (n, 1)) + 0.02 * rng.standard_normal((n, PERIODS)),
        1: np.sign(rng.uniform(-1, 1, (n, PERIODS))),
        2: np.repeat(rng.uniform(-1, 1, (n, 1)), PERIODS, axis=1),
        3: np.tile(LINE, (n, 1)) * rng.uniform(-3, 3, (n, 1)),
        4: np.where(rng.random((n, PERIODS)) < 0.3, np.nan, rng.uniform(-1, 1, (n, PERIODS))),
        5: rng.uniform(-1, 1, (n, PERIODS)),
    }
    return rows[kind]


def new_donor(rng: np.random.Generator) -> Any:
    """Return a row that follows the target and then jumps, lies at the bounds, is infinite, missing, or anywhere."""
    kind = int(rng.integers(6))
    if kind == 0:
        return np.concatenate([LINE[:START], np.full(PERIODS - START, rng.choice([-1.0, 1.0]))])
    if kind == 1:
        return np.full(PERIODS, rng.choice([-1.0, 1.0]))
    if kind == 2:
        return np.full(PERIODS, np.nan)
    if kind == 3:
        return np.where(rng.random(PERIODS) < 0.5, np.inf, -1e30)
    return np.sign(rng.uniform(-1, 1, PERIODS)) if kind == 4 else rng.uniform(-1, 1, PERIODS)


def neighbours_of(seed: int, n: int = 300) -> tuple[Any, Any]:
    """Return a panel and one with a donor replaced."""
    rng = np.random.default_rng(seed)
    rows = some_donors(rng, n)
    other = rows.copy()
    other[int(rng.integers(n))] = new_donor(rng)
    return rows, other


def plan_of(panel: dpc.Panel, loss: Any, target: Any = None, start: Any = None, method: Any = "auto") -> Any:
    """Return the plan of a call, which is not made."""
    question = OneTreated.of(panel, target, 0.9, True, True, start)
    way = choose_method(method, question.panel, loss)
    spent, _ = way.charge(loss, question)
    return way.plan(question, spent).plans(question, spent)[0]
