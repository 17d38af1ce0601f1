"""``synthetic_control``: what would have happened to a target without its treatment, from donors under a budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from dpcausal.data.panel import Panel
from dpcausal.errors import ParameterError
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ApproxDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.unheard import unheard
from dpcausal.report import Guarantee
from dpcausal.synthetic_control import factor, matched, perturbation, reference
from dpcausal.synthetic_control.budget import EXACT, part
from dpcausal.synthetic_control.placebo import Placebos, release_pvalue, release_spread
from dpcausal.synthetic_control.plan import Plan, checked, named, placebo_loss
from dpcausal.synthetic_control.result import SyntheticControl
from dpcausal.synthetic_control.rows import GRID, Integers, Reals, from_last, from_scale, on_grid, to_scale

PUBLIC = (
    "the number of donors", "the targets with their series, which are NOT protected", "the periods", "the bounds",
    "all arguments",
)  # fmt: skip

CUT_IN_DEVIATIONS = 4.0
"""The factor model's placebo residuals are cut at this many of the standard deviations that it implies for them."""

Method = Literal[
    "auto", "matched", "factor", "output-perturbation", "objective-perturbation", "simplex", "ridge", "robust"
]


@dataclass(frozen=True, eq=False, repr=False)
class Path:
    """A released path on the scale [−1, 1], and what its placebos need (*private*: ``placebos``)."""

    values: Reals
    noise: float | None
    weight: float | None = None
    loadings: Reals | None = None
    placebos: Placebos | None = None
    own: float = 0.0
    cut: float = 1.0
    total: float = 0.0
    total_noise: float = 0.0


def synthetic_control(
    panel: Panel,
    *,
    loss: Loss,
    target: Any = None,
    method: Method = "auto",
    calibration: Literal["corrected", "published"] = "corrected",
    kernel_width: float | None = None,
    cut: float | None = None,
    penalty: float | None = None,
    projection: Literal["simplex", "l1", "none"] = "simplex",
    coverage: float = 0.9,
    inference: bool = True,
    force: bool = False,
    accept_unproven: bool = False,
    accept_large_epsilon: bool = False,
) -> SyntheticControl:
    """Release what a target's outcome would have been without its treatment.

    Parameters
    ----------
    panel : Panel
        Its ledger pays.
    loss : Loss
        The most that the call may cost; no default.  ``PureDP``, ``ApproxDP`` or ``ZCDP``; with ``NoPrivacy()`` and
        a ledger without privacy the exact answer.
    target : name, optional
        Which of the panel's targets; needed if it has several.
    method : str
        ``"auto"``: by n, T and the budget ``"factor"`` (many donors; ZCDP or ApproxDP) or ``"matched"``; simplex
        weights without privacy.  ``"output-perturbation"``, ``"objective-perturbation"``: noisy ridge weights.
        ``"simplex"``, ``"ridge"``, ``"robust"``: without privacy only.
    calibration : str
        ``"published"``: the two perturbations with the paper's constants.  That of the weights by objective
        perturbation is not private and needs ``accept_unproven=True``.
    kernel_width, cut : float, optional
        Matched: h, by default the standard deviation of the target's own past; and the largest size of a donor's
        change in a period that counts, by default three errors of the last-value forecast on the target's past.  In
        the outcome's unit.  *Public*: never from donors.
    penalty : float, optional
        λ of the ridge, for entries in [−1, 1]; T0 by default, as in the paper.  For the corrected objective
        perturbation its M, by default from the budget.
    projection : str
        Where noisy weights are brought to: the ``"simplex"``, the ``"l1"`` ball, or ``"none"``.
    coverage : float
        Nominal coverage of the interval, 5/6 to .9999.
    inference : bool
        False: neither interval nor placebo test, the whole budget for the path.
    force : bool
        Run although public numbers show that the donors would add little but noise.
    accept_unproven, accept_large_epsilon : bool
        Consent to a published variant without proof; to ε above 20.

    Returns
    -------
    SyntheticControl
        With ``counterfactual``, ``effect``, ``att``, ``interval``, ``pvalue``, ``donor_free_forecast``.

    Raises
    ------
    ParameterError, LossError, UnprovenError
        From public arguments, before anything is spent.
    InfeasibleError
        Public numbers alone show that the answer would be noise; ``force=True`` runs it.
    BudgetExceededError
        The ledger refuses; nothing was spent or read.

    Notes
    -----
    *Guarantee*: the loss, when one donor's whole series is replaced (claims matched-sums, or row-radius, clipped-sum
    and clipped-products; placebo-spread, placebo-count).  The target's own series is not protected.
    *Source*: the task and the perturbed ridge are of Rho, Cummings & Misra (2023); ``matched`` and ``factor`` are this
    library's.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> made = dpc.simulate.factor_panel(1000, effect=0.3, seed=1)
    >>> panel = dpc.Panel.from_arrays(made.donors, made.target, start=made.start, bounds=made.bounds,
    ...                               ledger=dpc.Ledger.in_memory(dpc.PureDP(1)))
    >>> with dpc.simulated_noise(4):
    ...     answer = dpc.synthetic_control(panel, loss=dpc.PureDP(1))
    >>> answer.method, answer.interval[0] < 0.3 < answer.interval[1], answer.guarantee.loss
    ('matched', True, PureDP(1))
    """
    names = named(panel, target)
    if len(names) != 1:
        raise ParameterError("the panel has several targets: name one, or use synthetic_controls for all")
    return _answers(
        panel, names, loss, method, calibration, kernel_width, cut, penalty, projection, coverage, inference, force,
        accept_unproven, accept_large_epsilon,
    )[0]  # fmt: skip


def synthetic_controls(
    panel: Panel,
    *,
    loss: Loss,
    method: Method = "auto",
    coverage: float = 0.9,
    inference: bool = True,
    force: bool = False,
    accept_large_epsilon: bool = False,
) -> tuple[SyntheticControl, ...]:
    """Release a synthetic control for each of the panel's targets, whenever each was treated, under one budget.

    The factor model is released once and serves all; placebos, and every release of the other methods, share the
    budget equally.  Parameters, errors and guarantee as for ``synthetic_control``; the guarantee of each result is
    that of the whole call.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcausal as dpc
    >>> made = dpc.simulate.factor_panel(2000, seed=1)
    >>> targets = {"early": made.target, "late": made.target[::1]}
    >>> panel = dpc.Panel.from_arrays(made.donors, targets, start={"early": 10, "late": 11}, bounds=made.bounds,
    ...                               ledger=dpc.Ledger.in_memory(dpc.PureDP(2)))
    >>> with dpc.simulated_noise(4):
    ...     answers = dpc.synthetic_controls(panel, loss=dpc.PureDP(2))
    >>> [(answer.target, len(answer.effect)) for answer in answers]
    [('early', 3), ('late', 2)]
    """
    answers = _answers(
        panel, named(panel, None), loss, method, "corrected", None, None, None, "simplex", coverage, inference, force,
        False, accept_large_epsilon,
    )  # fmt: skip
    return tuple(answers)


def _answers(
    panel: Panel, names: tuple[Any, ...], loss: Loss, method: str, calibration: str, kernel_width: float | None,
    cut: float | None, penalty: float | None, projection: str, coverage: float, inference: bool, force: bool,
    accept_unproven: bool, accept_large_epsilon: bool,
) -> list[SyntheticControl]:  # fmt: skip
    plans = checked(
        panel, names, loss, method, calibration, kernel_width, cut, penalty, projection, coverage, inference, force,
        accept_unproven, accept_large_epsilon,
    )  # fmt: skip
    first = plans[0]
    allotment = panel.ledger.allot(
        first.spent,
        task="synthetic control",
        unit=Unit.DONOR,
        relation=Relation.REPLACE_ONE,
        detail={
            "targets": [str(name) for name in names],
            "method": first.method,
            "calibration": calibration,
            "donors": panel.n,
            "periods": first.periods,
            "inference": inference,
            "force": force,
        },
        unproven=first.unproven,
    )
    return unheard(lambda: _run(panel, plans, projection, penalty, allotment))


def _run(
    panel: Panel, plans: list[Plan], projection: str, penalty: float | None, allotment: Allotment
) -> list[SyntheticControl]:
    """Release a path for each plan, then its placebos: from here on nothing may fail for a reason in a value."""
    method, whole = plans[0].method, plans[0]
    scaled = to_scale(panel.donors(), panel.bounds)
    rows = on_grid(scaled)
    if method == "factor":
        before = min(plan.start for plan in plans)
        model = factor.release(rows, before, allotment, part(whole.base, whole.path))  # type: ignore[arg-type]
        z = from_last(rows, before)
        paths = [_by_factor(panel, plan, model, z, before) for plan in plans]
    elif method == "matched":
        covariates = panel.donor_covariates()
        paths = [_by_matching(panel, plan, rows, covariates, allotment) for plan in plans]
    else:
        paths = [_by_weights(panel, plan, scaled, projection, penalty, allotment) for plan in plans]
    return [_result(panel, plan, path, allotment, len(plans)) for plan, path in zip(plans, paths, strict=True)]


def _by_matching(panel: Panel, plan: Plan, rows: Integers, covariates: Reals, allotment: Allotment) -> Path:
    y = to_scale(panel.series(plan.target), panel.bounds)
    weights, changes = matched.weights_and_changes(rows, covariates, plan.by)
    released = matched.release(weights, changes, plan.by, plan.free, allotment, part(plan.base, plan.path))
    last = y[plan.start - 1]
    centre = float(released.change.mean())
    return Path(
        values=last + released.change,
        noise=released.noise,
        weight=released.weight,
        placebos=Placebos(from_last(rows, plan.start)[:, plan.start :].mean(axis=1) / GRID - centre, weights),
        own=float(np.mean(y[plan.start :]) - last) - centre,
        cut=plan.by.cut,
        total=released.weight,
        total_noise=released.weight_noise,
    )


def _by_factor(panel: Panel, plan: Plan, model: factor.FactorRelease, z: Integers, before: int) -> Path:
    y = to_scale(panel.series(plan.target), panel.bounds)
    own = y - y[before - 1]
    fitted = factor.forecaster(model, plan.start)
    change = fitted.change(own)
    donors = z / GRID
    residuals = (donors[:, plan.start :] - fitted.change(donors)).mean(axis=1)
    # Of the mean residual as the model has it, and of the mean future itself, whichever makes the larger cut.
    left = max(float(fitted.residual.mean()), factor.LEAST_VARIANCE / plan.after)
    whole = float(model.covariance[plan.start :, plan.start :].mean())
    variance = max(left, whole / 4)
    return Path(
        values=y[before - 1] + change,
        noise=None,
        loadings=fitted.loadings,
        placebos=Placebos(residuals, np.full(len(z), matched.FULL)),
        own=float((own[plan.start :] - change).mean()),
        cut=min(CUT_IN_DEVIATIONS * variance**0.5, 4.0),
        total=float(len(z)),
    )


def _by_weights(
    panel: Panel, plan: Plan, scaled: Reals, projection: str, penalty: float | None, allotment: Allotment
) -> Path:
    y = to_scale(panel.series(plan.target)[: plan.start], panel.bounds)
    X, Y = scaled[:, : plan.start], scaled[:, plan.start :]
    half = part(plan.base, Fraction(1, 2))
    if plan.calibration == "published":
        is_objective = plan.method == "objective-perturbation"
        first = _half_approx(plan) if is_objective and isinstance(plan.spent, ApproxDP) else half
        released = perturbation.release_published(X, Y, y, plan.penalty, is_objective, allotment, first, half)  # type: ignore[arg-type]
        return Path(released.path, None)
    if plan.method in EXACT:
        c, past = panel.donor_covariates(), np.concatenate([y, panel.target_covariates(plan.target)])
        joined = np.hstack([X, c])
        if plan.method == "simplex":
            return Path(Y.T @ reference.simplex_weights(joined, past), 0.0)
        fit = reference.ridge_path if plan.method == "ridge" else reference.robust_path
        return Path(fit(joined, Y, past, plan.penalty), 0.0)
    if plan.method == "objective-perturbation":
        first = plan.base if isinstance(plan.base, NoPrivacy) else _half_approx(plan)
        weights = perturbation.release_objective(X, y, penalty, projection, allotment, first)  # type: ignore[arg-type]
    else:
        weights = perturbation.release_weights(X, y, plan.penalty, projection, allotment, half)
    second = perturbation.release_path(weights, Y, allotment, half)
    return Path(second.path, None)


def _half_approx(plan: Plan) -> ApproxDP | PureDP:
    """Return what the weights cost of an (ε, δ) loss: half of this target's ε and all of its δ."""
    if not (isinstance(plan.spent, ApproxDP) and isinstance(plan.base, PureDP)):
        raise ParameterError("objective perturbation is paid for in ApproxDP")
    share = plan.base.exact_epsilon / plan.spent.exact_epsilon
    return ApproxDP(plan.base.exact_epsilon / 2, plan.spent.exact_delta * share)


def _result(panel: Panel, plan: Plan, path: Path, allotment: Allotment, targets: int) -> SyntheticControl:
    bounds, half = panel.bounds, panel.bounds.width / 2
    series = panel.series(plan.target)
    counterfactual = from_scale(path.values, bounds)
    observed = series[plan.start :]
    effect = observed - counterfactual
    interval, pvalue, interval_reason = None, None, plan.interval_reason
    if plan.interval and path.placebos is not None:
        share = placebo_loss(plan.base, plan.method, plan.interval, targets)
        reach = release_spread(
            path.placebos, path.cut, path.total, path.total_noise, plan.coverage, allotment, share
        )
        if reach is None:
            interval_reason = "it would be wider than where the placebo residuals are cut, so it would say nothing"
        else:
            interval = float(effect.mean() - reach * half), float(effect.mean() + reach * half)
    if plan.pvalue and path.placebos is not None:
        share = placebo_loss(plan.base, plan.method, plan.pvalue, targets)
        pvalue = release_pvalue(path.placebos, abs(path.own), path.total, allotment, share)
    constants = {"shares of the path": float(plan.path), "interval": float(plan.interval), "test": float(plan.pvalue)}
    if plan.method == "matched":
        constants |= {"kernel width": plan.by.kernel_width * half, "cut": plan.by.cut * half}
    elif plan.method != "factor":
        constants |= {"penalty": plan.penalty}
    free = from_scale(plan.free.path, bounds)
    caveats = [f"the series of {plan.target} is not protected: it is public and shows here", plan.note]
    for array in (counterfactual, effect, free):
        array.setflags(write=False)
    return SyntheticControl(
        target=plan.target,
        times=panel.times[plan.start :],
        counterfactual=counterfactual,
        effect=effect,
        att=float(effect.mean()),
        interval=interval,
        pvalue=pvalue,
        donor_free_forecast=free,
        donor_free_rule=plan.free.rule,
        observed=observed,
        past=series[: plan.start],
        past_times=panel.times[: plan.start],
        path_noise=None if path.noise is None else path.noise * half,
        donor_weight=path.weight,
        loadings=None if path.loadings is None else path.loadings * half,
        interval_reason=interval_reason,
        pvalue_reason=plan.pvalue_reason,
        coverage=plan.coverage,
        method=plan.method,
        calibration=plan.calibration,
        constants=constants,
        n=panel.n,
        guarantee=Guarantee.of(
            allotment,
            proofs=plan.proofs,
            caveats=tuple(filter(None, caveats)),
            public=PUBLIC,
        ),
    )
