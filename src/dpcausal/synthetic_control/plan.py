"""What a synthetic control will cost, how it will run, whether it can work: from public numbers, before spending."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpcausal.data.panel import Panel
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError
from dpcausal.mechanisms import objective_perturbation as objective
from dpcausal.mechanisms.additive import gaussian_scale
from dpcausal.privacy.call import check_consent, check_large
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.noise import LARGEST_BALL
from dpcausal.synthetic_control import factor, matched, perturbation, placebo
from dpcausal.synthetic_control.budget import METHODS, Base, currency_of, method_of, part
from dpcausal.synthetic_control.forecast import DonorFree, donor_free
from dpcausal.synthetic_control.matched import Matching, matching
from dpcausal.synthetic_control.rows import GRID, to_scale

PLACEBO = ("matched", "factor")

INTERVAL, PLACEBO_TEST = Fraction(3, 20), Fraction(3, 20)
"""Shares of the budget for the interval and the placebo test, where they can say anything."""

MOST_INTERVAL_NOISE = 0.5
"""No interval where noise alone is expected to make up more of its squared half width, against the cut's."""

MOST_NOISE = 0.5
"""A panel is refused where the noise in the mean effect is expected to pass this share of the own forecast's error."""

MOST_COUNT_NOISE = 1 / 8
"""No placebo test where the noise on its count passes this share of the donors."""


@dataclass(frozen=True)
class Plan:
    """A call after its public arguments were checked; one target.

    Attributes
    ----------
    target : object
        Its name.
    method, calibration : str
    spent : Loss
        What the call costs, all targets together.
    base : PureDP, ZCDP or NoPrivacy
        What this target's releases share, in the currency of the method.
    path, interval, pvalue : Fraction
        Their shares of ``base``; 0 for what is not released.
    interval_reason, pvalue_reason : str
        Why not; empty if it is.
    start, after, donors, periods : int
        T0, m, n, T.
    free : DonorFree
        The forecast from the target's own past.
    by : Matching
        Constants of matching.
    att_noise, path_noise : float or None
        Expected standard deviation of the noise in the mean effect and in each period, in the outcome's unit; ``None``
        where no such forecast is made.
    noise_ratio : float or None
        ``att_noise`` over the error of the donor-free forecast.
    penalty : float
        λ of the weighted methods, M of the corrected objective perturbation.
    note : str
    unproven : bool
    coverage : float
    """

    target: Any
    method: str
    calibration: str
    spent: Loss
    base: Base
    path: Fraction
    interval: Fraction
    pvalue: Fraction
    interval_reason: str
    pvalue_reason: str
    start: int
    after: int
    donors: int
    periods: int
    free: DonorFree
    by: Matching
    att_noise: float | None
    path_noise: float | None
    noise_ratio: float | None
    penalty: float
    note: str
    unproven: bool
    coverage: float
    unit: str = field(default="")

    @property
    def proofs(self) -> tuple[str, ...]:
        """The claims that the answer rests on."""
        if isinstance(self.spent, NoPrivacy) or self.unproven:
            return ()
        noise = ("l2-ball", "geometric") if isinstance(self.base, PureDP) else ("gaussian",)
        if self.method == "objective-perturbation":
            return (*perturbation.PROOFS[self.method], "l2-ball")
        if self.method == "output-perturbation":
            is_published = self.calibration == "published"
            steps = ("ridge-weights", "panel-rows") if is_published else perturbation.PROOFS[self.method]
            return (*steps, noise[0])
        used = matched.PROOFS if self.method == "matched" else factor.PROOFS
        extra = [claim for claim, share in zip(placebo.PROOFS, (self.interval, self.pvalue), strict=True) if share]
        return (*used, *extra, *noise[: 2 if extra else 1])

    @property
    def verdict(self) -> str:
        """Whether the panel is large enough for the budget, in a sentence."""
        if self.noise_ratio is None:
            return "No forecast of the noise is made for this method."
        size = f"the noise in the mean effect is expected to be {self.noise_ratio:.2g} times"
        yard = f"the error of the target's own {self.free.rule} forecast"
        if self.noise_ratio > MOST_NOISE:
            return f"Too small: {size} {yard}, more than {MOST_NOISE:g}; the donors would add little but noise."
        return f"Feasible: {size} {yard}."

    def summary(self) -> str:
        """Return the plan in sentences."""
        n, T0, m = self.donors, self.start, self.after
        lines = [
            f"{self.target}: {n} donors, {T0} periods before and {m} after the start; method {self.method}.",
            f"Cost {self.spent}.",
            f"Without any donor: the {self.free.rule} forecast, which erred by {self.free.error * self.scale:.4g} "
            "on the target's own past.  The answer leans on it as far as the noise hides the donors.",
        ]
        if self.att_noise is not None and self.path_noise is not None:
            lines.append(
                f"Expected noise: {self.att_noise:.4g} in the mean effect, {self.path_noise:.4g} in each period."
            )
        lines.append(self.verdict)
        lines += [f"No interval: {self.interval_reason}."] if self.interval_reason else [
            "An interval will be tried; it may come out as None, its share is spent either way."
        ]
        lines += [f"No placebo test: {self.pvalue_reason}."] if self.pvalue_reason else ["With a placebo test."]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    @property
    def scale(self) -> float:
        """Half the width of the bounds: what 1 on the scale [−1, 1] is in the outcome's unit."""
        return self._scale

    _scale: float = 1.0


def checked(
    panel: Panel, targets: tuple[Any, ...], loss: Loss, method: str, calibration: str, kernel_width: float | None,
    cut: float | None, penalty: float | None, projection: str, coverage: float, inference: bool, force: bool,
    accept_unproven: bool, accept_large_epsilon: bool,
) -> list[Plan]:  # fmt: skip
    """Check every public argument and return a plan for each target.  Arguments as in ``synthetic_control``."""
    _one_of("method", method, METHODS)
    _one_of("calibration", calibration, ("corrected", "published"))
    _one_of("projection", projection, tuple(perturbation.PROJECTIONS))
    for name, value in (("kernel_width", kernel_width), ("cut", cut), ("penalty", penalty)):
        if value is not None and not (_number(value) and 1e-9 < value < 1e12):
            raise ParameterError(f"{name} must be a number above 1e-9 and below 1e12")
    if not (_number(coverage) and placebo.LEAST_COVERAGE <= coverage <= 0.9999):
        raise ParameterError("coverage must be a number between 5/6 and 0.9999")
    for name, value in (("inference", inference), ("force", force)):
        if not isinstance(value, bool):
            raise ParameterError(f"{name} must be True or False")
    check_large(loss, accept_large_epsilon)
    before = min(panel.start(target) for target in targets)
    periods = len(panel.times)
    chosen = method_of(panel, loss, method, calibration, periods)
    spent, base, note = currency_of(chosen, calibration, loss, periods - before)
    unproven = chosen == "objective-perturbation" and calibration == "published"
    if unproven:
        check_consent(accept_unproven, "the objective perturbation of the synthetic control")
    # The factor model is released once for all targets; every other release is one target's.
    each = part(base, Fraction(1, len(targets)))
    try:
        quadratic: dict[Any, float] = {}
        if chosen == "objective-perturbation" and not unproven:
            for target in targets:
                quadratic[target] = float(penalty or 2 * panel.start(target))
                if isinstance(spent, ApproxDP):
                    half = ApproxDP(spent.exact_epsilon / (2 * len(targets)), spent.exact_delta / len(targets))
                    quadratic[target] = objective.calibrate(panel.n, panel.start(target), half, penalty).quadratic
        plans = [
            _plan(panel, target, chosen, calibration, spent, base if chosen == "factor" else each, len(targets),
                  kernel_width, cut, quadratic.get(target, penalty), coverage, inference, note, unproven)
            for target in targets
        ]  # fmt: skip
    except FenceError:
        plans = []
    if not plans:
        raise LossError("this budget is too small: the noise would pass the largest scale that is drawn")
    for plan in plans:
        if plan.noise_ratio is not None and plan.noise_ratio > MOST_NOISE and not force:
            raise InfeasibleError(f"{plan.target}: {plan.verdict} To run it all the same say force=True.")
    return plans


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if not (isinstance(value, str) and value in allowed):
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}")


def _plan(
    panel: Panel, target: Any, method: str, calibration: str, spent: Loss, base: Base, targets: int,
    kernel_width: float | None, cut: float | None, penalty: float | None, coverage: float, inference: bool, note: str,
    unproven: bool,
) -> Plan:  # fmt: skip
    half = panel.bounds.width / 2
    start, periods, n = panel.start(target), len(panel.times), panel.n
    after = periods - start
    past = to_scale(panel.series(target)[:start], panel.bounds)
    free = donor_free(past, after)
    covariates = panel.target_covariates(target)
    width, length = [None if value is None else min(value / half, 2.0) for value in (kernel_width, cut)]
    by = matching(past, after, covariates, free, width, length)
    shares = {"path": Fraction(1), "interval": Fraction(0), "pvalue": Fraction(0)}
    reasons = {"interval": f"the method {method} has no placebos", "pvalue": f"the method {method} has no placebos"}
    if method in PLACEBO and not inference:
        reasons = dict.fromkeys(reasons, "none was asked for")
    elif method in PLACEBO:
        reasons = _reasons(n, method, base, targets, coverage)
        for name, share in (("interval", INTERVAL), ("pvalue", PLACEBO_TEST)):
            if not reasons[name]:
                shares[name], shares["path"] = share, shares["path"] - share
    if method in perturbation.PROOFS and not isinstance(base, NoPrivacy):
        weight_penalty = float(penalty or start) if method == "output-perturbation" or unproven else 2.0 * start
        perturbation.check_noise(
            past, after, n, weight_penalty, calibration == "published", part(base, Fraction(1, 2))  # type: ignore[arg-type]
        )
    noise = _expected_noise(method, calibration, n, periods, free, by, part(base, shares["path"]))
    att = None if noise is None else noise / math.sqrt(after)
    return Plan(
        target=target, method=method, calibration=calibration, spent=spent, base=base, path=shares["path"],
        interval=shares["interval"], pvalue=shares["pvalue"], interval_reason=reasons["interval"],
        pvalue_reason=reasons["pvalue"], start=start, after=after, donors=n, periods=periods, free=free, by=by,
        att_noise=None if att is None else att * half, path_noise=None if noise is None else noise * half,
        noise_ratio=None if att is None else att / free.error, penalty=float(penalty or start), note=note,
        unproven=unproven, coverage=coverage, _scale=half,
    )  # fmt: skip


def placebo_loss(plan_base: Base, method: str, share: Fraction, targets: int) -> Base:
    """Return the loss of one target's interval or placebo test."""
    return part(plan_base, share / targets if method == "factor" else share)


def _reasons(n: int, method: str, base: Base, targets: int, coverage: float) -> dict[str, str]:
    effective = n if method == "factor" else n / 2  # a matched donor counts by half, as a guess
    interval, test = [
        placebo.noise_deviation(placebo_loss(base, method, share, targets)) for share in (INTERVAL, PLACEBO_TEST)
    ]
    widened = placebo.factor_of(coverage) ** 2 * placebo.SAFETY * interval / effective
    reasons = {"interval": "", "pvalue": ""}
    if widened > MOST_INTERVAL_NOISE:
        reasons["interval"] = (
            f"with {n} donors at this budget the noise alone is expected to make up {widened:.2g} of the squared half "
            f"width that still says something, more than {MOST_INTERVAL_NOISE:g}"
        )
    if test > MOST_COUNT_NOISE * n:
        reasons["pvalue"] = (
            f"the noise on a count of {n} donors has a standard deviation of {test:.3g}, more than an eighth of them"
        )
    return reasons


def _expected_noise(
    method: str, calibration: str, n: int, periods: int, free: DonorFree, by: Matching, base: Base
) -> float | None:
    """Return the noise expected in each period, on the scale [−1, 1]."""
    if isinstance(base, NoPrivacy) or calibration == "published":
        return None
    if method == "matched" and isinstance(base, PureDP) and by.after + 1 > LARGEST_BALL:
        raise LossError(f"pure noise is drawn for at most {LARGEST_BALL} numbers, and here there are {by.after + 1}")
    if method == "matched":  # half of the donors' weight, and no help from the donor-free forecast
        return matched.noise_deviation(by, base) / (matched.FULL * GRID) / (n / 2)
    if method == "factor" and isinstance(base, ZCDP):  # rows as long as the target's own changes, twice over
        factor.check_scales(periods, base)
        radius = 2 * free.last_error * math.sqrt(periods)
        return gaussian_scale(2 * radius, ZCDP(base.exact_rho * factor.SHARES["mean"])) / n
    return None


def plan_synthetic_control(
    panel: Panel, *, loss: Loss, target: Any = None, method: str = "auto", coverage: float = 0.9
) -> Plan:
    """Say what a synthetic control would cost and whether it can work, from public numbers: nothing is spent or read.

    Parameters
    ----------
    panel : Panel
    loss : Loss
        As for ``synthetic_control``.
    target : name, optional
        Of several targets, the one.
    method, coverage
        As for ``synthetic_control``.

    Returns
    -------
    Plan
        ``summary()`` prints it; ``noise_ratio`` above 0.5 is refused unless forced.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> made = dpc.simulate.factor_panel(1000, seed=1)
    >>> panel = dpc.Panel.from_arrays(made.donors, made.target, start=made.start, bounds=made.bounds,
    ...                               ledger=dpc.Ledger.in_memory(dpc.PureDP(1)))
    >>> print(dpc.plan_synthetic_control(panel, loss=dpc.PureDP(1)).verdict)
    Feasible: the noise in the mean effect is expected to be 0.053 times the error of the target's own mean forecast.
    """
    names = named(panel, target)
    if len(names) != 1:
        raise ParameterError("name one target")
    return checked(
        panel, names, loss, method, "corrected", None, None, None, "simplex", coverage, True, True, False, True
    )[0]


def named(panel: Panel, target: Any) -> tuple[Any, ...]:
    """Return the one target that was named, or all."""
    if not isinstance(panel, Panel):
        raise ParameterError("panel must be a dpcausal Panel")
    if target is None:
        return panel.targets
    if target not in panel.targets:
        raise ParameterError("target must be one of the panel's targets")
    return (target,)


