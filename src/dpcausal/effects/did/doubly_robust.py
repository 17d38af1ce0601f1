"""``did`` with covariates: lines and weights from noisy sums by cohort, then noisy sums of doubly robust scores.

1. Sums of steps and covariates by cohort give the lines of the controls' steps, and first weights exp(a′b) as
   if covariates were normal and spread alike in all cohorts.
2. Sums of weighted covariates show how far the weighted controls' means are from the cohort's: the weights
   move by that.
3. Sums of scores by cohort give the effects.

Covariates b are seen in their shape within cohorts, and shortened to a public length.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.effects.did.adjusted import Layout
from dpcausal.effects.did.contrasts import LEAST_COUNT
from dpcausal.effects.did.release import LEAST_RATIO
from dpcausal.effects.did.rounds import CohortSums, Rounds
from dpcausal.effects.moments.adaptive import Shape, tail_radius, whitened
from dpcausal.errors import InfeasibleError
from dpcausal.statistics.moments import squared_lengths

SHAPING, CENTRES, LENGTHS, MOMENTS, BALANCE, SCORE_LENGTHS, SCORES = (
    Fraction(one, 100) for one in (6, 8, 3, 30, 15, 3, 30)
)
"""Shares of ρ; the size of columns has a twentieth."""
COVARIATE_TAIL = 0.01
"""Covariates are shortened to a length that such a share of normal ones exceeds."""
HEAVIEST, LARGEST_TILT, MOST_LONG_PATHS, MOST_LONGER = 5.0, 3.0, 0.1, 0.02
LEAST_SPREAD, CLEARLY = 0.5, 2.0
"""Along no direction covariates count as spread by less, of 1; weights move where the square of the distance of the
means is so many times that of the noise."""
SEEN, FAR = 4.0, 3.0
"""Lines count a spread of at least so many times √p deviations of the noise, twice the norm of noise; along another
direction a slope is not known, which intervals count if means differ by so many deviations of the noise."""
WIDER = 2.5
"""What the noise of lines leaves counts so many times in the interval: measured, with squares of covariates."""
BALANCES = 2
ROUNDS, CLOSE, BALANCED, MOST_EXPONENT = 100, 1e-12, 1e-3, 50.0
"""Without noise: as often, until the means are so near each other, and so near at least."""
NO_OVERLAP = (
    "no weights of the controls give their covariates the mean of a treated cohort: adjust for fewer covariates, or "
    "leave out cohorts whose covariates lie outside those of the controls"
)


@dataclass(frozen=True)
class Models:
    """Of each set: the line of the controls' steps in the covariates b, and the weights exp(tilt′(b − centre) + level).
    """

    layout: Layout
    starts: tuple[int, ...]
    middle: Reals
    whitening: Reals
    longest: float
    """Of the covariates: where they lie, what makes them about standard, and what they are shortened to for weights."""
    steps: Reals
    """The mean of the steps where covariates are 0, shape (sets, d)."""
    slopes: Reals
    """Shape (sets, covariates, d)."""
    centres: Reals
    tilts: Reals
    levels: Reals
    gaps: Reals
    """Of each set the mean square of how far the weighted controls' covariates may still be from the cohort's."""
    slope_noise: Reals
    """Of each pair the deviation of the noise of its line's slopes, and of those that noise hides."""
    chance: Reals
    """Of each pair the most variance that chance in its line adds, for each unit that means are apart."""
    apart: Reals
    """Of each set the square of how far the means were found apart before the weights last moved."""

    @property
    def left(self) -> Reals:
        """Of each pair the deviation of what the noise of the line leaves, as weights do not balance exactly."""
        return np.asarray(WIDER * self.slope_noise * np.sqrt((self.gaps + self.lightened)[list(self.layout.set_of)]))

    @property
    def chance_left(self) -> Reals:
        """Of each pair the deviation of what chance in the line leaves.

        With r the controls' residuals, v their weights of mean 1 and h how far these leave their mean from the
        cohort's m, an effect errs by −h′(β̂ − β) − mean of v r, whose variance is
        σ²/n (E v² + 2 h′S⁻¹(m − mean of b) − h′S⁻¹h): scores show the first term, the second has a bound here.
        """
        return np.asarray(np.sqrt(self.chance * np.sqrt(self.apart + self.lightened)[list(self.layout.set_of)]))

    @property
    def lightened(self) -> float:
        """The square of how far lighter controls may move a mean."""
        return float((MOST_LONGER * self.heaviest / 2) ** 2)

    def cut(self, b: Reals) -> Reals:
        """Return covariates shortened, each row from itself alone."""
        lengths = np.maximum(np.sqrt(squared_lengths(b)), 1e-300)
        return np.asarray(b * np.minimum(1.0, self.longest / lengths)[:, None])

    def away(self, b: Reals, place: int) -> tuple[Reals, Reals]:
        """Return how far covariates are from the mean of a set's cohort, and the weights."""
        away = self.cut(b) - self.centres[place]
        if not math.isfinite(self.longest):
            return away, tilted(away, self.tilts[place], self.levels[place])
        weights = tilted(away, self.tilts[place], self.levels[place])
        squared = np.full(len(b), 1.0)
        for column in away.T:
            squared += column * column
        return away, np.minimum(weights, self.heaviest / np.sqrt(squared))

    @property
    def heaviest(self) -> float:
        """The largest product of a weight and the length of (1, covariates), away from a cohort's mean."""
        return HEAVIEST * math.sqrt(1 + self.tilts.shape[1])

    def residuals(self, steps: Reals, b: Reals, place: int) -> Reals:
        left = steps - self.steps[place]
        for column, slope in zip(b.T, self.slopes[place], strict=True):
            left -= column[:, None] * slope
        return np.asarray(left)


def tilted(away: Reals, tilt: Reals, level: float) -> Reals:
    exponent = np.full(len(away), level)
    for column, slope in zip(away.T, tilt, strict=True):
        exponent += slope * column
    return np.asarray(np.exp(np.clip(exponent, -MOST_EXPONENT, MOST_EXPONENT)))


def changes(layout: Layout, starts: tuple[int, ...], columns: list[int], steps: int) -> Reals:
    """Return the matrix that makes the changes of pairs of steps."""
    matrix = np.zeros((len(columns), steps))
    for row, column in zip(matrix, columns, strict=True):
        g, t = layout.pairs[column]
        base = starts[g] - 1
        row[min(base, t) : max(base, t)] = 1.0 if t > base else -1.0
    return matrix


def released_scores(
    rounds: Rounds, steps: Reals, covariates: Reals, starts: tuple[int, ...], control: str
) -> tuple[CohortSums, dict[str, Any]]:  # fmt: skip
    """Return the noisy sums of scores, and what else the release says of them."""
    d, columns = steps.shape[1], np.hstack([steps, covariates])
    shape = rounds.shaped(columns, SHAPING)
    shape = rounds.centred(shape, columns, CENTRES)
    least = rounds.least_radius(columns.shape[1], MOMENTS)
    radius = rounds.reach(shape, columns, least, LENGTHS, columns.shape[1], MOST_LONG_PATHS)
    sums = rounds.summed(shape, columns, radius, MOMENTS)
    noisy = sums.deviation * math.sqrt(2) / sums.radius
    least = max(LEAST_COUNT, LEAST_RATIO * noisy) if rounds.rho else 1e-9
    compared = tuple(c for c, count in enumerate(sums.counts) if count >= least)
    layout = Layout.of(starts, d + 1, compared, control)
    models = fitted(sums, layout, starts, d, rounds.rho is not None)
    b = whitened(columns[:, d:], models.middle, models.whitening)
    for _ in range(BALANCES if rounds.rho else 1):
        models = balanced(rounds, models, b)
    shape, ones = score_shape(rounds, models, d, sums), np.ones(len(b))
    rows = scores(rounds, models, steps, b, ones)
    radius = rounds.reach(shape, rows, rounds.least_radius(d, SCORES), SCORE_LENGTHS, d, MOST_LONGER)
    if rounds.rho is not None:
        length = np.sqrt(rounds.squared_lengths(shape, rows))
        rows = scores(rounds, models, steps, b, np.minimum(1.0, radius / np.maximum(length, 1e-300)))
    return rounds.summed(shape, rows, radius, SCORES), {
        "compared": compared, "left": models.left, "chance": models.chance_left,
    }  # fmt: skip


def fitted(sums: CohortSums, layout: Layout, starts: tuple[int, ...], d: int, noisy: bool) -> Models:
    """Return the lines and the first weights."""
    means, seconds = _by_cohort(sums)
    compared = [c for c in range(len(means)) if any(c == g or c in those for g, those in layout.sets)]
    p, total = means.shape[1] - d, max(sum(sums.counts[c] for c in compared), 1.0)
    zero = np.zeros((d + p, d + p))
    within = sum((sums.counts[c] * (seconds[c] - np.outer(means[c], means[c])) for c in compared), zero)
    # Seen in the shape that an earlier round released, their covariance within cohorts is about 1 along all directions.
    shape = (sums.shape.spread @ sums.shape.spread.T)[d:, d:]
    shape[np.diag_indices_from(shape)] += noisy * 1e-12 * np.trace(shape)  # positive definite after rounding, too
    seen = np.linalg.inv(np.linalg.cholesky(shape))
    eigenvalues, vectors = np.linalg.eigh(seen @ (within[d:, d:] / total) @ seen.T)
    floor = LEAST_SPREAD if noisy else max(float(eigenvalues.max(initial=0.0)) * 1e-9, 1e-18)
    whitening = (vectors / np.sqrt(np.maximum(eigenvalues, floor))).T @ seen
    middle = np.average(means[:, d:], axis=0, weights=np.maximum(sums.counts, 1e-9))
    to_b = np.eye(d + p)
    to_b[d:, d:] = whitening
    origin = np.concatenate([np.zeros(d), middle])
    steps, slopes, tilts, centres, gaps = [], [], [], [], []
    slope_noise, chance = np.zeros((2, len(layout.pairs)))
    for g, those in layout.sets:
        counts = sums.counts[list(those)]
        mean = counts @ means[list(those)] / counts.sum()
        second = np.einsum("c,cij->ij", counts, seconds[list(those)]) / counts.sum()
        covariance = to_b @ (second - np.outer(mean, mean)) @ to_b.T
        values, axes = np.linalg.eigh((covariance[d:, d:] + covariance[d:, d:].T) / 2)
        size = counts.sum()
        entry = sums.deviation * sums.radius / size
        # A larger floor than noise needs would bias the line along directions in which controls vary little.
        floor = min(SEEN * entry * math.sqrt(p), LEAST_SPREAD) if noisy else float(values.max(initial=0.0)) * 1e-12
        floor = max(floor, 1e-6)
        unseen = values < floor
        values[unseen] = LEAST_SPREAD if noisy else floor
        along = axes.T @ covariance[d:, :d]
        slope = axes @ (along / values[:, None])
        own, other = to_b @ (means[g] - origin), to_b @ (mean - origin)
        tilt = own[d:] - other[d:]
        tilts.append(tilt * min(1.0, LARGEST_TILT / max(float(np.linalg.norm(tilt)), 1e-300)))
        steps.append(other[:d] - other[d:] @ slope)
        slopes.append(slope)
        centres.append(own[d:])
        away = sums.deviation**2 * (size**-2.0 + max(sums.counts[g], 1.0) ** -2.0) + entry**2 * float(tilt @ tilt)
        gaps.append(p * away)
        columns = layout.pairs_of(len(gaps) - 1)
        matrix = changes(layout, starts, columns, d)
        of_steps = np.maximum(np.diag(matrix @ covariance[:d, :d] @ matrix.T), 0.0)
        noise = entry**2 * of_steps
        unknown = unseen & ((axes.T @ tilt) ** 2 > FAR**2 * away / LEAST_SPREAD)
        wrong = noisy * ((along[unknown] @ matrix.T) ** 2 + noise).sum(axis=0) / floor**2
        slope_noise[columns] = np.sqrt(noise * float((values**-2.0).mean()) + wrong)
        left = np.maximum(of_steps - np.diag(matrix @ covariance[:d, d:] @ slope @ matrix.T), 0.0) * noisy / size
        chance[columns] = 2 * left * np.linalg.norm(axes.T @ tilt / values)
    levels = [float(tilt @ tilt) / 2 for tilt in tilts]
    longest = tail_radius(p, COVARIATE_TAIL) if noisy else math.inf
    return Models(
        layout, starts, middle, whitening, longest, np.array(steps).reshape(-1, d), np.array(slopes).reshape(-1, p, d),
        np.array(centres).reshape(-1, p), np.array(tilts).reshape(-1, p), np.array(levels), np.array(gaps),
        slope_noise, chance, np.zeros(len(gaps)),
    )  # fmt: skip


def _by_cohort(sums: CohortSums) -> tuple[Reals, Reals]:
    counts, spread = np.maximum(sums.counts, 1e-9), sums.shape.spread
    mean = sums.sums / counts[:, None]
    within = sums.squares / counts[:, None, None] - mean[:, :, None] * mean[:, None, :]
    means = sums.shape.middle + mean @ spread.T
    return means, spread @ within @ spread.T + means[:, :, None] * means[:, None, :]


def balanced(rounds: Rounds, models: Models, b: Reals) -> Models:
    """Return the models with weights moved until covariates of the weighted controls have the cohort's means."""
    if rounds.rho is None:
        return _balanced_exactly(rounds, models, b)
    layout, p, root = models.layout, b.shape[1], math.sqrt(models.layout.served)
    rows, first = np.zeros((len(b), len(layout.sets) * (p + 1))), dict[int, int]()
    for place, (g, those) in enumerate(layout.sets):
        own = slice(place * (p + 1), (place + 1) * (p + 1))
        away, weights = models.away(b, place)
        if first.setdefault(g, place) == place:
            here = rounds.cohorts == g
            rows[here, own.start + 1 : own.stop] = away[here]
        here = np.isin(rounds.cohorts, those)
        rows[here, own.start] = (weights[here] - 1) / root
        rows[here, own.start + 1 : own.stop] = weights[here, None] * away[here] / root
    shape = Shape(np.zeros((rounds.number, rows.shape[1])), np.eye(rows.shape[1]))
    sums = rounds.summed(shape, rows, models.heaviest, BALANCE / BALANCES)
    tilts, levels, gaps, apart = [], [], [], []
    for place, (g, those) in enumerate(layout.sets):
        blocks = sums.sums.reshape(rounds.number, -1, p + 1)
        total, count = root * blocks[list(those), place].sum(axis=0), max(float(sums.counts[list(those)].sum()), 1.0)
        weight = max(count + total[0], count / 4)
        own = max(sums.counts[g], 1.0)
        moved = total[1:] / weight - blocks[g, first[g], 1:] / own
        noise, size = p * sums.deviation**2 * ((root / weight) ** 2 + own**-2.0), max(float(moved @ moved), 1e-300)
        clear = size > CLEARLY * noise
        within = sums.squares[g].reshape(len(layout.sets), p + 1, -1)[first[g]].reshape(p + 1, len(layout.sets), p + 1)
        values, axes = np.linalg.eigh(within[1:, first[g], 1:] / own)
        step = axes @ (axes.T @ moved / np.clip(values, LEAST_SPREAD, None))
        tilts.append(models.tilts[place] - step * clear * (1 - noise / size) / max(1.0, size**0.5))
        gaps.append(noise + size / 4 if clear else max(size - noise, models.gaps[place]))
        apart.append(size)
        levels.append(models.levels[place] - math.log(weight / max(count, 1.0)))
    return replace(
        models, tilts=np.array(tilts).reshape(-1, p), levels=np.array(levels), gaps=np.array(gaps),
        apart=np.array(apart),
    )  # fmt: skip


def _balanced_exactly(rounds: Rounds, models: Models, b: Reals) -> Models:
    masses = rounds.rows.included * (1.0 if rounds.rows.weights is None else rounds.rows.weights)
    tilts, levels = models.tilts.copy(), models.levels.copy()
    for place, (_, those) in enumerate(models.layout.sets):
        here = np.isin(rounds.cohorts, those)
        (away, _), mass = models.away(b[here], place), masses[here]
        for _ in range(ROUNDS):
            weights = mass * tilted(away, tilts[place], levels[place])
            levels[place] -= math.log(weights.sum() / mass.sum())
            weights *= mass.sum() / weights.sum()
            moved = weights @ away / weights.sum()
            spread = (away.T * weights) @ away / weights.sum() - np.outer(moved, moved)
            step = np.linalg.pinv(spread, rcond=1e-10, hermitian=True) @ moved
            tilts[place] -= step * min(1.0, 1 / max(float(np.linalg.norm(step)), 1e-300))
            if float(np.abs(moved).max(initial=0.0)) < CLOSE:
                break
        else:
            if not float(np.abs(moved).max(initial=0.0)) < BALANCED:
                raise InfeasibleError(NO_OVERLAP)
    return replace(models, tilts=tilts, levels=levels)


def scores(rounds: Rounds, models: Models, steps: Reals, b: Reals, lighter: Reals) -> Reals:
    """Return each person's row of scores; as a control a person has ``lighter`` times the weight."""
    layout, d = models.layout, steps.shape[1]
    rows, root = np.zeros((len(b), layout.columns)), math.sqrt(layout.served)
    for place, (g, those) in enumerate(layout.sets):
        columns = layout.pairs_of(place)
        matrix = changes(layout, models.starts, columns, d)
        for of_controls in (False, True):
            here = np.flatnonzero(np.isin(rounds.cohorts, those) if of_controls else rounds.cohorts == g)
            left = whitened(models.residuals(steps[here], b[here], place), np.zeros(d), matrix)
            if of_controls:
                weights = models.away(b[here], place)[1] * lighter[here]
                left *= weights[:, None] / root
                rows[here, len(layout.pairs) + place] = (weights - 1) / root
            rows[np.ix_(here, np.array(columns))] = left
    return rows


def score_shape(rounds: Rounds, models: Models, d: int, sums: CohortSums) -> Shape:
    """Return where rows of scores lie in each cohort, and in what shape, by the sums of steps and covariates."""
    layout = models.layout
    middle, spread = np.zeros((rounds.number, layout.columns)), np.eye(layout.columns)
    if rounds.rho is None:
        return Shape(middle, spread)
    means, seconds = _by_cohort(sums)
    for place, (g, _) in enumerate(layout.sets):
        columns = layout.pairs_of(place)
        own = models.whitening @ (means[g, d:] - models.middle)
        away = means[g, :d] - models.steps[place] - own @ models.slopes[place]
        middle[g, columns] = changes(layout, models.starts, columns, d) @ away
    total = sum(sums.counts[c] for c in range(rounds.number) if sums.counts[c] > 0) or 1.0  # noise may leave none
    within = sum(max(count, 0.0) / total * (second - np.outer(mean, mean))
                 for count, mean, second in zip(sums.counts, means, seconds, strict=True))  # fmt: skip
    left = within[:d, :d] - within[:d, d:] @ np.linalg.pinv(within[d:, d:], hermitian=True) @ within[d:, :d]
    for g in dict.fromkeys(g for g, _ in layout.sets):
        own = np.array(layout.own(g))
        matrix = changes(layout, models.starts, layout.own(g), d)
        spread[own[:, None], own] = _root(matrix @ left @ matrix.T, sums.deviation * sums.radius / total)
    return Shape(middle, spread)


def _root(square: Reals, noise: float) -> Reals:
    eigenvalues, vectors = np.linalg.eigh((square + square.T) / 2)
    least = max(float(eigenvalues.max(initial=0.0)), 1e-12) * max(noise * math.sqrt(len(square)), 1e-6)
    return np.asarray((vectors * np.sqrt(np.maximum(eigenvalues, least))) @ vectors.T)
