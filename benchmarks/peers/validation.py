"""What agrees with whom, and to how many digits: the page docs/appendix/validation.md.

    python -m benchmarks validation --write

Each line computes one thing twice, by this library without noise and by another package, on the same simulated data.
What is not installed is left out of the run, and keeps its line in the page, where a new line is written by hand once.
``make peers`` has them all.
"""

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.run import Report, benchmark

PAGE = Path(__file__).resolve().parents[2] / "docs" / "appendix" / "validation.md"
Pair = tuple[Any, Any]


@dataclass(frozen=True)
class Check:
    """One thing, the package that computes it too, both answers, and the least number of digits that must agree."""

    what: str
    package: str
    digits: int
    both: Callable[[], Pair]

    def measured(self) -> float:
        """Return how many digits agree: −log10 of the largest difference, relative to the largest value, 16 at most."""
        ours, theirs = (np.asarray(side, dtype=float) for side in self.both())
        gap = float(np.abs(ours - theirs).max()) / max(1e-300, float(np.abs(theirs).max()))
        return min(16.0, -math.log10(gap)) if gap else 16.0

    @property
    def version(self) -> str:
        try:
            return version(self.package)
        except PackageNotFoundError:
            return ""


def _pair(m: int = 800) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    x = rng.random(m)
    return x, np.clip(np.sin(3 * x) / 2 + 0.2 * rng.random(m), 0, 1)


def _ranks(which: str) -> Pair:
    from scipy import stats

    from dpcausal.papers.statistics import rank

    x, y = _pair()
    theirs = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}[which](x, y).statistic
    return getattr(rank, which)(x, y), theirs


def _hsic(kernel: str) -> Pair:
    from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

    from dpcausal.papers.statistics.hsic import GAUSSIAN
    from dpcausal.statistics.hsic import LAPLACIAN, hsic

    x, y = _pair()
    wide: dict[str, Any] = {"width_x": 0.2, "width_y": 0.3, "range_x": (0.0, 1.0), "range_y": (0.0, 1.0)}
    if kernel == "laplacian":
        k, gram = laplacian_kernel(x[:, None], gamma=1 / 0.2), laplacian_kernel(y[:, None], gamma=1 / 0.3)
    else:
        k, gram = rbf_kernel(x[:, None], gamma=1 / 0.08), rbf_kernel(y[:, None], gamma=1 / 0.18)
    middle = np.eye(len(x)) - 1 / len(x)
    ours = hsic(x, y, kernel=LAPLACIAN if kernel == "laplacian" else GAUSSIAN, **wide)
    return ours, np.trace(k @ middle @ gram @ middle) / len(x) ** 2


def _kernel_ridge() -> Pair:
    from sklearn.kernel_ridge import KernelRidge

    from dpcausal.privacy.noise import generator_from_seed
    from dpcausal.regression.kernel_ridge import alpha_of, fit

    x, y = _pair(300)
    ours = fit(x, y, penalty=0.01, width=0.2, clip=(-9.0, 9.0), generator=generator_from_seed(0))
    theirs = KernelRidge(alpha=alpha_of(0.01, 300), kernel="rbf", gamma=1 / 0.08).fit(x[:, None], y)
    return ours(x), theirs.predict(x[:, None])


def _rows(n: int = 4_000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    z, x, u = rng.uniform(-1, 1, (3, n))
    a = 0.8 * z + 0.3 * x + u
    return {"y": 1 + 0.7 * a - 0.5 * x + u + rng.uniform(-1, 1, n), "a": a, "x": x, "z": z}


def _moments() -> Any:
    schema = dpc.Schema({name: dpc.Bounded(-10, 10) for name in "yaxz"})
    table = dpc.Table(_rows(), schema, dpc.Ledger.without_privacy())
    return dpc.moments(table, list("yaxz"), loss=dpc.NoPrivacy())


def _least_squares(what: str) -> Pair:
    import statsmodels.api as sm

    rows = _rows()
    theirs = sm.OLS(rows["y"], np.column_stack([rows["a"], rows["x"], np.ones(len(rows["y"]))])).fit()
    ours = _moments().ols("y", ["a", "x"], errors="homoscedastic")
    kept = [getattr(ours[name], what) for name in "ax"]
    return kept, (theirs.params if what == "estimate" else theirs.bse)[:2]


def _instruments() -> Pair:
    from statsmodels.sandbox.regression.gmm import IV2SLS

    rows = _rows()
    ones = np.ones(len(rows["y"]))
    exogenous = np.column_stack([rows["z"], rows["x"], ones])
    theirs = IV2SLS(rows["y"], np.column_stack([rows["a"], rows["x"], ones]), exogenous).fit()
    ours = _moments().iv("y", "a", instruments=["z"], given=["x"])
    return [one.estimate for one in ours.coefficients], theirs.params[: len(ours.coefficients)]


def _g_formula() -> Pair:
    import pandas as pd

    rng = np.random.default_rng(4)
    site = rng.integers(0, 3, 3_000)
    arm = (rng.random(3_000) < 0.3 + 0.2 * site).astype(int)
    ill = (rng.random(3_000) < 0.2 + 0.1 * site + 0.15 * arm).astype(int)
    frame = pd.DataFrame({"site": site, "arm": arm, "ill": ill})
    schema = dpc.Schema({"site": dpc.Levels([0, 1, 2]), "arm": dpc.Levels([0, 1]), "ill": dpc.Levels([0, 1])})
    table = dpc.Table(frame, schema, dpc.Ledger.without_privacy())
    found = dpc.effect(table, treatment="arm", outcome="ill", adjust=["site"], loss=dpc.NoPrivacy())
    means = frame.groupby(["site", "arm"])["ill"].mean().unstack()
    return found.estimate, float((means[1] - means[0]) @ frame["site"].value_counts(normalize=True).sort_index())


def _panel() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    made = dpc.simulate.factor_panel(30, seed=2)
    donors, target = np.asarray(made.donors), np.asarray(made.target)
    return donors[:, :10], donors[:, 10:], target[:10]


def _ridge_path() -> Pair:
    from sklearn.linear_model import Ridge

    from dpcausal.papers.statistics.ridge_weights import ridge_weights

    past, future, own = _panel()
    ridge = Ridge(alpha=0.5, fit_intercept=False).fit(past.T, own)
    return future.T @ ridge_weights(past, own, 0.5), future.T @ ridge.coef_


def _simplex() -> Pair:
    from pysyncon import Synth

    from dpcausal.synthetic_control.methods.simplex import simplex_weights

    past, _, own = _panel()
    weights, _ = Synth().w_optimize(np.eye(len(own)), past.T * 100, own * 100)
    fitted = [np.sqrt(np.mean((own - past.T @ w) ** 2)) for w in (simplex_weights(past, own), np.asarray(weights))]
    return fitted[0], fitted[1]


def _gaussian_curve() -> Pair:
    import dp_accounting

    from dpcausal.privacy.loss import largest_rho

    ours, theirs = [], []
    for epsilon, delta in ((0.5, 1e-6), (1, 1e-5), (2, 1e-6)):
        budget = dpc.ApproxDP(epsilon, delta)
        rho = float(largest_rho(budget.exact_epsilon, budget.exact_delta))
        accountant = dp_accounting.rdp.RdpAccountant(
            orders=np.concatenate([np.arange(1.01, 60, 0.01), np.arange(60, 500)]),
            neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE,
        )
        accountant.compose(dp_accounting.dp_event.ZCDpEvent(rho))
        ours.append(epsilon)
        theirs.append(accountant.get_epsilon(delta))
    return ours, theirs


ARCS = [("z", "a"), ("z", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("e", "d"), ("e", "f")]
NODES = tuple("abcdefz")


def _separation() -> Pair:
    graph = dpc.Cpdag(NODES, frozenset(ARCS))
    theirs = dpc.interop.to_pgmpy(graph)
    asked = [
        (x, y, given)
        for x, y in itertools.combinations(NODES, 2)
        for size in (0, 1, 2)
        for given in itertools.combinations([node for node in NODES if node not in (x, y)], size)
    ]
    ours = [graph.d_separated(x, y, given) for x, y, given in asked]
    return ours, [not theirs.is_dconnected(x, y, observed=list(given)) for x, y, given in asked]


def _class_of_a_dag() -> Pair:
    from causallearn.utils.DAG2CPDAG import dag2cpdag

    read = dpc.interop.from_causal_learn(dag2cpdag(dpc.interop.to_causal_learn(dpc.Cpdag(NODES, frozenset(ARCS)))))
    ours = dpc.Cpdag.from_dag(NODES, ARCS).to_networkx()
    theirs = read.to_networkx()
    pairs = list(itertools.permutations(NODES, 2))
    return [ours.has_edge(*pair) for pair in pairs], [theirs.has_edge(*pair) for pair in pairs]


CHECKS = (
    Check("Spearman's coefficient, no ties", "scipy", 12, lambda: _ranks("spearman")),
    Check("Kendall's coefficient, no ties", "scipy", 12, lambda: _ranks("kendall")),
    Check("HSIC, Laplacian kernel", "scikit-learn", 9, lambda: _hsic("laplacian")),
    Check("HSIC, Gaussian kernel", "scikit-learn", 9, lambda: _hsic("gaussian")),
    Check("kernel ridge regression", "scikit-learn", 12, _kernel_ridge),
    Check("least squares from moments: slopes", "statsmodels", 12, lambda: _least_squares("estimate")),
    Check("least squares from moments: standard errors", "statsmodels", 12, lambda: _least_squares("standard_error")),
    Check("two-stage least squares from moments", "statsmodels", 12, _instruments),
    Check("effect standardised over strata", "pandas", 12, _g_formula),
    Check("ridge synthetic control", "scikit-learn", 12, _ridge_path),
    Check("simplex synthetic control: fit of the past", "pysyncon", 6, _simplex),
    Check("the ε of a ρ at δ", "dp-accounting", 6, _gaussian_curve),
    Check("d-separation, all pairs given up to two of seven nodes", "pgmpy", 16, _separation),
    Check("the class of a DAG", "causal-learn", 16, _class_of_a_dag),
)


def rows_of(text: str) -> dict[str, str]:
    """Return the lines of the page's table by what they compare."""
    lines = re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \| [\d.]+ \|$", text, flags=re.MULTILINE)
    return {what: next(line for line in text.splitlines() if line.startswith(f"| {what} |")) for what in lines}


@benchmark("peers", code="dpcausal.api", write=False)
def main(report: Report) -> None:
    """Print the lines, with ``--write`` put them in the page's table; a target is that enough digits agree."""
    page = PAGE.read_text(encoding="utf-8")
    for check in CHECKS:
        try:
            digits = check.measured()
        except ImportError:
            print(f"{check.package} is not installed: {check.what} is not compared; `make peers` brings all")
            continue
        shown = math.floor(digits * 10) / 10
        line = f"| {check.what} | {check.package} | {check.version} | {shown:g} |"
        page = page.replace(rows_of(page)[check.what], line)
        report.add(check.what, {"digits": shown}, method=check.package, note=check.version)
        report.target(f"{check.what}: {shown:g} digits, at least {check.digits}", digits >= check.digits)
    if report.given.write:
        PAGE.write_text(page, encoding="utf-8")
