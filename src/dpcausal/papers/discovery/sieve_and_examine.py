"""Formulas of sieve-and-examine: subsample size, composition, error bounds, as published and corrected."""

import math

from dpcausal.errors import MissingDependencyError


def subsampled_epsilon(ratio: float, epsilon: float) -> float:
    """Return ε′ = log(1 + (n/m)(e^ε − 1)): what a mechanism may spend on m of n rows for ε on all.

    *Source*: Balle, Barthe & Gaboardi (2018), Theorem 9: sampling without replacement, replace-one.
    """
    return math.log1p(ratio * math.expm1(epsilon))


def optimal_subsample(n: int, epsilon: float) -> int:
    """Return the m in [n/20, n] that minimises √(n/m) / log(1 + (n/m)(e^(ε/2) − 1)): section 3.2.

    For statistics whose sensitivity is c/√m, as the paper claims for its tau.  For those of c/m, as proved here for T,
    the noise (n/m)/log(1 + (n/m)(e^(ε/2) − 1)) is least at m = n: x/log(1 + xc) grows with x.
    """
    growth = math.expm1(epsilon / 2)

    def noise(log_ratio: float) -> float:
        ratio = math.exp(log_ratio)
        return math.sqrt(ratio) / math.log1p(ratio * growth)

    low, high = 0.0, math.log(20.0)
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(80):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if noise(a) < noise(b) else (a, high)
    return max(round(n * math.exp(-(low + high) / 2)), -(-n // 20))


def advanced_composition(epsilon: float, rounds: int, delta: float) -> float:
    """Return √(2k log(1/δ)) ε + k ε (e^ε − 1) for k rounds of ε: Dwork & Roth (2014), Theorem 3.20."""
    return math.sqrt(2 * rounds * math.log(1 / delta)) * epsilon + rounds * epsilon * math.expm1(epsilon)


def moments_accountant(share: float, noise: float, tests: int, delta: float) -> float:
    """Return ε of that many Gaussian releases, each on a Poisson sample, by the Rényi accounting of dp-accounting."""
    try:
        from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
        from dp_accounting.rdp import RdpAccountant
    except ImportError:
        raise MissingDependencyError("dp-accounting", "accounting") from None
    accountant = RdpAccountant()
    accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(share, GaussianDpEvent(noise)), tests))
    return float(accountant.get_epsilon(delta))


def type_one_error(alpha: float, tweak: float, bound: float, sieve_epsilon: float) -> float:
    """Bound the chance that a sieve passes over a score at least T + α: e^(−x) − ¼ e^(−2x), x = ε′(α + t)/(6Δ).

    Theorem 4, for one query; Δ is the sensitivity of the score as the noise has it, ε′ the sieve's ε, t the tweak.
    """
    exponent = sieve_epsilon * (alpha + tweak) / (6 * bound)
    return math.exp(-exponent) - math.exp(-2 * exponent) / 4


def type_two_error(
    alpha: float, tweak: float, bound: float, sieve_epsilon: float, examine_epsilon: float, published: bool = False
) -> float:
    """Bound the probability that a score of at most T − α ≤ T − t passes both: Theorem 5, corrected, for α ≥ t.

    (e^(−ε′(α − t)/(6Δ)) − ¼ e^(−ε′(α − t)/(3Δ))) · ½ e^(−ε α/(2Δ)): the examination's noise is Lap(2Δ/ε), whose tail is
    the last factor.  ``published=True`` has the e^(−2εα/Δ) that is printed: four times the exponent, too small.
    """
    sieve = type_one_error(alpha - 2 * tweak, tweak, bound, sieve_epsilon)
    if published:
        return sieve * math.exp(-2 * examine_epsilon * alpha / bound)
    return sieve * math.exp(-examine_epsilon * alpha / (2 * bound)) / 2
