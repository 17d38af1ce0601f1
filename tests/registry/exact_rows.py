"""The mechanisms whose output law is computed: the pairs they are audited at, and how they are tied to that law.

The pairs are small searches over neighbouring answers, with the constructions at which a loss is attained only in the
limit: long lists, rare candidates, far tails.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dpcausal.mechanisms.additive import laplace
from dpcausal.mechanisms.selection import margin_sensitivity, rank_margin
from dpcausal.privacy.budget import Event
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity
from tests.registry import laws, panels
from tests.registry.exact import Cuts, ExactRow, Fit
from tests.registry.index import MECHANISMS
from tests.registry.iqr import at_the_threshold
from tests.registry.laws import Law, Reals
from tests.registry.mechanisms import ball_vectors, cube_vectors
from tests.registry.rows import MechanismRow, allotted
from tests.registry.training import PASSES, STABLE_DELTA

OF: dict[str, MechanismRow] = {row.name: row for row in MECHANISMS}
Pairs = Iterator[tuple[Any, Any]]


def scales(reach: float, size: int) -> Cuts:
    """Return cuts from −reach to reach in units of the declared scale, and at the whole numbers near 0."""

    def cuts(event: Event) -> Reals:
        # Rounded: two cuts a last bit apart would make a cell of nothing but rounding.
        return np.unique(np.round([*event.scale * np.linspace(-reach, reach, size), *range(-3, 4)], 9))

    return cuts


def halves_to(reach: int) -> Cuts:
    return lambda event: np.arange(-reach, reach) + 0.5


def at(law: Law, answer: Any) -> Callable[[Event, Reals, float], Reals]:
    return lambda event, cuts, drawn: law(answer, event, cuts, drawn)


def cut_at(*places: float) -> Cuts:
    return lambda event: np.array(places)


def fit(name: str, answer: Any, law: Law, cuts: Cuts, draws: int = 0) -> Fit:
    """Return a comparison of a mechanism's outputs at one answer."""
    return Fit(lambda size: OF[name].draw(answer, 1.0, size, 1.0), at(law, answer), cuts, draws)


# Neighbours.


def unit_moves(epsilon: float) -> Pairs:
    yield from ((0, 1), (1, 0), (0, -1), (2, 1))


def moved(answers: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield all answers that differ by at most 1 in each place."""
    for move in itertools.product((-1, 0, 1), repeat=len(answers)):
        yield tuple(a + b for a, b in zip(answers, move, strict=True))


def score_moves(epsilon: float) -> Pairs:
    """Three candidates, and two of which one is far behind."""
    for scores in itertools.product((0, 2, 5), repeat=3):
        yield from ((scores, other) for other in moved(scores))
    far = math.ceil(16 / epsilon)
    yield (far, 0), (far + 1, -1)


def list_moves(epsilon: float) -> Pairs:
    """Three answers, and a long list below the bar that moves up but for its last: the loss of that one nears ε."""
    for answers in itertools.product((-2, 0, 1), repeat=3):
        yield from ((answers, other) for other in moved(answers))
    yield (-5,) * 401, (-4,) * 400 + (-6,)


def tested_moves(epsilon: float) -> Pairs:
    threshold = round(at_the_threshold(epsilon)[0][0])
    places = (0, 1, 2, threshold - 1, threshold, threshold + 3)
    for distances in (*itertools.product(places, repeat=2), *zip(places, strict=True)):  # two tests, or one
        for other in moved(distances):
            if min(other) >= 0:
                unbound = max(*distances, *other) <= 1
                yield (*distances, 0.0), (*other, 1e3 if unbound else 1.0)
                yield (*distances, 0.0), (*other, 0.0)
    yield at_the_threshold(epsilon)


def stable_moves(epsilon: float) -> Pairs:
    threshold = 1 + math.ceil(math.log(1 / STABLE_DELTA) / epsilon)
    yield from (((distance, 0.0), (distance + 1, 0.0)) for distance in range(threshold + 4))
    yield from (((one, 0.0), (other, 1.0)) for one in (0, 1) for other in (0, 1))


def donor_moves(epsilon: float) -> Pairs:
    for one, other in itertools.combinations((-1.0, -0.5, 0.0, 0.5, 1.0), 2):
        yield from (((one, target), (other, target)) for target in (0.5, 1.0))


RANK, COPIES = 2, 9
COPY_NOISE = generator_from_seed(7).laplace(size=COPIES)


def rank_decision(answer: Any, epsilon: float, size: int, share: float) -> list[int]:
    """Return whether the first of some statistics is among the k largest by noise; each moves by at most ½."""
    each, loss = Sensitivity(0.5, Norm.ABSOLUTE, Relation.REPLACE_ONE, "root-hsic"), PureDP(epsilon / share)
    claim, allotment = margin_sensitivity(each, each, epsilon), allotted(loss, size)
    query = rank_margin(np.asarray(answer, dtype=np.float64), RANK, 1.0, claim, generator_from_seed(7), "audited")
    return [int(laplace(query, allotment, loss) > 0) for _ in range(size)]


def statistic_moves(epsilon: float) -> Pairs:
    copies = np.random.default_rng(1).uniform(-1, 1, COPIES)
    for own in (-4.0, -1.0, 0.0, 2.0):
        for move in (-0.5, 0.5):
            yield (own, *copies), (own + move, *(copies - move))
            yield (own, *copies), (own + move, *copies)


# Rows.


def additive(name: str, below: laws.Below, cuts: Cuts, draws: int) -> ExactRow:
    law = laws.additive(below)
    return ExactRow(name, OF[name].draw, law, cuts, unit_moves, (fit(name, 0, law, cuts, draws),), delta=OF[name].delta)


def ball() -> ExactRow:
    """The ball in three dimensions, whose axis has a closed form; the length in twenty shows the scale best."""
    axis = laws.additive(laws.ball_axis_below)
    zeros = np.zeros(20)

    def on_axis(answer: Any, event: Event, cuts: Reals, drawn: float = 1.0) -> Reals:
        return axis(answer[0], event, cuts, drawn)

    def lengths(size: int) -> Reals:
        return np.asarray(np.linalg.norm(ball_vectors(zeros, 1.0, size, 1.0), axis=1))

    return ExactRow(
        "l2-ball", OF["l2-ball"].draw, on_axis, scales(200, 4_001), lambda epsilon: iter([((0, 0, 0), (1, 0, 0))]),
        (Fit(lengths, at(laws.ball_radius(20), None), lambda event: event.scale * np.linspace(5, 45, 81), 1_400),
         fit("l2-ball", (0, 0, 0), on_axis, scales(20, 81), 1_400)),
    )  # fmt: skip


def cube() -> ExactRow:
    """All four entries move up, which the least of them shows; the norm shows the scale best."""
    zeros = (0, 0, 0, 0)

    def norms(size: int) -> Reals:
        return np.asarray(np.abs(cube_vectors(zeros, 1.0, size, 1.0)).max(axis=1))

    return ExactRow(
        "cube", OF["cube"].draw, laws.cube_least, cut_at(*np.arange(-5.5, 20)),
        lambda epsilon: iter([(zeros, (1, 1, 1, 1)), (zeros, (-1, -1, -1, -1))]),
        (Fit(norms, at(laws.cube_norm, None), lambda event: np.arange(80) + 0.5, 7_000),
         fit("cube", zeros, laws.cube_least, cut_at(*np.arange(-5.5, 20)), 7_000)),
    )  # fmt: skip


def first_of(name: str, law: Law, pairs: Callable[[float], Pairs], shown: Any, draws: int) -> ExactRow:
    """Return a row of a mechanism that picks an index: of very many that are far behind, half of the time one."""
    cuts = cut_at(*laws.halves(len(shown)))
    return ExactRow(name, OF[name].draw, law, cuts, pairs, (fit(name, shown, law, cuts, draws),))


OBJECTIVE = {1.0: 0.359, 2.0: 0.374}
"""The shares of ε that one donor attains, to a hundredth; the proof page derives the slack."""


def objective() -> ExactRow:
    """One donor in one period; twenty donors of zeros, whose minimiser is −b/M, show the scale best."""
    name, M = "objective-perturbation", panels.QUADRATIC
    of_one = laws.objective_perturbation(40.0)

    def weights_of_zeros(size: int) -> Reals:
        return np.concatenate(panels.objective(np.zeros((20, 1)), [0.0], 1.0, size, quadratic=M))

    def law_of_zeros(event: Event, cuts: Reals, drawn: float) -> Reals:
        return laws.additive(laws.gaussian_below)(0.0, replace(event, scale=event.scale / M), cuts, drawn)

    def weights_of_one(size: int) -> Reals:
        return np.asarray(panels.objective([[1.0]], [1.0], 1.0, size, quadratic=40.0)[:, 0])

    return ExactRow(
        name, OF[name].draw, laws.objective_perturbation(M),
        lambda event: event.scale / M * np.linspace(-10, 10, 2_001), donor_moves,
        (Fit(weights_of_zeros, law_of_zeros, lambda event: event.scale / M * np.linspace(-4, 4, 61), 700),
         Fit(weights_of_one, at(of_one, (1.0, 1.0)), lambda event: np.linspace(-0.95, 0.95, 39), 700)),
        delta=OF[name].delta, attained=lambda epsilon: (0.99 * OBJECTIVE[epsilon], 1.01 * OBJECTIVE[epsilon]),
    )  # fmt: skip


def decision() -> ExactRow:
    law, copies = laws.noisy_rank(RANK, COPY_NOISE), np.random.default_rng(1).uniform(-1, 1, COPIES)
    bar = float(np.sort(copies + COPY_NOISE)[-RANK])

    def below(by: float) -> Fit:
        answer = (bar - by, *copies)
        return Fit(lambda size: rank_decision(answer, 1.0, size, 1.0), at(law, answer), cut_at(0.5), 4_000)

    return ExactRow("noisy-rank", rank_decision, law, cut_at(0.5), statistic_moves, (below(2.0),), (below(1.0),))


def tested() -> ExactRow:
    """Even noise shows a first test that stands alone, then the value behind tests that always pass."""
    name, law, test = "propose-test-release", laws.propose_test_release, at_the_threshold(1.0)[0][0]
    return ExactRow(
        name, OF[name].draw, law, scales(40, 1_601), tested_moves,
        (fit(name, (test + 2, test + 2, 0.0), law, scales(40, 1_601), 4_000),),
        (fit(name, (test - 2, 0.0, 0.0), law, cut_at()), fit(name, (1e3, 1e3, 0.0), law, scales(12, 97))),
        OF[name].delta,
    )  # fmt: skip


def stable() -> ExactRow:
    name, law = "stable-value", laws.stable_value
    return ExactRow(
        name, OF[name].draw, law, cut_at(0.5), stable_moves, (fit(name, (PASSES - 2, 0.0), law, cut_at(0.5), 4_000),),
        (fit(name, (PASSES - 1, 0.0), law, cut_at(0.5)),), OF[name].delta,
    )  # fmt: skip


EXACT = (
    additive("laplace", laws.laplace_below, scales(12, 97), 60_000),
    additive("geometric", laws.geometric_below, halves_to(60), 60_000),
    additive("gaussian", laws.gaussian_below, scales(12, 4_001), 30_000),
    additive("discrete-gaussian", laws.discrete_gaussian_below, halves_to(30), 30_000),
    cube(),
    ball(),
    first_of("noisy-max", laws.noisy_max, score_moves, (12, *[0] * 399), 4_000),
    first_of("sparse-vector", laws.sparse_vector, list_moves, (-20,) * 400, 2_500),
    tested(),
    stable(),
    objective(),
    decision(),
)
"""``draws``: about 20/KL, the divergence of 0.95 of the noise from all of it, and half as many again; fewer where even
noise shows the scale."""
