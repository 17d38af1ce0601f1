"""The interquartile score of a test half released as values, in three ways; test-set privacy.

A score is log IQR(A) + log IQR(B), and one row moves all four of A, B, C, E: x, the residuals of y, y, the residuals
of x.  So whatever is released four times is charged four times, whatever twice twice.

* **Inverse sensitivity**: an exponential mechanism on each score, pure ε, by far the most accurate.
* **Smooth sensitivity**: Laplace noise scaled to a private smooth bound, on the margin alone or on each score.
* **Propose-test-release**: on each of the four log IQRs, as Kusner et al. (2016) have it; corrected, or as printed.

For the direction alone the flip distance (``holdout``) is better than all three.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpcausal.dependence import iqr_intervals
from dpcausal.dependence.iqr import IqrReach
from dpcausal.dependence.log_iqr import enough_steps, inverse_sensitivity, log_iqr_grid, score_steps
from dpcausal.dependence.log_iqr_smooth import LogIqrSteps, largest_bound, smooth_log_iqr, smooth_sensitivity
from dpcausal.direction.anm import Column, Interval, Residuals
from dpcausal.direction.holdout import halves, settle_share
from dpcausal.direction.route import Plan, Released, Route
from dpcausal.errors import LossError
from dpcausal.mechanisms.propose_test_release import propose_test_release, published_log_iqr
from dpcausal.mechanisms.selection import noisy_max
from dpcausal.mechanisms.smooth_sensitivity import smooth_laplace, smoothness
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity

FORWARD, BACKWARD = "score of first to second", "score of second to first"
NAMES = ("the first", "the second's residuals", "the second", "the first's residuals")

PROOFS = {
    "inverse-sensitivity": ("iqr-reach", "log-iqr-inverse-sensitivity", "noisy-max"),
    "smooth-sensitivity": ("iqr-reach", "log-iqr-smooth", "smooth-laplace"),
    "propose-test-release": ("iqr-reach", "iqr-interval-distance", "log-iqr-proposal", "propose-test-release"),
}
"""The claims that each method rests on."""


def score_columns(rest: Residuals) -> tuple[tuple[Column, Interval], ...]:
    """Return A, B and C, E with their public ranges: the forward score's columns, then the backward score's."""
    return (
        (rest.x, rest.range_x),
        (rest.left_y, rest.range_left_y),
        (rest.y, rest.range_y),
        (rest.left_x, rest.range_left_x),
    )


def quartered(loss: ApproxDP) -> ApproxDP:
    """Return a quarter of ε and of δ: four such releases sum to the loss exactly.

    No composition theorem gives four releases more: by the optimal one (Kairouz, Oh & Viswanath 2015) four ε-DP
    releases need at least a δ of (e^{4ε} − e^{ε′})/(1 + e^ε)⁴ to be within any ε′ < 4ε.
    """
    return ApproxDP(loss.exact_epsilon / 4, loss.exact_delta / 4)


def by_inverse_sensitivity(rest: Residuals, allotment: Allotment, loss: PureDP) -> Released:
    """Return both scores, each by noisy max over a public grid at ε/2; claim ``log-iqr-inverse-sensitivity``.

    The count of records is of both columns at once: two releases at ε/2, not four at ε/4.
    """
    part = loss.part(Fraction(1, 2))
    released = []
    for label, pair in ((FORWARD, score_columns(rest)[:2]), (BACKWARD, score_columns(rest)[2:])):
        (_, (lower, upper)), (_, second) = pair
        grid = log_iqr_grid(lower, upper, rest.m, second)
        reaches = [IqrReach(values, *interval) for values, interval in pair]
        steps = score_steps(reaches, grid, enough_steps(part.epsilon, len(grid)))
        chosen = noisy_max(Query(-steps, inverse_sensitivity(Unit.TEST_ROW), label), allotment, part)
        released.append(float(grid[chosen]))
    forward, backward = released
    return Released(backward - forward, "score", None, (forward, backward))


def by_smooth_sensitivity(rest: Residuals, allotment: Allotment, loss: ApproxDP, both: bool) -> Released:
    """Return the margin by one draw at the whole loss, or both scores at half of it; claim ``log-iqr-smooth``.

    How sure the margin's sign is depends on the scale of its noise, which is private: no probability is told.
    """
    steps = [LogIqrSteps(values, *interval) for values, interval in score_columns(rest)]
    part = ApproxDP(loss.exact_epsilon / 2, loss.exact_delta / 2) if both else loss
    beta = smoothness(part).beta

    def released(label: str, columns: list[LogIqrSteps], signs: tuple[int, ...]) -> float:
        answer = smooth_log_iqr(columns, signs, beta)
        query = Query(answer, smooth_sensitivity(beta, Unit.TEST_ROW), label)
        return smooth_laplace(query, allotment, part, largest=largest_bound(columns))

    if not both:
        return Released(released("margin", steps, (-1, -1, 1, 1)), "score", None)
    forward, backward = released(FORWARD, steps[:2], (1, 1)), released(BACKWARD, steps[2:], (1, 1))
    return Released(backward - forward, "score", None, (forward, backward))


def by_propose_test_release(rest: Residuals, allotment: Allotment, loss: ApproxDP) -> Released:
    """Return the sums of four log IQRs at a quarter of the loss each, or no answer if any is ⊥.

    Each runs at (ε/4, δ/4), with noise Lap(8/ε) on its two tests and its value; claim ``propose-test-release``.
    """
    claim = iqr_intervals.proposal_sensitivity(Unit.TEST_ROW)
    return _summed([
        propose_test_release(
            Query(iqr_intervals.proposal(IqrReach(values, *interval)), claim, f"log IQR of {name}"),
            allotment,
            quartered(loss),
        )
        for name, (values, interval) in zip(NAMES, score_columns(rest), strict=True)
    ])  # fmt: skip


def as_printed(rest: Residuals, allotment: Allotment, loss: ApproxDP) -> Released:
    """Return the sums of four log IQRs from propose-test-release as printed, or no answer if any is ⊥.

    The paper counts (9ε, 3δ) for the four; so each runs at ε/9 and δ/3 of the loss.  (One row moves all four:
    (12ε, 4δ), were the algorithm itself right.)  *Source*: Kusner et al. (2016), section 4.3 and appendix.
    """
    claimed = Sensitivity(1, Norm.LINF, Relation.REPLACE_ONE, "iqr-published-unproven", Unit.TEST_ROW)
    return _summed([
        published_log_iqr(
            Query(
                iqr_intervals.proposal(IqrReach(values, *interval), iqr_intervals.PUBLISHED), claimed,
                f"log IQR of {name}",
            ),
            allotment,
            quartered(loss),
            epsilon=loss.epsilon / 9,
            delta=loss.delta / 3,
        )
        for name, (values, interval) in zip(NAMES, score_columns(rest), strict=True)
    ])  # fmt: skip


def _summed(values: list[float | None]) -> Released:
    a, b, c, e = values
    if a is None or b is None or c is None or e is None:
        return Released(None, "score", None)
    return Released((c + e) - (a + b), "score", None, (a + b, c + e))


def _release(x: Column, y: Column, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    rest, loss = halves(x, y, plan, generator), plan.spent
    if isinstance(loss, PureDP):
        return by_inverse_sensitivity(rest, allotment, loss)
    if not isinstance(loss, ApproxDP):
        raise LossError("this release is paid for in PureDP or ApproxDP")
    if plan.method == "smooth-sensitivity":
        return by_smooth_sensitivity(rest, allotment, loss, plan.release_scores)
    release = as_printed if plan.calibration == "published" else by_propose_test_release
    return release(rest, allotment, loss)


def _settle_smooth(plan: Plan) -> Plan:
    loss = plan.spent
    if isinstance(loss, ApproxDP):  # refused here if it is too small, before anything is spent
        smoothness(ApproxDP(loss.exact_epsilon / 2, loss.exact_delta / 2))
    return settle_share(plan)


def _with_delta(loss: Loss) -> tuple[Loss, str]:
    if not (isinstance(loss, ApproxDP) and loss.exact_delta > 0):
        raise LossError(
            "smooth sensitivity and propose-test-release are paid for in ApproxDP with delta above 0, one answer a call"
        )
    return loss, ""


def _smooth(loss: Loss) -> tuple[Loss, str]:
    return _with_delta(loss)[0], "the scale of the noise depends on the data and is not told"


def _printed(loss: Loss) -> tuple[Loss, str]:
    return _with_delta(loss)[0], "published algorithm without a valid proof"


SHARE = frozenset({"training_share"})

_INVERSE = Route(
    method="inverse-sensitivity",
    protect="test",
    scores=("iqr",),
    pay=lambda loss: pure_part(loss, "inverse sensitivity"),
    proofs=lambda plan: PROOFS[plan.method],
    release=_release,
    settle=settle_share,
    takes=SHARE,
    gives_scores="always",
    gives_probability=lambda plan: False,
)
_TESTED = replace(_INVERSE, method="propose-test-release", pay=_with_delta)

ROUTES = (
    _INVERSE,
    replace(_INVERSE, method="smooth-sensitivity", pay=_smooth, settle=_settle_smooth, gives_scores="if asked"),
    _TESTED,
    replace(
        _TESTED, pay=_printed, proofs=lambda plan: (), calibration="published", unproven="the interquartile algorithm"
    ),
)
