"""Textbook data: our answers without privacy beside other packages, and how often private intervals hold them.

The data come with causaldata, linearmodels, statsmodels and rdrobust, or lie in the folder DPCAUSAL_DATA.  A comparison
whose package or data are absent is left out, with a line that says so.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.data import DataAbsentError
from benchmarks.peers import textbook_data as data
from benchmarks.peers.textbook_private import PRIVATE
from benchmarks.run import Report, benchmark

EXACT = dpc.NoPrivacy()
DIGITS = 4
Pair = tuple[Any, Any]


@dataclass(frozen=True)
class Comparison:
    """One number or more of one data set: what is estimated, who computes it too, and both answers."""

    what: str
    book: str
    package: str
    both: Callable[[], Pair]

    def digits(self) -> float:
        """Return how many digits of the worst number agree, 12 at most."""
        ours, theirs = (np.atleast_1d(np.asarray(side, dtype=float)) for side in self.both())
        gaps = np.abs(ours - theirs) / np.maximum(np.abs(theirs), 1e-300)
        return min(12.0, -math.log10(max(float(gaps.max()), 1e-12)))


def _lines(name: str, what: str) -> Pair:
    """Least squares from moments: slopes, their standard errors, or White's with n − k degrees of freedom (HC1)."""
    import statsmodels.api as sm

    frame, outcome, regressors = data.regression(name)
    dist = "HC1" if what == "HC1" else "nonrobust"
    theirs = sm.OLS(frame[outcome], sm.add_constant(frame[regressors])).fit(cov_type=dist)
    meat = {"robust_for": (outcome, regressors)} if what == "HC1" else {}
    moments = dpc.moments(data.table(frame), [outcome, *regressors], loss=EXACT, **meat)
    ours = moments.ols(outcome, regressors, errors="homoscedastic" if what == "errors" else None)
    kept = [getattr(ours[name], "estimate" if what == "slopes" else "standard_error") for name in regressors]
    return kept, (theirs.params if what == "slopes" else theirs.bse)[regressors]


def _instruments(name: str, what: str) -> Pair:
    from linearmodels.iv import IV2SLS

    frame, outcome, treatment, instruments, given = data.instruments(name)
    theirs = IV2SLS(frame[outcome], frame[given].assign(one=1.0), frame[treatment], frame[instruments])
    fit = theirs.fit(cov_type="unadjusted", debiased=True)
    moments = dpc.moments(data.table(frame), [outcome, treatment, *instruments, *given], loss=EXACT)
    ours = moments.iv(outcome, treatment, instruments=instruments, given=given, errors="homoscedastic")
    found = {one.name: one for one in ours.coefficients}
    if what == "errors":
        return found[treatment].standard_error, fit.std_errors[treatment]
    return [found[one].estimate for one in (treatment, *given)], fit.params[[treatment, *given]]


def _mediated() -> Pair:
    """The indirect effect a·b and the direct effect, by two regressions."""
    import statsmodels.api as sm

    frame, *_ = data.instruments("card")
    moments = dpc.moments(data.table(frame), ["lwage", "nearc4", "educ", "exper"], loss=EXACT)
    ours = moments.mediation("nearc4", "educ", "lwage", given=["exper"])
    first = sm.OLS(frame["educ"], sm.add_constant(frame[["nearc4", "exper"]])).fit().params
    second = sm.OLS(frame["lwage"], sm.add_constant(frame[["nearc4", "exper", "educ"]])).fit().params
    theirs = [second["nearc4"], first["nearc4"] * second["educ"]]
    return [ours["direct"].estimate, ours["indirect"].estimate], theirs


def _effect(name: str, what: str) -> Pair:
    """The difference of means, with White's standard error; or standardised over strata, of a saturated regression."""
    import statsmodels.formula.api as smf

    frame, outcome, treatment, strata = data.trial(name)
    levels = {one: sorted(frame[one].unique().tolist()) for one in (treatment, *strata)}
    asked = strata if what == "strata" else []
    table = data.table(frame[[outcome, treatment, *strata]], levels)
    ours = dpc.effect(table, treatment=treatment, outcome=outcome, adjust=asked, loss=EXACT)
    if what != "strata":
        fit = smf.ols(f"{outcome} ~ {treatment}", frame).fit(cov_type="HC0")
        return [ours.estimate, ours.standard_error], [fit.params[treatment], fit.bse[treatment]]
    terms = " * ".join(f"C({one})" for one in strata)
    fit = smf.ols(f"{outcome} ~ {treatment} * {terms}", frame).fit()
    treated, control = (fit.predict(frame.assign(**{treatment: arm})) for arm in (1, 0))
    return ours.estimate, float((treated - control).mean())


def _jump(name: str, width: int) -> Pair:
    """Lines on both sides, triangular weights, a given bandwidth: rdrobust's conventional estimate."""
    from rdrobust import rdrobust

    x, y, bounds = data.cutoff(name)
    schema = dpc.Schema({"x": dpc.Levels(list(range(int(x.min()), int(x.max()) + 1))), "y": bounds})
    table = dpc.Table({"x": x, "y": y}, schema, dpc.Ledger.without_privacy())
    ours = dpc.discontinuity(
        table, running="x", outcome="y", cutoff=0, bandwidth=float(width), curvature=0.01, loss=EXACT
    )
    theirs = rdrobust(y, x.astype(float), c=0, h=width, b=width, p=1, kernel="tri", masspoints="off")
    return ours.estimate, float(theirs.coef.to_numpy().ravel()[0])


def _staggered(package: str, what: str, control: str = "never") -> Pair:
    """Callaway & Sant'Anna without covariates: group-time effects after the start, or their mean by persons."""
    frame = data.castle()
    named = frame.assign(g=frame["g"].map(lambda g: str(g) if g else "never"))
    levels = {one: sorted(named[one].unique().tolist()) for one in ("year", "g")}
    table = data.table(named[["year", "g", "l_homicide"]].assign(sid=frame["sid"]), levels, person="sid")
    ours = dpc.did(table, time="year", outcome="l_homicide", cohort="g", control=control, loss=EXACT)
    cells = {(int(one.cohort), int(one.time)): one.estimate for one in ours.by_cohort}
    if package == "csdid":
        from csdid.att_gt import ATTgt

        chosen = ["nevertreated" if control == "never" else "notyettreated"]
        fit = ATTgt(
            yname="l_homicide", gname="g", idname="sid", tname="year", xformla="l_homicide~1", data=frame.copy(),
            control_group=chosen,
        ).fit(est_method="reg")  # fmt: skip
        groups = zip(fit.results["group"], fit.results["year"], fit.results["att"], strict=True)
        theirs = {(int(g), int(t)): float(np.ravel(att)[0]) for g, t, att in groups if t >= g}
    else:
        from differences import ATTgt as Differences

        columns = frame.assign(cohort=frame["g"].where(frame["g"] > 0)).drop(columns="g").set_index(["sid", "year"])
        chosen = "never_treated" if control == "never" else "not_yet_treated"
        fit = Differences(data=columns, cohort_column="cohort").fit(
            formula="l_homicide", control_group=chosen, est_method="reg", progress_bar=False
        )
        values = fit.to_pandas().iloc[:, 0]
        theirs = {(int(g), int(t)): float(v) for (g, _, t), v in values.items() if t >= g}
    keys = sorted(theirs)
    if what == "cells":
        return [cells[key] for key in keys], [theirs[key] for key in keys]
    persons = frame.groupby("g")["sid"].nunique()
    weights = np.array([persons[g] for g, _ in keys], dtype=float)
    return ours.att.estimate, float(np.average([theirs[key] for key in keys], weights=weights))


def _simplex(name: str) -> Pair:
    """Weights on the simplex that fit the outcome before the start: the mean effect after it."""
    from pysyncon import Synth

    panel, past, future, own, observed = data.panel(name)
    ours = dpc.synthetic_control(panel, loss=EXACT)
    middle, best = past.mean(axis=0), (math.inf, np.zeros(len(past)))
    size = float(np.abs(past - middle).max())
    columns, target = (past - middle).T / size, (own - middle) / size
    for scale in 10.0 ** np.arange(-1, 5):  # its solver stops at absolute tolerances: the best of some scales
        weights, _ = Synth().w_optimize(np.eye(len(own)), columns * scale, target * scale)
        weights = np.asarray(weights)
        loss = float(np.sum((own - past.T @ weights) ** 2)) if abs(weights.sum() - 1) < 1e-8 else math.inf
        best = min(best, (loss, weights), key=lambda one: one[0])
    return ours.att, float(np.mean(observed - future.T @ best[1]))


def _partial(x: str, y: str, given: list[str]) -> Pair:
    """Fisher's z of a partial correlation: the statistic, from causal-learn's p-value."""
    from causallearn.utils.cit import CIT
    from scipy.stats import norm

    frame, *_ = data.instruments("card")
    names = [x, y, *given]
    test = dpc.moments(data.table(frame), names, loss=EXACT).ci_test(x, y, given=given)
    theirs = CIT(frame[names].to_numpy(dtype=float), "fisherz")(0, 1, list(range(2, len(names))))
    return norm.isf(test.pvalue / 2), norm.isf(theirs / 2)


def _skeleton(name: str) -> Pair:
    """Which columns PC joins by Fisher's z at level 0.01; how it directs edges that conflict is not one rule."""
    from causallearn.search.ConstraintBased.PC import pc

    frame, names = data.graph(name)
    found = dpc.moments(data.table(frame[names]), names, loss=EXACT).discover(alpha=0.01, search="pc").graph
    ours = {frozenset(edge[:2]) for edge in found.to_networkx().edges()}
    values = frame[names].to_numpy(dtype=float)
    theirs = pc(values, alpha=0.01, indep_test="fisherz", show_progress=False).G.graph
    pairs = [(i, j) for i in range(len(names)) for j in range(i)]
    joined = [bool(theirs[i, j] or theirs[j, i]) for i, j in pairs]
    return [frozenset((names[i], names[j])) in ours for i, j in pairs], joined


COMPARISONS = (
    *(Comparison(f"least squares: {words}", book, "statsmodels", lambda n=name, w=what: _lines(n, w))
      for name, book in (("lalonde", "LaLonde, trial"), ("card", "Card, schooling"), ("mroz", "Mroz, hours"),
                         ("engel", "Engel, food"), ("stackloss", "stack loss"))
      for what, words in (("slopes", "slopes"), ("errors", "standard errors"))),
    *(Comparison("least squares: White's standard errors", book, "statsmodels", lambda n=name: _lines(n, "HC1"))
      for name, book in (("lalonde", "LaLonde, trial"), ("card", "Card, schooling"))),
    *(Comparison(f"two-stage least squares: {what}", book, "linearmodels", lambda n=name, w=what: _instruments(n, w))
      for name, book in (("card", "Card, schooling"), ("mroz", "Mroz, wages")) for what in ("slopes", "errors")),
    Comparison("mediation: direct and indirect effect", "Card, schooling", "statsmodels", _mediated),
    *(Comparison("difference of means, standard error", book, "statsmodels", lambda n=name: _effect(n, "means"))
      for name, book in (("lalonde", "LaLonde, trial"), ("thornton", "Thornton, HIV results"), ("nhefs", "NHEFS"))),
    *(Comparison("effect standardised over strata", book, "statsmodels", lambda n=name: _effect(n, "strata"))
      for name, book in (("lalonde", "LaLonde, trial"), ("nhefs", "NHEFS"))),
    *(Comparison(f"jump at a cutoff, bandwidth {width}", "Senate elections, whole points", "rdrobust",
                 lambda w=width: _jump("senate", w)) for width in (10, 20, 40)),
    *(Comparison(f"jump at a cutoff, bandwidth {width}", "House elections, whole points", "rdrobust",
                 lambda w=width: _jump("house", w)) for width in (10, 20)),
    *(Comparison(f"differences in differences: {words}, {control} controls", "castle laws, cohorts of 2 states or more",
                 package, lambda p=package, w=what, c=control: _staggered(p, w, c))
      for package in ("csdid", "differences") for control in ("never", "not-yet")
      for what, words in (("cells", "group-time effects"), ("mean", "their mean"))),
    *(Comparison("synthetic control, mean effect", book, "pysyncon", lambda n=name: _simplex(n))
      for name, book in (("texas", "Texas prisons"), ("california", "California tobacco"), ("basque", "Basque Country"),
                         ("germany", "West Germany"))),
    Comparison("partial correlation, one given", "Card, schooling", "causal-learn",
               lambda: _partial("lwage", "nearc4", ["educ"])),
    Comparison("partial correlation, four given", "Card, schooling", "causal-learn",
               lambda: _partial("lwage", "nearc4", ["educ", "exper", "black", "south"])),
    *(Comparison("PC: the skeleton", book, "causal-learn", lambda n=name: _skeleton(n))
      for name, book in (("card", "Card, schooling"), ("mroz", "Mroz, wages"))),
)  # fmt: skip


def compared(report: Report) -> None:
    count = 0
    for one in COMPARISONS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                digits = one.digits()
        except (ImportError, DataAbsentError) as error:
            print(f"not compared: {one.what}, {one.book}: {error}")
            continue
        count += 1
        report.add(one.book, {"digits": math.floor(10 * digits) / 10}, method=one.package, reading=one.what,
                   note=version(one.package))  # fmt: skip
        words = f"{one.what}, {one.book}, {one.package}"
        report.target(f"{words}: {digits:.1f} digits, at least {DIGITS}", digits >= DIGITS)
    report.target(f"{count} comparisons, at least 20", count >= 20)


@benchmark("peers", code="dpcausal.api", runs=20)
def main(report: Report) -> None:
    compared(report)
    for task, book, ask in PRIVATE:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exact = ask(EXACT, 0)
                found = [ask(dpc.ApproxDP(1, 1e-6), seed) for seed in range(report.given.runs)]
        except (ImportError, DataAbsentError) as error:
            print(f"not asked: {task}, {book}: {error}")
            continue
        shown = [interval for _, interval in found if interval is not None]
        inside = sum(low <= exact[0] <= high for low, high in shown)
        report.add(book, {"shown": len(shown), "holds the exact answer": inside}, epsilon=1, delta=1e-6, reading=task,
                   runs=report.given.runs)  # fmt: skip
