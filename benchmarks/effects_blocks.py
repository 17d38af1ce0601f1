"""Effects in blocks: error, coverage and width against ``aipw`` and against the same learner on all rows.

    python -m benchmarks effects_blocks                                  series, designs where moments fails among them
    python -m benchmarks effects_blocks --designs step --learner boosting --rows 100000 --runs 20
    python -m benchmarks effects_blocks --way blocks --overlap

*linear* and *nonlinear* are those of ``effects_literature``, without the squares and cubes that ``aipw`` is given
there.  In the others treatment and outcome go alike: *square* with x0², *product* with x0·x1 and x2², *step* with two
jumps, *wave* with sin 6x0.  *varied*: the effect is .4 + .4 x0 + .6 (x1² − 1/3), treatment goes with both.  *skewed*:
log-normal errors; *rare*: 6 % are treated; *jumpy*: the effect is 0 or .8 by the sign of x0, which treatment goes with.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks import effects_literature
from dpcausal.errors import InfeasibleError

REACH = 2.5


def drawn(kind: str, n: int, seed: int) -> tuple[Any, Any, Any, float, float]:
    """Return x, treatment, outcome, everybody's effect and the overlap-weighted one."""
    if kind in ("linear", "nonlinear"):
        return (*effects_literature.drawn(kind, n, seed), 0.4, 0.4)
    rng = np.random.default_rng([17, n, seed])
    x = rng.uniform(-1, 1, (n, 5))
    effect, error = np.full(n, 0.4), 0.44 * rng.normal(size=n)
    if kind == "square":
        logit, line = 2 * (x[:, 0] ** 2 - 1 / 3), x[:, 0] ** 2
    elif kind == "product":
        logit, line = 1.5 * x[:, 0] * x[:, 1] + x[:, 2] ** 2 - 1 / 3, x[:, 0] * x[:, 1] + 0.7 * x[:, 2] ** 2
    elif kind == "step":
        line = 0.6 * np.where(x[:, 0] > 0.3, 1.0, -0.5) * np.where(x[:, 1] > -0.4, 1.0, -1.0)
        logit = line / 0.6
    elif kind == "wave":
        logit, line = np.sin(6 * x[:, 0]), 0.6 * np.sin(6 * x[:, 0])
    elif kind == "varied":
        logit, line = 0.8 * x[:, 0] + 1.5 * (x[:, 1] ** 2 - 1 / 3), 0.5 * x[:, 0] + 0.3 * x[:, 1] ** 2
        effect = 0.4 + 0.4 * x[:, 0] + 0.6 * (x[:, 1] ** 2 - 1 / 3)
    elif kind == "jumpy":
        logit, line, effect = 1.5 * x[:, 0], 0.5 * x[:, 0], np.where(x[:, 0] > 0, 0.8, 0.0)
    elif kind == "skewed":
        logit, line = 0.6 * x[:, 0], 0.3 * x[:, 0]
        error = 0.3 * (np.exp(rng.normal(size=n)) - math.exp(0.5))
    elif kind == "rare":
        logit, line = 0.8 * x[:, 0] - 3, 0.5 * x[:, 0] + 0.3 * x[:, 1]
    else:
        raise ValueError(kind)
    e = 1 / (1 + np.exp(-logit))
    a = (rng.random(n) < e).astype(int)
    return x, a, np.clip(effect * a + line + error, -REACH, REACH), *truth(kind)


def truth(kind: str) -> tuple[float, float]:
    """Return everybody's effect and the overlap-weighted one, by quadrature of x0 and x1."""
    u, v = np.meshgrid(np.linspace(-1, 1, 2001)[::2], np.linspace(-1, 1, 2001)[1::2])
    if kind == "varied":
        effect, logit = 0.4 + 0.4 * u + 0.6 * (v**2 - 1 / 3), 0.8 * u + 1.5 * (v**2 - 1 / 3)
    elif kind == "jumpy":
        effect, logit = np.where(u > 0, 0.8, np.where(u < 0, 0.0, 0.4)), 1.5 * u
    else:
        return 0.4, 0.4
    e = 1 / (1 + np.exp(-logit))
    return float(effect.mean()), float((effect * e * (1 - e)).sum() / (e * (1 - e)).sum())


def ask(columns: tuple[Any, Any, Any], loss: Any, method: Any) -> Any:
    x, a, y = columns
    names = [f"x{place}" for place in range(x.shape[1])]
    private = not isinstance(loss, dpc.NoPrivacy)
    ledger = dpc.Ledger.in_memory(loss, accept_large_epsilon=True) if private else dpc.Ledger.without_privacy()
    bounds = dict.fromkeys(names, dpc.Bounded(-1, 1))
    schema = dpc.Schema({"a": dpc.Levels([0, 1]), "y": dpc.Bounded(-REACH, REACH), **bounds})
    table = dpc.Table({"a": a, "y": y, **dict(zip(names, x.T, strict=True))}, schema, ledger)
    return dpc.effect(table, treatment="a", outcome="y", adjust=names, loss=loss, method=method,
                      accept_large_epsilon=True)  # fmt: skip


def line_of(kind: str, n: int, epsilon: float, runs: int, way: str, options: dict[str, Any]) -> str:
    method: Any = dpc.methods.SampleAggregate(**options)
    loss: Any = dpc.PureDP(epsilon) if math.isfinite(epsilon) else dpc.NoPrivacy()
    if way.startswith("moments"):
        method = dpc.methods.Aipw(light_tails=way != "moments", lines_only=way == "moments-lines")
        loss = dpc.ApproxDP(epsilon, 1e-6) if math.isfinite(epsilon) else dpc.NoPrivacy()
    found, held, settings = [], [], {}
    for seed in range(runs):
        *columns, everybody, overlap = drawn(kind, n, seed)
        with dpc.simulated_noise(seed):
            try:
                one = ask(tuple(columns), loss, method)  # type: ignore[arg-type]
            except InfeasibleError:
                return f"{kind}, n = {n}, {way}, ε = {epsilon:g}: refused before the spend"
        true, settings = overlap if one.estimand == "overlap" else everybody, one.settings
        if one.estimate is not None:
            found.append(one.estimate - true)
        if one.interval is not None:
            held.append((one.interval[0] <= true <= one.interval[1], (one.interval[1] - one.interval[0]) / 2))
    off, sure = np.array(found), np.array(held).reshape(-1, 2)
    coverage = sure[:, 0].mean() if len(sure) else math.nan
    low = " LOW" if len(sure) and coverage < 0.93 - 3 * math.sqrt(0.0475 / len(sure)) else ""
    told = ", ".join(str(settings[name]) for name in ("blocks", "terms") if settings.get(name))
    unsure = off.std() / math.sqrt(len(off))
    return (f"{kind}, n = {n}, {way}, ε = {epsilon:g}: bias {off.mean():+.4f} (± {unsure:.4f}), RMSE "
            f" {math.sqrt((off**2).mean()):.4f}, coverage {coverage:.3f}{low}, half-width "
            f"{sure[:, 1].mean() if len(sure) else math.nan:.4f}, shown in {len(sure) / runs:.2f} of {runs}"
            f"{f' ({told})' if told else ''}")  # fmt: skip


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--designs", default="linear,nonlinear,square,product,varied,jumpy,skewed,rare,step,wave")
    options.add_argument("--rows", default="10000,100000")
    options.add_argument("--epsilons", default="0.5,1,2,4")
    options.add_argument("--way", default="blocks", help="blocks, moments, moments-short or moments-lines")
    options.add_argument("--learner", default="", help="boosting or forest, for outcome and treatment")
    options.add_argument("--terms", default="")
    options.add_argument("--blocks", type=int, default=0)
    options.add_argument("--overlap", action="store_true")
    asked = options.parse_args(arguments)
    chosen: dict[str, Any] = {"overlap": True} if asked.overlap else {}
    chosen |= {"outcome_model": asked.learner, "propensity_model": asked.learner} if asked.learner else {}
    chosen |= {"terms": asked.terms} if asked.terms else {}
    chosen |= {"blocks": asked.blocks} if asked.blocks else {}
    for kind in asked.designs.split(","):
        for n in map(int, asked.rows.split(",")):
            for epsilon in map(float, asked.epsilons.split(",")):
                for way in asked.way.split(","):
                    runs = asked.runs if n <= 10_000 else max(asked.runs // 2, 1)
                    print(line_of(kind, n, epsilon, runs, way, chosen), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
