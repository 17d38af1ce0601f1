"""HSIC and its root: values against 50-digit arithmetic, proved rounding, sensitivities against neighbours."""

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpcausal.errors import ParameterError
from dpcausal.papers.direction.anm_test_privacy import HSIC, HSIC_WIDER
from dpcausal.papers.statistics.hsic import (
    GAUSSIAN,
    hsic_residual_sensitivity,
    hsic_sensitivity,
    root_hsic_residual_sensitivity,
)
from dpcausal.statistics import laplacian_sums
from dpcausal.statistics.hsic import (
    LAPLACIAN,
    STEPS,
    hsic,
    permuted_root_hsic_sensitivity,
    root_hsic,
    root_hsic_sensitivity,
)

UNIT_BOX = {"range_x": (0.0, 1.0), "range_y": (0.0, 1.0)}
FAR = {"width_x": 1e-3, "width_y": 1e-3, **UNIT_BOX}
"""Widths at which 0, ½ and 1 are as good as orthogonal."""

DIGITS = Context(prec=50, Emin=-(10**7), Emax=10**7, traps=[])


def exact_kernel(kernel, codes, rate):
    """Return the kernel matrix in 50-digit decimals, as integers of 1e-45."""
    step = DIGITS.divide(Decimal(rate.numerator), Decimal(rate.denominator))
    matrix = np.empty((len(codes), len(codes)), dtype=object)
    known = {}
    for i, a in enumerate(codes):
        for j, b in enumerate(codes):
            gap = abs(int(a) - int(b))
            if gap not in known:
                distance = DIGITS.multiply(step, Decimal(gap))
                squared = DIGITS.divide(DIGITS.multiply(distance, distance), Decimal(2))
                exponent = distance if kernel is LAPLACIAN else squared
                known[gap] = int(DIGITS.multiply(DIGITS.exp(exponent.copy_negate()), Decimal(10) ** 45))
            matrix[i, j] = known[gap]
    return matrix


def exact_sums(kernel, x, y, x_rate, y_rate):
    K, L = exact_kernel(kernel, x, x_rate), exact_kernel(kernel, y, y_rate)
    k, l_ = K.sum(axis=1), L.sum(axis=1)
    scaled = ((K * L).sum(), 90), ((k * l_).sum(), 90), (k.sum(), 45), (l_.sum(), 45)
    return [Fraction(int(value), 10**power) for value, power in scaled]


def combined(sums, m):
    """trace(KHLH)/m² from the four sums."""
    pairs, rows, total_x, total_y = sums
    return (pairs - 2 * rows / m + total_x * total_y / m**2) / m**2


def by_matrices(x, y, kernel, width_x, width_y, **_):
    """The textbook formula with an m × m centring matrix."""

    def gram(v, w):
        gap = np.abs(v[:, None] - v[None, :]) / w
        return np.exp(-gap) if kernel is LAPLACIAN else np.exp(-(gap**2) / 2)

    m = len(x)
    H = np.eye(m) - 1 / m
    return np.trace(gram(x, width_x) @ H @ gram(y, width_y) @ H) / m**2


def places(rng, m, shape):
    """Records on the grid, in shapes that are hard for sorting, for ties or for floats."""
    if shape == "random":
        return rng.integers(0, STEPS + 1, (2, m))
    if shape == "ties":
        return rng.integers(0, 4, (2, m)) * (STEPS // 3)
    if shape == "ends":
        return rng.integers(0, 2, (2, m)) * STEPS
    if shape == "clustered":
        return STEPS // 2 + rng.integers(-3, 4, (2, m))
    if shape == "line":
        return np.tile(np.sort(rng.integers(0, STEPS + 1, m)), (2, 1))
    return np.stack([np.full(m, 12345), rng.integers(0, STEPS + 1, m)])  # a constant column


SHAPES = ("random", "ties", "ends", "clustered", "line", "constant")
RATES = {
    "tiny": Fraction(1, 10**300), "wide": Fraction(1, 2**32), "medium": Fraction(5, STEPS), "narrow": Fraction(1, 3),
    "huge": Fraction(10**300),
}  # fmt: skip
KERNELS = LAPLACIAN, GAUSSIAN


@pytest.mark.proves("hsic-laplacian-rounding")
@pytest.mark.proves("hsic-gaussian-rounding")
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_value_is_within_the_proved_error_of_fifty_digits(kernel, shape):
    rng = np.random.default_rng(1)
    for m, x_rate, y_rate in (
        (2, "medium", "wide"), (7, "narrow", "medium"), (24, "medium", "medium"), (18, "huge", "wide"),
        (21, "tiny", "narrow"),
    ):  # fmt: skip
        x, y = places(rng, m, shape)
        rates = RATES[x_rate], RATES[y_rate]
        computed = combined(kernel.sums(x, y, *rates), m)
        exact = combined(exact_sums(kernel, x, y, *rates), m)
        assert abs(computed - exact) <= kernel.rounding(m) - Fraction(1, 10**42)


@pytest.mark.proves("hsic-laplacian-rounding")
def test_each_laplacian_sum_is_within_its_part_of_the_proof():
    v = Fraction(1, 2**103)
    x, y = places(np.random.default_rng(2), 200, "random")
    rates = RATES["medium"], Fraction(3, STEPS)
    computed, exact = laplacian_sums.kernel_sums(x, y, *rates), exact_sums(LAPLACIAN, x, y, *rates)
    for got, want, share in zip(computed, exact, (45, 88, 44, 44), strict=True):
        assert abs(got / want - 1) <= share * 202 * v


@pytest.mark.proves("hsic-laplacian-rounding")
def test_pair_arithmetic_keeps_its_error_and_its_form():
    rng = np.random.default_rng(3)
    v, underflow = Fraction(1, 2**103), Fraction(1, 2**898)

    def pair():
        high = float(rng.uniform(0.5, 1) * 2.0 ** rng.integers(-1070, 40) if rng.random() < 0.5 else rng.uniform(0, 2))
        return high, float(rng.uniform(-1, 1)) * 2.0**-53 * high

    for _ in range(2000):
        (ah, al), (bh, bl) = pair(), pair()
        a, b = Fraction(ah) + Fraction(al), Fraction(bh) + Fraction(bl)
        for (h, t), want, absolute in (
            (laplacian_sums._pair_product(ah, al, bh, bl), a * b, underflow),
            (laplacian_sums._plus(ah, al, bh, bl), a + b, 0),
        ):
            assert abs(Fraction(h) + Fraction(t) - want) <= v * want + absolute
            assert h >= 0
            assert abs(Fraction(t)) <= Fraction(h) / 2**53


@pytest.mark.proves("hsic-laplacian-rounding")
@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
def test_a_decay_is_within_forty_units_of_the_exponential(rate):
    tables = laplacian_sums._exponential_tables(rate)
    step = DIGITS.divide(Decimal(rate.numerator), Decimal(rate.denominator))
    random = (2.0 ** np.random.default_rng(4).uniform(0, 30, 200)).astype(np.int64)
    for gap in (0, 1, 1023, 1024, 2**20, 2**29 + 12345, STEPS, *map(int, random)):
        h, t = laplacian_sums._pair_decay(gap, tables)
        exponent = DIGITS.multiply(step, Decimal(gap))
        want = Fraction(DIGITS.exp(exponent.copy_negate())) if exponent < 3000 else 0
        assert abs(Fraction(h) + Fraction(t) - want) <= 40 * Fraction(1, 2**103) * want + Fraction(1, 2**790)


@pytest.mark.proves("hsic-gaussian-rounding")
def test_the_exponential_of_numpy_is_as_accurate_as_the_proof_assumes():
    points = -np.random.default_rng(5).exponential(20, 3000)
    for point, value in zip(points, np.exp(points), strict=True):
        want = Fraction(DIGITS.exp(Decimal(float(point))))
        assert abs(Fraction(float(value)) - want) <= 16 * Fraction(1, 2**53) * want


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_scores_agree_with_the_centred_kernel_matrices(kernel):
    rng = np.random.default_rng(6)
    for m in (2, 5, 255, 256, 257, 700):
        x = rng.normal(size=m)
        y = 3 * x**2 + rng.normal(size=m)
        arguments = {"kernel": kernel, "width_x": 0.7, "width_y": 2.0, "range_x": (-6.0, 6.0), "range_y": (-10.0, 60.0)}
        want = by_matrices(x, y, **arguments)
        assert hsic(x, y, **arguments) == pytest.approx(want, abs=1e-8)  # the grid moves a record by 5e-10 of its range
        assert root_hsic(x, y, **arguments) == math.sqrt(hsic(x, y, **arguments))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_independent_constants_give_nothing_not_a_rounding_error(kernel):
    y = np.random.default_rng(7).random(3000)
    arguments = {"kernel": kernel, "width_x": 0.3, "width_y": 0.3, **UNIT_BOX}
    assert 0 <= hsic(np.full(3000, 0.3), y, **arguments) <= kernel.rounding(3000)
    x, y = np.repeat([0.1, 0.9], 50), np.tile([0.2, 0.7], 50)
    assert 0 <= root_hsic(x, y, **arguments) <= math.sqrt(kernel.rounding(100))


def test_the_same_records_in_any_order_give_the_same_bits():
    rng = np.random.default_rng(10)
    x, y = np.round(rng.random((2, 5000)), 2)
    order = rng.permutation(5000)
    arguments = {"width_x": 0.2, "width_y": 0.1, **UNIT_BOX}
    assert len({hsic(x, y, **arguments), hsic(x, y, **arguments), hsic(x[order], y[order], **arguments)}) == 1


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_unusable_values_go_to_public_places(kernel):
    arguments = {"kernel": kernel, "width_x": 0.2, "width_y": 0.2, "range_x": (0.0, 1.0), "range_y": (-1.0, 1.0)}
    x, y = np.array([np.nan, np.inf, -np.inf, 7.0, 0.25]), np.array([0.5, np.nan, -9e300, 9e300, -np.inf])
    cleaned = hsic([0.5, 1.0, 0.0, 1.0, 0.25], [0.5, 0.0, -1.0, 1.0, -1.0], **arguments)
    with np.errstate(all="raise"):
        assert hsic(x, y, **arguments) == cleaned


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_no_floating_point_warning_depends_on_the_records(kernel):
    with np.errstate(all="raise"):
        for width in (1e-300, 5e-324, 1.0, 1e300):
            hsic([0.0, 0.5, 1.0], [0.0, 1.0, 0.3], kernel=kernel, width_x=width, width_y=width, **UNIT_BOX)
        wide = {"width_x": 1.0, "width_y": 1.0, "range_x": (0.0, 1e10), "range_y": (-1e-5, 1e300)}
        hsic([5e-324, 1e-310, 1.0], [1e-300, 5e-324, 0.0], kernel=kernel, **wide)


@pytest.mark.proves("root-hsic")
def test_at_a_hundred_thousand_records_the_root_reaches_98_percent_of_its_bound():
    m = 100_000
    rows = np.full((m, 2), 0.5)
    rows[:3] = 0.0
    rows[3:532] = 1.0, 0.5
    rows[532:1061] = 0.5, 1.0
    moved = rows.copy()
    moved[0] = 1.0
    change = abs(root_hsic(*rows.T, **FAR) - root_hsic(*moved.T, **FAR))
    assert 0.99 * root_hsic_sensitivity(m).bound < change <= root_hsic_sensitivity(m).bound


@pytest.mark.proves("root-hsic")
def test_the_lemma_holds_over_gram_matrices():
    worst = 0.0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        z, best = rng.normal(size=(2, 3, 4)), -1.0
        for _ in range(6000):
            trial = z + rng.normal(size=z.shape) * rng.choice([0.01, 0.1, 1.0]) * (rng.random(z.shape) < 0.3)
            features = np.abs(trial) / np.linalg.norm(trial, axis=2, keepdims=True)
            (a, a2), (b, b2) = (f[:2] - f[2] for f in features)
            f = np.sum((np.outer(a, b) - np.outer(a2, b2)) ** 2)
            assert f <= 6
            if f >= best:
                z, best = trial, f
        worst = max(worst, best)
    assert worst > 5.9


@pytest.mark.proves("hsic")
def test_the_norm_of_a_cross_covariance_is_at_most_one_half():
    rng = np.random.default_rng(11)
    most = max(
        hsic(*rng.choice([0.0, 0.5, 1.0], (2, m)) if share else np.tile(rng.integers(0, 2, m), (2, 1)), **FAR)
        for m in (2, 3, 4, 9)
        for share in (0, 1)
        for _ in range(30)
    )
    assert 0.2499 < most <= 0.25


@pytest.mark.proves("root-hsic-residuals")
@pytest.mark.proves("hsic-residuals")
def test_moving_every_residual_a_little_keeps_the_residual_bounds_and_reaches_the_slack():
    rng = np.random.default_rng(12)
    arguments = {"kernel": GAUSSIAN, "width_x": 1e-3, "width_y": 0.1, **UNIT_BOX}
    worst = [0.0, 0.0]
    for trial in range(150):
        m, shift = int(rng.integers(2, 60)), float(10.0 ** rng.uniform(-4, -1))
        x, y = rng.random((2, m))
        move = rng.uniform(-shift, shift, m)
        if trial % 3 == 0:
            m, shift = 40, 1e-3
            x, move = np.repeat([0.0, 1.0], m // 2), shift * np.repeat([-1.0, 1.0], m // 2)
            y = 0.5 + rng.choice([0.0, 0.05]) * np.repeat([-1.0, 1.0], m // 2)
        claims = (root_hsic, root_hsic_residual_sensitivity), (hsic, hsic_residual_sensitivity)
        for k, (score, claim) in enumerate(claims):
            change = abs(score(x, y + move, **arguments) - score(x, y, **arguments))
            ratio = change / claim(m, shift, 0.1, (0.0, 1.0)).bound
            assert ratio <= 1
            worst[k] = max(worst[k], ratio)
    assert worst[0] > 0.69 and worst[1] > 0.48


@pytest.mark.proves("hsic-published")
def test_the_published_constants_are_theorem_3_in_units_of_hsic_v():
    for m in (2, 10, 1000):
        paper = Fraction(m**2, (m - 1) ** 2)
        for calibration, want in ((HSIC_WIDER, 16 * m - 8), (HSIC, 12 * m - 11)):
            bound = Fraction(hsic_sensitivity(m, calibration).bound) * paper
            assert 0 <= bound - Fraction(want, (m - 1) ** 2) < Fraction(1, 10**14)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("m", [2, 10, 50_000])
def test_a_sensitivity_covers_the_rounding_of_both_neighbours(kernel, m):
    # Twice the error of one: √η and two units of 2⁻⁵³ under the root, η and half a unit of ¼ for the value.
    exact = Fraction(6 * (m - 1) ** 2, m**4)
    eta = kernel.rounding(m)
    root, value = (Fraction(f(m, kernel=kernel).bound) for f in (root_hsic_sensitivity, hsic_sensitivity))
    root_part, value_part = root - 2 * Fraction(1, 2**52), value - 2 * (eta + Fraction(1, 2**55))
    assert value_part**2 >= exact
    assert root_part > 0
    # root_part ≥ √exact + 2√η exactly when its square minus both squares is at least 4√(exact · η).
    rest = root_part**2 - exact - 4 * eta
    assert rest >= 0
    assert rest**2 >= 16 * exact * eta
    assert root < Fraction(102, 100) * Fraction(math.sqrt(exact))


TWO = {"x": [0.0, 1.0], "y": [0.0, 1.0], "width_x": 0.1, "width_y": 0.1, **UNIT_BOX}
REFUSALS = [
    *((claim, (m,), {"kernel": kernel}) for claim in (root_hsic_sensitivity, hsic_sensitivity) for kernel in KERNELS
      for m in (0, 1, kernel.most_records + 1)),
    *((hsic, (), TWO | {"width_x": width}) for width in (0.0, -1.0, math.nan, math.inf, "1", True)),
    *((hsic, (), TWO | {"range_y": bounds})
      for bounds in ((1.0, 0.0), (0.0, 0.0), (-1e308, 1e308), (math.nan, 1.0), None)),
    *((hsic, (), TWO | columns) for columns in ({"x": [0.5], "y": [0.5]}, {"x": [0.0, 1.0, 0.5]})),
    *((root_hsic_residual_sensitivity, (10, shift, 1.0, (0, 1)), {}) for shift in (-1.0, math.nan, math.inf)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "arguments", "named"), REFUSALS)
def test_a_wrong_public_argument_is_refused(call, arguments, named):
    with pytest.raises(ParameterError):
        call(*arguments, **named)


def permuted(rows):
    """Return √HSIC with y shifted by one row."""
    return root_hsic(rows[:, 0], np.roll(rows[:, 1], -1), **FAR)


def halves_in_step(_rng, m, _low, _high):
    """Return records whose permuted pairs agree, at two places; replacing one makes two pairs disagree."""
    x = (np.arange(m) % 2).astype(np.float64)
    return np.column_stack([x, np.roll(x, 1)])


def test_the_constant_of_permuted_columns_is_four():
    for m in (10, 1000):
        exact = 4 * (m - 1) / m**2
        assert exact <= float(permuted_root_hsic_sensitivity(m).bound) <= exact + 1e-8
