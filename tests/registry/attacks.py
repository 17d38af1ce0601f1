"""The four attacks of a published audit of privacy libraries, over our public calls, with libraries that fall to them.

A record is replaced by NaN, the budget is spent twice, the domain is learnt from the rows, the sensitivity is smaller
than what a record moves.  An attack succeeds if the grey box tells two neighbours apart, or finds that a record moves
an answer by more than is declared; or if what passes the gate costs more than the ledger was charged.  Nothing is
drawn, so nothing is left to chance.

*Source*: Cebere, Erb, Desfontaines, Bellet & Fitzsimons, "Privacy in theory, bugs in practice" (arXiv 2602.17454).
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from scipy.stats import norm

import dpcausal as dpc
from dpcausal.audit import compare
from dpcausal.data import coding
from dpcausal.data.panels import panel
from dpcausal.effects.cells.corner_counts import levels_of
from dpcausal.errors import BudgetExceededError
from dpcausal.privacy.loss import ZCDP, Loss
from dpcausal.privacy.sensitivity import Query
from tests.registry.exact import less_declared
from tests.registry.prices import NORMAL, paid, passages, total

Data = Any
Declared = Any


@dataclass(frozen=True)
class Way:
    """A public call that is attacked: the function, and the method or score.

    ``ask`` returns its result as plain values, of (data, what is declared in public, ledger); the ``data``, a mapping
    of columns or an array of donors, lie close together, well inside the declared domain; ``unit`` is whom it protects,
    as ``Ledger.in_memory`` takes it.
    """

    task: str
    name: str
    ask: Callable[[Data, Declared, dpc.Ledger], Any]
    data: Data
    declared: Declared
    loss: Loss
    unit: Mapping[str, str] = field(default_factory=dict)

    def ledger(self) -> dpc.Ledger:
        """Return a ledger that holds just the loss."""
        return dpc.Ledger.in_memory(self.loss, **self.unit)

    def with_first(self, *values: float) -> Data:
        """Return neighbouring data: the first record holds these values, or the one value everywhere."""
        if isinstance(self.data, dict):
            columns = {name: column.copy() for name, column in self.data.items()}
            for place, column in enumerate(columns.values()):
                column[0] = values[place % len(values)]
            return columns
        rows = self.data.copy()
        rows[0] = np.resize(values, rows.shape[1])
        return rows

    def told_apart(self, other: Data, declare: Callable[[Data], Declared] | None = None) -> bool:
        """Return whether the grey box sees a fault between the data and a neighbour."""

        def run(data: Data) -> Callable[[], Any]:
            declared = self.declared if declare is None else declare(data)
            return lambda: self.ask(data, declared, self.ledger())

        audits = [compare(run(self.data), run(other), answers=answers) for answers in ("low", "high")]  # type: ignore[arg-type]
        if not all(audit.passages for audit in audits):
            raise ValueError(f"{self.task} {self.name} brings nothing to the gate, on either: {audits[0].summary()}")
        return any(audit.violated for audit in audits)


Broken = Callable[[], AbstractContextManager[object]]
"""What breaks the library inside."""


# The attacks: each returns whether it succeeds.


def planted_nan(way: Way, broken: Broken = nullcontext, prepare: Callable[[Data], Data] = lambda data: data) -> bool:
    """Replace a record by NaN, wholly or in one value."""
    prepared = replace(way, data=prepare(way.data))
    with broken():
        return any(
            prepared.told_apart(prepare(way.with_first(*values))) for values in ((math.nan,), (math.nan, 0.0, 0.0))
        )


def spent_twice(way: Way, broken: Broken = nullcontext) -> bool:
    """Ask once and count what the noise costs; then ask again of a ledger that has paid for one call."""
    ledger = way.ledger()
    with broken():
        first = passages(lambda: way.ask(way.data, way.declared, ledger))
        losses = [paid(each.event, each.value) for each in first]
        if _costs_more(losses, all(each.event.mechanism in NORMAL for each in first), way.loss):
            return True
        try:
            return bool(passages(lambda: way.ask(way.data, way.declared, ledger)))
        except BudgetExceededError:
            return False


def _costs_more(losses: list[Loss], normal: bool, charged: Any) -> bool:
    """Return whether some answers cost more than a call was charged; of normal noise by its exact curve."""
    if normal:
        mu = math.sqrt(2 * total(losses, ZCDP).rho)  # type: ignore[union-attr]
        epsilon = charged.epsilon
        return bool(
            norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) > charged.delta
        )
    cost = total(losses, dpc.ApproxDP)
    return bool(cost.epsilon > charged.epsilon * (1 + 1e-6) or cost.delta > charged.delta * (1 + 1e-6))  # type: ignore[union-attr]


def inferred_domain(way: Way, declare: Callable[[Data], Declared] | None = None) -> bool:
    """Let the first record alone lie at an end of the domain, or hold a level that no other has."""
    return any(way.told_apart(way.with_first(*values), declare) for values in ENDS)


def miscalibrated(way: Way, broken: Broken = nullcontext) -> bool:
    """Let the first record lie far outside of the domain, and at its corners."""
    with broken():
        return any(way.told_apart(way.with_first(*values)) for values in OUTSIDE)


ENDS = ((1.0,), (2.0,), (1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (1.0, -1.0, 1.0))
OUTSIDE = ((1e3,), (-1e3,), (1e3, -1e3), (-1e3, 1e3, 1e3), (math.inf, -math.inf), (1.0, -1.0), (1.0, 1.0, 0.0))


# Libraries that fall to them.


def _kept(numbers: Any, column: dpc.Bounded) -> Any:
    return np.clip(numbers, column.lower, column.upper) + 0.0


@contextmanager
def keeps_nan() -> Iterator[None]:
    """numpy's clip lets NaN through."""

    def filled(rows: Any, bounds: dpc.Bounded, missing: str) -> Any:
        return _kept(rows, bounds)

    def cleaned(numbers: Any, column: dpc.Bounded) -> Any:
        return _kept(numbers, column), ~np.isnan(numbers)

    with mock.patch.object(coding, "clean_numbers", cleaned), mock.patch.object(panel, "filled_rows", filled):
        yield


def drops_nan(data: Data) -> Data:
    """Leave out what is not whole before anything else, as frames do: the number of records is then private."""
    if isinstance(data, dict):
        whole = ~np.isnan(np.column_stack(list(data.values()))).any(axis=1)
        return {name: column[whole] for name, column in data.items()}
    return data[~np.isnan(data).any(axis=1)]


def all_to_each() -> AbstractContextManager[None]:
    """Each of two answers has the noise of the whole loss."""
    return less_declared(0.5)


@contextmanager
def never_booked() -> Iterator[None]:
    """What a call is allotted is not written down."""
    charge = dpc.Ledger.charge

    def unbooked(self: dpc.Ledger, loss: Any, **details: Any) -> Any:
        return charge(dpc.Ledger.in_memory(loss, **self.protects.arguments), loss, **details)

    with mock.patch.object(dpc.Ledger, "charge", unbooked):
        yield


def learnt(data: Data) -> Declared:
    """The bounds or levels of each column from the data at hand; a column of one value is left out."""
    if not isinstance(data, dict):  # targets within them: else a call is refused for what is public
        return dpc.Bounded(float(min(data.min(), LINE.min())), float(max(data.max(), LINE.max())))
    found = {name: np.unique(column).tolist() for name, column in data.items()}
    if all(value.is_integer() for values in found.values() for value in values):
        return dpc.Schema({name: dpc.Levels([int(value) for value in values]) for name, values in found.items()})
    return dpc.Schema({name: dpc.Bounded(values[0], values[-1]) for name, values in found.items() if len(values) > 1})


@contextmanager
def half_the_sensitivity() -> Iterator[None]:
    """Every bound is stated at half of what it is, and the noise with it."""
    made = Query.__init__

    def short(self: Query, answer: Any, sensitivity: Any, label: str) -> None:
        made(self, answer, replace(sensitivity, bound=Fraction(sensitivity.bound) / 2), label)

    with mock.patch.object(Query, "__init__", short):
        yield


# The calls.


def plain(result: Any) -> Any:
    """Return what a result says, but for the ledger's head."""

    def without_head(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_head(part) for key, part in value.items() if key != "ledger_head"}
        return [without_head(part) for part in value] if isinstance(value, (list, tuple)) else value

    return [plain(part) for part in result] if isinstance(result, tuple) else without_head(result.to_dict())


ROWS = 130
SCHEMA = dpc.Schema(dict.fromkeys("xyz", dpc.Bounded(-1, 1)))
PURE, APPROXIMATE, LARGE = dpc.PureDP(1), dpc.ApproxDP(1, 1e-6), dpc.ApproxDP(10, 1e-6)


def _columns(constant: bool) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    x = rng.uniform(-0.15, 0.15, ROWS)
    y, z = x + 0.02 * rng.uniform(-1, 1, (2, ROWS))
    return {"x": x, "y": y, "z": np.zeros(ROWS) if constant else z}


def _of_table(
    task: str, name: str, call: Callable[[dpc.Table], Any], loss: Loss = PURE, constant: bool = False,
    levels: bool = False, missing: str = "impute", **unit: str,
) -> Way:  # fmt: skip
    def ask(data: Data, schema: dpc.Schema, ledger: dpc.Ledger) -> Any:
        return plain(call(dpc.Table(data, schema, ledger, missing=missing)))

    if not levels:
        return Way(task, name, ask, _columns(constant), SCHEMA, loss, unit)
    a, b = np.random.default_rng(9).integers(0, 2, (2, ROWS)).astype(np.float64)
    return Way(task, name, ask, {"a": a, "b": b}, dpc.Schema(dict.fromkeys("ab", dpc.Levels([0, 1, 2]))), loss, unit)


def _of_effect(name: str, method: Callable[[int], Any]) -> Way:
    """Return an effect by the outermost parts of a number, its method made for a number of rows."""

    def call(table: dpc.Table) -> Any:
        parts = levels_of(table.schema["x"])
        return dpc.effect(table, treatment="x", outcome="y", adjust=[], treated=parts[-1], control=parts[0], loss=PURE,
                          method=method(table.n))  # fmt: skip

    return _of_table("effect", name, call)


def _of_paths() -> Way:
    persons, periods = 300, np.arange(3)
    fixed = {"id": np.repeat(np.arange(persons), 3), "t": np.tile(periods, persons),
             "g": np.tile([1, 1, 1, 9, 9, 9], persons // 2)}  # fmt: skip
    levels = {"t": dpc.Levels([0, 1, 2]), "g": dpc.Levels([1, 9])}

    def ask(data: Data, schema: dpc.Schema, ledger: dpc.Ledger) -> Any:
        table = dpc.Table(fixed | data, dpc.Schema({**levels, **schema}), ledger, person="id")
        return plain(dpc.did(table, time="t", outcome="y", cohort="g", loss=LARGE))

    outcomes = np.random.default_rng(6).uniform(-0.15, 0.15, 3 * persons)
    return Way("did", "paths", ask, {"y": outcomes}, dpc.Schema({"y": dpc.Bounded(-1, 1)}), LARGE,
               {"person": "id"})  # fmt: skip


LINE = np.array([0.1, 0.3, -0.2, 0.2, 0.0, 0.1, 0.4, 0.5, -0.1])
START = 6


def _of_panel(task: str, method: Any, loss: Loss = PURE) -> Way:
    rng = np.random.default_rng(8)
    targets: Any = {"early": LINE, "late": LINE[::-1].copy()} if task == "synthetic_controls" else LINE

    def ask(data: Data, bounds: dpc.Bounded, ledger: dpc.Ledger) -> Any:
        given = dpc.Panel.from_arrays(data.copy(), targets, start=START, bounds=bounds, ledger=ledger)
        return plain(getattr(dpc, task)(given, loss=loss, method=method, force=True))

    name = str(getattr(method, "name", method))
    return Way(task, name, ask, 0.4 * LINE + 0.02 * rng.uniform(-1, 1, (40, len(LINE))), dpc.Bounded(-1, 1), loss,
               {"unit": "unit"})  # fmt: skip


WAYS = (
    _of_table("direction", "iqr", lambda of: dpc.direction(
        of, "x", "y", loss=PURE, score="iqr", method=dpc.papers.Holdout()), protect="test"),
    _of_table("direction", "hsic", lambda of: dpc.direction(
        of, "x", "y", loss=PURE, score="hsic", method=dpc.papers.Holdout()), protect="test"),
    _of_table("direction", "majority-vote", lambda of: dpc.direction(
        of, "x", "y", loss=PURE, method=dpc.methods.MajorityVote(blocks=3))),
    _of_table("direction", "majority-vote, last column constant", lambda of: dpc.direction(
        of, "x", list(of.schema)[-1], loss=PURE, method=dpc.methods.MajorityVote(blocks=3)), constant=True),
    _of_table("direction_all", "all pairs, one column constant", lambda of: dpc.direction_all(
        of, loss=PURE), constant=True),
    _of_table("ci_test", "kendall", lambda of: dpc.ci_test(of, "x", "y", given=["z"], loss=PURE, method="kendall")),
    _of_table("ci_test", "gcm", lambda of: dpc.ci_test(
        of, "x", "y", given=[], loss=PURE, method=dpc.methods.Gcm(resamples=19))),
    _of_table("ci_tests", "kendall", lambda of: dpc.ci_tests(of, [("x", "y", ["z"])], loss=PURE, method="kendall")),
    _of_table("ci_tests", "gcm", lambda of: dpc.ci_tests(
        of, [("x", "y", ["z"]), ("x", "z", [])], loss=PURE, method=dpc.methods.Gcm(resamples=19))),
    _of_table("discover", "moments", lambda of: dpc.discover(of, loss=APPROXIMATE, method="moments"), APPROXIMATE),
    _of_table("discover", "table", lambda of: dpc.discover(of, loss=PURE, method="table"), levels=True),
    _of_table("moments", "in rounds", lambda of: dpc.moments(of, ["x", "y"], loss=LARGE), LARGE),
    _of_table("cells", "counts", lambda of: dpc.cells(of, by=["a", "b"], loss=PURE), levels=True),
    _of_table("cells", "sums", lambda of: dpc.cells(of, by=["x"], values=["y"], loss=PURE)),
    _of_effect("stratified", lambda n: "auto"),
    _of_effect("trial by sizes", lambda n: dpc.methods.RandomizedTrial(sizes=[n - 3 * (n // 4), *[n // 4] * 3])),
    _of_effect("sample-aggregate", lambda n: dpc.methods.SampleAggregate(blocks=20)),
    _of_effect("trial by probabilities", lambda n: dpc.methods.RandomizedTrial(probabilities=[0.25] * 4)),
    _of_table("discontinuity", "bins", lambda of: dpc.discontinuity(
        of, running="x", outcome="y", cutoff=0.0, bins=5, loss=dpc.PureDP(10)), dpc.PureDP(10), missing="drop"),
    _of_paths(),
    _of_panel("synthetic_control", dpc.papers.OutputPerturbation()),
    _of_panel("synthetic_control", "matched"),
    _of_panel("synthetic_controls", "matched"),
    _of_panel("synthetic_controls", "factor", APPROXIMATE),
)  # fmt: skip


@dataclass(frozen=True)
class Attack:
    """An attack, and broken libraries by what is wrong with them, to one of which each task must fall in some way."""

    name: str
    succeeds: Callable[[Way], bool]
    broken: dict[str, Callable[[Way], bool]]


def fallen(attack: Attack, broken: str) -> list[Way]:
    """Return the ways that fall to an attack in a broken library."""
    return [way for way in WAYS if attack.broken[broken](way)]


ATTACKS = (
    Attack("planted NaN", planted_nan, {
        "NaN passes the clip": lambda way: planted_nan(way, keeps_nan),
        "records with NaN are dropped": lambda way: planted_nan(way, prepare=drops_nan),
    }),
    Attack("double spending", spent_twice, {
        "all of the loss to each answer": lambda way: spent_twice(way, all_to_each),
        "an allotment that is not booked": lambda way: spent_twice(way, never_booked),
    }),
    Attack("inferred domain", inferred_domain, {
        "a domain from the rows": lambda way: inferred_domain(way, learnt),
    }),
    Attack("miscalibrated sensitivity", miscalibrated, {
        "half of each bound": lambda way: miscalibrated(way, half_the_sensitivity),
    }),
)  # fmt: skip
