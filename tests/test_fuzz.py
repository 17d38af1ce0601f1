"""Random calls: whatever goes in, only this library's errors come out, nothing warns, and no budget goes astray.

``PROPERTIES`` pairs a strategy with a check; here each runs a share of 2,300 cases, and
``python -m benchmarks audit_fuzz`` runs as many as asked.  The faults that are known by name are built one by one.
"""

import contextlib
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.errors import DpCausalError
from dpcausal.papers import calculators
from dpcausal.privacy.loss import RHO_UNITS, implies
from dpcausal.privacy.sensitivity import PrivacyUnit
from tests import strategies as draws
from tests.commands import command
from tests.strategies import BACKENDS, Outcome, in_backend, observe

SCHEMA = dpc.Schema({"x": dpc.Bounded(-1, 1), "y": dpc.Bounded(-1, 1)})


def demand(outcome: Outcome) -> Outcome:
    """Assert that a call answered or raised one of our errors, and neither warned nor printed."""
    error = outcome.error
    if error is not None and not isinstance(error, DpCausalError):
        raise AssertionError(f"{type(error).__name__} came out: {error}") from error
    assert not outcome.warned
    assert not outcome.printed
    return outcome


# ------------------------------------------------------------------------------------------- tables


def check_table(case: tuple[tuple[pa.Table, dpc.Schema], str], directory: Path) -> None:
    (table, schema), backend = case
    frame = in_backend(backend, table, directory)
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    made = demand(observe(lambda: dpc.Table(frame, schema, ledger, missing="impute"))).answer
    if made is None:
        return
    # A table that was accepted can be read: from here on an error could depend on a value.
    cleaned = made.columns(schema.names)
    assert not ledger.entries()
    for name, column in schema.items():
        values = cleaned[name]
        assert values.shape == (made.n,)
        if isinstance(column, dpc.Bounded):
            assert values.dtype == np.float64
            assert column.lower <= values.min()
            assert values.max() <= column.upper
        else:
            assert values.dtype == np.int64
            assert 0 <= values.min() <= values.max() < len(column.labels)


# ------------------------------------------------------------------------------- schemas and amounts


def check_schema(case: tuple[str, tuple[Any, ...]], directory: Path) -> None:
    kind, given_values = case
    makers: dict[str, Callable[..., Any]] = {
        "Bounded": dpc.Bounded,
        "Levels": lambda a, b, c: dpc.Levels(a, other=b),
        "list of levels": lambda a, b, c: dpc.Levels([a, b], other=c),
        "Schema": lambda a, b, c: dpc.Schema({a if isinstance(a, str) else "x": b, "y": c}),
        "bare Schema": lambda a, b, c: dpc.Schema(a),
        "Table": lambda a, b, c: dpc.Table(
            a, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(1)), max_rows=b, missing="impute"
        ),
    }
    made = demand(observe(lambda: makers[kind](*given_values))).answer
    if isinstance(made, dpc.Bounded):
        assert made.lower < made.midpoint < made.upper
    if made is not None:
        assert repr(made)


def check_amount(case: tuple[str, Any, Any], directory: Path) -> None:
    kind, first, second = case
    made = demand(observe(lambda: getattr(dpc, kind)(*([first, second] if kind == "ApproxDP" else [first])))).answer
    if made is not None:
        size = made.rho if kind == "ZCDP" else made.epsilon
        assert 0 < size < float("inf")
        assert repr(made)


# ------------------------------------------------------------------------------------------ ledgers


def units(exact: Fraction, scale: int) -> int:
    """Return an amount in whole units, rounded up: worked out here, not taken from the library."""
    return -(-exact.numerator * scale // exact.denominator)


def stated(loss: Any) -> tuple[int, int, int]:
    """Return what a loss must add to the sums: units of ε, δ and ρ."""
    if isinstance(loss, dpc.ZCDP):
        return 0, 0, units(loss.exact_rho, RHO_UNITS)
    delta = units(loss.exact_delta, 10**18) if isinstance(loss, dpc.ApproxDP) else 0
    return units(loss.exact_epsilon, 10**9), delta, units(loss.exact_epsilon**2 / 2, RHO_UNITS)


def check_ledger(case: tuple[Any, list[Any]], directory: Path) -> None:
    budget, asked = case
    made = demand(observe(lambda: dpc.Ledger.in_memory(budget)))
    if made.answer is None:
        return
    ledger = made.answer
    for loss, task in asked:
        before, totals, head = ledger.remaining, ledger._store.account().totals, ledger.head
        outcome = demand(observe(lambda loss=loss, task=task: ledger.charge(loss, task=task)))
        after = ledger._store.account().totals
        if outcome.error is not None:
            assert (ledger.remaining, after, ledger.head) == (before, totals, head)
            continue
        change = after.epsilon - totals.epsilon, after.delta - totals.delta, after.rho - totals.rho
        assert all(0 <= most - least < 1 for least, most in zip(change, stated(loss), strict=True))
        assert ledger.head != head
        if isinstance(budget, dpc.PureDP):
            left = budget.exact_epsilon - Fraction(after.epsilon) / 10**9
            assert left >= 0
            assert abs(left - Fraction(repr(ledger.remaining.epsilon))) < Fraction(2, 10**9)
        if isinstance(budget, dpc.ZCDP):
            left = budget.exact_rho - Fraction(after.rho) / RHO_UNITS
            assert left >= 0
            assert abs(left - Fraction(repr(ledger.remaining.rho))) < Fraction(2, 10**9)
    assert ledger.verify().ok


# ---------------------------------------------------------------------------------------- direction


def paid(budget: Any, arguments: dict[str, Any]) -> dpc.Ledger:
    """Return a ledger that protects what a question says that it does, if it says that well."""
    half = getattr(arguments.get("method"), "half", None)
    return dpc.Ledger.in_memory(budget, **({} if half is None else PrivacyUnit(half).arguments))


def answered(ask: Callable[..., Any], frame: Any, schema: dpc.Schema, budget: Any, arguments: Any) -> Any:
    """Return the answer of a call and what was charged for it, or ``None``: what is refused is refused unpaid."""
    ledger = dpc.Ledger.without_privacy() if budget is None else paid(budget, arguments)
    words = arguments | ({"loss": dpc.NoPrivacy()} if budget is None else {})
    table = demand(observe(lambda: dpc.Table(frame, schema, ledger, missing="impute"))).answer
    if table is None:
        return None
    before = ledger._store.account().totals
    with dpc.simulated_noise(1):
        outcome = demand(observe(lambda: ask(table, **words)))
    after = ledger._store.account().totals
    if outcome.error is not None:
        assert after == before
        return None
    answer = outcome.answer
    assert len(ledger.entries()) == 1 and not answer.guarantee.private
    assert repr(answer) and answer.summary() and answer.to_json()
    assert pickle.loads(pickle.dumps(answer)) == answer
    return answer, after


def check_direction(case: tuple[Any, ...], directory: Path) -> None:
    (table, schema), backend, budget, names, arguments = case
    frame = in_backend(backend, table, directory)
    found = answered(lambda made, **words: dpc.direction(made, *names, **words), frame, schema, budget, arguments)
    if found is not None and budget is not None:
        answer, after = found
        charged = after.epsilon, after.delta, after.rho
        assert all(0 <= most - least < 1 for least, most in zip(charged, stated(answer.guarantee.loss), strict=True))


def check_many(case: tuple[Any, ...], directory: Path) -> None:
    (table, schema), budget, pairs, arguments = case
    frame = in_backend("numpy", table, directory)
    found = answered(lambda made, **words: dpc.direction_all(made, pairs, **words), frame, schema, budget, arguments)
    if found is None:
        return
    answer, after = found
    assert len(answer.directions) == len(answer.pairs) * len(answer.scores)
    if budget is None:
        return
    # The whole is charged, and in ε no more or less than the parts add up to.
    loss = answer.guarantee.loss
    epsilon, delta, _ = stated(loss)
    assert 0 <= epsilon - after.epsilon < 1 and 0 <= delta - after.delta < 1
    parts = [one.spent.exact_epsilon for one in answer.directions]
    squares = sum(part**2 for part in parts) / 2
    if isinstance(loss, dpc.PureDP):
        assert sum(parts) == loss.exact_epsilon
        assert 0 <= Fraction(after.rho, RHO_UNITS) - squares < Fraction(1, 10**9)
        assert Fraction(after.rho, RHO_UNITS) <= Fraction(units(loss.exact_epsilon**2 / 2, 10**9), 10**9)
    else:
        assert squares <= Fraction(after.rho, RHO_UNITS)
        assert implies(dpc.ZCDP(squares), loss)


# ------------------------------------------------------------------------------- every other entrance


ENTRANCES: dict[str, Callable[..., Any]] = {
    "Ledger.open": lambda a, b: dpc.Ledger.open(a, b),
    "Ledger.create": lambda a, b: dpc.Ledger.create(a, budget=b),
    "Ledger.in_memory": lambda a, b: dpc.Ledger.in_memory(a),
    "charge": lambda a, b: dpc.Ledger.in_memory(dpc.PureDP(1)).charge(dpc.PureDP(0.1), task="t", detail=a, zcdp=b),
    "unit": lambda a, b: dpc.Ledger.in_memory(dpc.PureDP(1)).charge(dpc.PureDP(0.1), task="t", unit=a, relation=b),
    "from_toml": lambda a, b: dpc.Schema.from_toml(a),
    "simulated_noise": lambda a, b: dpc.simulated_noise(a).__enter__(),
    "explain": lambda a, b: dpc.explain(a),
    "simulate": lambda a, b: dpc.simulate.anm_pair(a, seed=b),
    "direction": lambda a, b: dpc.direction(a, b, "y", loss=dpc.PureDP(1)),
    "direction_all": lambda a, b: dpc.direction_all(a, b, loss=dpc.PureDP(1)),
    "two_draws": calculators.two_draws,
    "four_draws": calculators.four_draws,
    "one_draw": calculators.one_draw,
    "flip_draw": calculators.flip_draw,
}
"""Public functions of any two values."""


def check_entrance(case: tuple[str, Any, Any], directory: Path) -> None:
    entrance, first, second = case
    with contextlib.chdir(directory):
        demand(observe(lambda: ENTRANCES[entrance](first, second)))


def check_command(case: list[str], directory: Path) -> None:
    with contextlib.chdir(directory), pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPCAUSAL_WITNESS", "witnesses")  # each case begins with a ledger that nobody saw
        shutil.rmtree("witnesses", ignore_errors=True)
        if not Path("table.csv").exists() or not Path("schema.toml").exists():
            Path("schema.toml").write_text("[x]\nlower = -1\nupper = 1\n[y]\nlower = -1\nupper = 1\n")
            Path("table.csv").write_text("x,y\n" + "0.5,NaN\n-1,zz\n,7\n" * 4)
        for left in Path().glob("spent.ledger*"):
            left.unlink()
        dpc.Ledger.create("spent.ledger", budget=dpc.PureDP(1)).close()
        outcome = observe(lambda: command(*case))
    result = outcome.answer
    assert not outcome.warned
    assert result.exception is None or isinstance(result.exception, SystemExit), (case, result.exception)
    assert result.exit_code in (0, 1, 2, 3, 4)
    if result.exit_code in (3, 4):
        assert len(result.stderr.splitlines()) == 1


@dataclass(frozen=True)
class Property:
    """A strategy of cases, what must hold of each, and how many the suite runs."""

    cases: st.SearchStrategy[Any]
    check: Callable[[Any, Path], None]
    share: int


backends = st.sampled_from(sorted(BACKENDS))
anything = st.one_of(draws.junk, draws.number, draws.text)
words = st.one_of(
    st.sampled_from(
        [
            "direction", "ledger", "create", "show", "verify", "explain", "table.csv", "schema.toml", "spent.ledger",
            "direction-all", "--pair", "--scores", "--alpha", "0.25", "x,y", "hsic,lsnm",
            "x", "y", "--schema", "--ledger", "--json", "--epsilon", "--delta", "--rho", "--score", "--protect",
            "--blocks", "1", "0.5", "-1", "nan", "inf", "hsic", "test", "kendall-tau", "--help",
        ]
    ),
    draws.text.filter(lambda word: word != "demo"),
)
asks = ["direction", "table.csv", "x", "y", "--schema", "schema.toml", "--ledger", "spent.ledger", "--epsilon"]
commands = st.one_of(
    st.lists(words, max_size=8),
    st.tuples(st.sampled_from(["1", "0", "nan", "-1", "25", "1e-320"]), st.lists(words, max_size=3)).map(
        lambda pair: [*asks, pair[0], *pair[1]]
    ),
)

PROPERTIES = {
    "tables": Property(st.tuples(draws.tables_with_schemas(), backends), check_table, 400),
    "schemas": Property(
        st.tuples(
            st.sampled_from(["Bounded", "Levels", "list of levels", "Schema", "bare Schema", "Table"]),
            st.tuples(*[st.one_of(anything, draws.fit_column, st.lists(anything, max_size=3))] * 3),
        ),
        check_schema,
        300,
    ),
    "amounts": Property(
        st.tuples(st.sampled_from(["PureDP", "ApproxDP", "ZCDP"]), draws.amount, draws.amount), check_amount, 300
    ),
    "ledgers": Property(
        st.tuples(
            draws.often(draws.fit_loss, draws.junk),
            st.lists(
                st.tuples(draws.often(draws.fit_loss, draws.junk), draws.often(st.just("t"), anything)), max_size=6
            ),
        ),
        check_ledger,
        400,
    ),
    "direction": Property(
        st.tuples(
            draws.tables_with_schemas(least=6, most=20, floats_only=True),
            draws.often(st.just("numpy"), backends),
            draws.often(st.sampled_from([dpc.PureDP(3), dpc.ApproxDP(3, 0.5)]), st.none()),
            draws.often(st.just(("x", "y")), st.tuples(anything, anything)),
            draws.direction_arguments,
        ),
        check_direction,
        300,
    ),
    "directions": Property(
        st.tuples(
            draws.tables_with_schemas(least=6, most=20, floats_only=True),
            draws.often(st.sampled_from([dpc.PureDP(3), dpc.ApproxDP(3, 0.5), dpc.ZCDP(9)]), st.none()),
            draws.pairs_of_columns,
            draws.many_arguments,
        ),
        check_many,
        200,
    ),
    "entrances": Property(st.tuples(st.sampled_from(sorted(ENTRANCES)), anything, anything), check_entrance, 300),
    "commands": Property(commands, check_command, 100),
}
"""What is thrown at the library; the shares sum to 2,300."""


def run(property_name: str, cases: int, *, fixed: bool = True) -> int:
    """Run so many cases of a property and return how many ran; a failure is raised as hypothesis found it."""
    chosen, ran = PROPERTIES[property_name], 0
    directory = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))

    @settings(
        max_examples=cases, deadline=None, database=None, derandomize=fixed, suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(case=chosen.cases)
    def each(case: Any) -> None:
        nonlocal ran
        ran += 1
        chosen.check(case, directory)

    try:
        each()
    finally:
        shutil.rmtree(directory)
    return ran


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_random_calls_end_in_an_answer_or_in_one_of_our_errors(name: str) -> None:
    ran = run(name, PROPERTIES[name].share)
    print(f"= {ran} random calls")
    assert ran >= PROPERTIES[name].share
