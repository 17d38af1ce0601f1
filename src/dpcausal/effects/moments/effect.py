"""The slope of a treatment as an effect, and how far its arms differ, read off noisy moments."""

import math

from dpcausal.effects.moments.redundant import redundant_note, without_redundant
from dpcausal.effects.moments.regression import LEAST_OF_A_LINE, Terms, regress
from dpcausal.effects.moments.released import ReleasedMoments
from dpcausal.effects.result import Balance, Effect

WEIGHTED = (
    "the estimate is {}, in a linear model. Where the effect differs, records whose treatment varies more, given the "
    "adjustment set, weigh more: it is the average effect only if it is the same for all or the treatment varies alike"
)
ONE_UNIT, OF_ARMS = "per unit of the treatment", "treated versus untreated"


def effect_of_line(
    release: ReleasedMoments, treatment: str, outcome: str, adjust: tuple[str, ...], terms: Terms,
    arms: tuple[str, str] | None = None,
) -> Effect:  # fmt: skip
    """Return the slope of a treatment; ``arms`` are its control and treated level where the release has only numbers.
    """
    whole = release.among((outcome, treatment, *adjust))
    independent, gone = without_redundant(whole, 2, LEAST_OF_A_LINE)
    held = tuple(name for name in adjust if name not in gone)
    fit = regress(independent if gone else release, outcome, (treatment, *held), terms)
    slope = fit[treatment]
    arms, event = arms or release.counted(treatment), release.counted(outcome)
    weighted = WEIGHTED.format(OF_ARMS if arms else ONE_UNIT)
    error, noise = (one if math.isfinite(one) else None for one in (slope.standard_error, slope.noise_error))
    return Effect(
        treatment=treatment, outcome=outcome, estimand="slope",
        treated=arms[1] if arms else "one more", control=arms[0] if arms else "as it is",
        event=event[1] if event else None,
        cluster=fit.cluster, clusters=fit.clusters, adjusted_for=adjust,
        estimate=slope.estimate, interval=slope.interval, interval_reason=fit.interval_reason,
        coverage=terms.coverage, standard_error=error, noise_error=noise, signal_to_noise=fit.signal_to_noise,
        robustness_value=slope.robustness_value, robustness_value_limit=slope.robustness_value_limit,
        notes=(weighted, *redundant_note(gone), *((fit.assumed,) if fit.assumed else ())), method="ols",
        n=release.n, guarantee=release.guarantee,
    )  # fmt: skip


def balance_of(moments: ReleasedMoments) -> tuple[Balance, ...]:
    """Return how far the arms differ in each column, read off moments of outcome, treatment (0 or 1) and others."""
    _, arm, *others = moments.names
    treats, rows = moments.mean(1), []
    for name in (one for one in others if one not in moments.references):
        slope = regress(moments, name, (arm,), Terms(None, 0.95))[arm]
        error = slope.standard_error
        deep = math.sqrt(max(moments.residual(name, []), 1e-300))
        mean = moments.mean(moments.names.index(name))
        rows.append(
            Balance(name, mean + (1 - treats) * slope.estimate, mean - treats * slope.estimate, slope.estimate / deep,
                    slope.noise_error / deep, error / deep if math.isfinite(error) else None)
        )  # fmt: skip
    return tuple(rows)
