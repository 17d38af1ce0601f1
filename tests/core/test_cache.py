"""Cached results: the same question is paid for once, and nothing but its released answer ever comes back."""

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.codec import NotStorableError, encode
from dpcausal.core import cache
from dpcausal.errors import LedgerError, NotCachedWarning, ParameterError
from dpcausal.privacy.noise import generator_from_seed
from tests.core import golden
from tests.factories import told
from tests.privacy.kill_loops import finish, start
from tests.refusals import rule_of
from tests.voices import together

coins = generator_from_seed(5)
N = 2500
COLUMNS = {
    "a": coins.integers(0, 2, N), "b": coins.integers(0, 2, N), "u": coins.normal(size=N), "v": coins.normal(size=N),
}  # fmt: skip
SCHEMA = dpc.Schema(
    {"a": dpc.Levels([0, 1]), "b": dpc.Levels([0, 1]), "u": dpc.Bounded(-4, 4), "v": dpc.Bounded(-4, 4)}
)
BUDGET = dpc.ApproxDP(9, 1e-5)
LOSS = dpc.PureDP(0.5)


def table(ledger: dpc.Ledger, columns: dict[str, Any] = COLUMNS, schema: dpc.Schema = SCHEMA, **more: Any) -> dpc.Table:
    return dpc.Table(columns, schema, ledger, **({"name": "study"} | more))


@pytest.mark.parametrize("name", golden.CALLS)
def test_the_same_question_is_paid_once_and_answered_from_the_file_ever_after(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(ledger: dpc.Ledger, **more: bool) -> Any:
        monkeypatch.setattr(cache, "_frames", {})  # as in another process, which reads the rows again
        return golden.CALLS[name](ledger, 5, **more)

    with dpc.Ledger.create(tmp_path / "study.ledger", budget=golden.BUDGET, **golden.unit_of(name)) as ledger:
        first = call(ledger)
        left = ledger.remaining
        assert first.guarantee.cached == ""
    with dpc.Ledger.open(tmp_path / "study.ledger") as ledger:
        again = call(ledger)
        assert ledger.remaining == left and len(ledger.entries()) == 1 and ledger.verify().ok
        assert told(again) == told(first) and type(again) is type(first)
        assert again.guarantee == first.guarantee and again.guarantee.cached.startswith("spend 1 of this ledger paid")
        if isinstance(again, dpc.Independence):
            assert "Cached result, nothing was spent: spend 1" in again.details()
        anew = call(ledger, refresh=True)
        assert len(ledger.entries()) == 2 and anew.guarantee.cached == ""
        assert call(ledger).guarantee.cached.startswith("spend 2")  # the newest


def test_a_kept_graph_is_asked_further_free_as_the_first_was(tmp_path: Path) -> None:
    ledger = dpc.Ledger.create(tmp_path / "l", budget=BUDGET)
    frame = golden.table(ledger, 5)
    first, kept_one = (dpc.discover(frame, columns=["a", "b", "u"], loss=LOSS) for _ in range(2))
    assert kept_one.graph == first.graph and kept_one.margin == first.margin and kept_one.terms == first.terms
    assert kept_one.release.discover(alpha=0.2).graph == first.release.discover(alpha=0.2).graph
    assert dpc.Release.from_json(kept_one.release.to_json()).guarantee == first.guarantee


def other(**changed: Any) -> Any:
    def ask(ledger: dpc.Ledger) -> Any:
        words = {"given": ["u"], "loss": LOSS, "alpha": 0.05, "method": "gcm"} | {
            name: value for name, value in changed.items() if name in ("given", "loss", "alpha", "method")
        }
        more = {name: value for name, value in changed.items() if name not in (*words, "where", "share", "xy")}
        asked = table(ledger, **more)
        if "where" in changed:
            asked = asked.where("v", at_least=changed["where"], share=changed.get("share"))
        return dpc.ci_test(asked, *changed.get("xy", ("a", "b")), **words)

    return ask


FEWER = {name: values[:-1] for name, values in COLUMNS.items()}
WIDER = dpc.Schema({**SCHEMA, "u": dpc.Bounded(-4, 5)})
CHANGES: dict[str, dict[str, Any]] = {
    "name": {"name": "another"}, "n": {"columns": FEWER}, "bounds": {"schema": WIDER},
    "levels": {"schema": dpc.Schema({**SCHEMA, "a": dpc.Levels([0, 1], other=0)})}, "missing": {"missing": "impute"},
    "alpha": {"alpha": 0.1}, "given": {"given": ["v"]}, "order": {"xy": ("b", "a")}, "loss": {"loss": dpc.PureDP(0.6)},
    "note": {"loss": dpc.ApproxDP(0.5, 1e-9)}, "method": {"method": "auto"},
    "option": {"method": dpc.methods.Gcm(blocks=40)}, "where": {"where": 0.123456789},
    "where nearby": {"where": 0.1234567891}, "share": {"where": 0.123456789, "share": 0.5},
}  # fmt: skip


def test_whatever_is_public_and_differs_is_another_question() -> None:
    ledger = dpc.Ledger.in_memory(BUDGET)
    asked = [other(), *(other(**change) for change in CHANGES.values())]
    for number, ask in enumerate(asked, start=1):
        ask(ledger)
        assert len(ledger.entries()) == number, ["", *CHANGES][number - 1]
    for ask in asked:
        assert ask(ledger).guarantee.cached
    assert len({json.loads(entry.detail)["asked"] for entry in ledger.entries()}) == len(asked)


def test_persons_and_outcomes_of_panels_tell_tables_apart() -> None:
    first = golden.panel(dpc.Ledger.in_memory(BUDGET, unit="unit"))
    frame = {"id": np.arange(N), **COLUMNS}
    rows = dpc.Table(frame, SCHEMA, dpc.Ledger.in_memory(BUDGET), name="s")
    persons = dpc.Table(frame, SCHEMA, dpc.Ledger.in_memory(BUDGET, person="id"), name="s", person="id")
    assert rows.identity != persons.identity
    assert first.identity["_named"] == ("unit", "year", "y") and [*first.identity["_series"]] == [0]


def test_no_row_is_part_of_a_question_or_of_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """To a later process other rows under the same name are the same: the lookup cannot have looked at them."""
    ledger = dpc.Ledger.in_memory(BUDGET)
    swapped = {**COLUMNS, "a": COLUMNS["b"], "b": COLUMNS["b"]}
    first = other()(ledger)
    monkeypatch.setattr(cache, "_frames", {})
    assert other(columns=swapped)(ledger).statistic == first.statistic
    assert len(ledger.entries()) == 1


def test_without_a_name_nothing_is_kept_and_each_call_pays() -> None:
    ledger = dpc.Ledger.in_memory(BUDGET)
    for _ in range(2):
        other(name="")(ledger)
    assert [ledger.answer(number) for number in (1, 2)] == [None, None]
    assert len(ledger.entries()) == 2 and "asked" not in json.loads(ledger.entries()[0].detail)


def test_exact_and_simulated_answers_are_neither_kept_nor_given_for_released_ones() -> None:
    exact = dpc.Ledger.without_privacy()
    for _ in range(2):
        other(loss=dpc.NoPrivacy())(exact)
    assert len(exact.entries()) == 2 and exact.answer(1) is None
    ledger = dpc.Ledger.in_memory(BUDGET)
    with dpc.simulated_noise(1):
        other()(ledger)
    released = other()(ledger)
    with dpc.simulated_noise(1):
        simulated = other()(ledger)
    assert ledger.answer(1) is None and ledger.answer(3) is None and ledger.answer(2) is not None
    assert not simulated.guarantee.private and not simulated.guarantee.cached and released.guarantee.private


def test_a_law_of_x_has_no_words_so_its_question_is_not_kept() -> None:
    ledger = dpc.Ledger.in_memory(BUDGET)
    law = dpc.ModelX(lambda z: 0.0 * z[:, 0], 1.0)
    assert cache.cache_key(ledger, "t", [], LOSS) and not cache.cache_key(dpc.Ledger.without_privacy(), "t", [], LOSS)
    with pytest.raises(NotStorableError):
        encode(law)
    for _ in range(2):
        dpc.ci_test(table(ledger), "u", "v", given=["a"], loss=LOSS, method=dpc.methods.Crt(model_x=law))
    assert len(ledger.entries()) == 2 and ledger.answer(1) is None


def test_a_method_of_the_callers_is_asked_each_time_whatever_its_name() -> None:
    """Seen to fail: a class of the library's name was given the library's cached result."""
    ledger = dpc.Ledger.in_memory(BUDGET)

    class Gcm(dpc.methods.Gcm):
        pass

    for method in (dpc.methods.Gcm(), Gcm(), Gcm()):
        found = dpc.ci_test(table(ledger), "u", "v", given=["a"], loss=LOSS, method=method)
        assert not found.guarantee.cached
    assert len(ledger.entries()) == 3 and ledger.answer(1) is not None and ledger.answer(2) is None


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dpcausal.core.run.store", die)


@pytest.mark.usefixtures("dying")
def test_a_run_that_ends_between_spend_and_answer_is_not_paid_again_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = dpc.Ledger.create(tmp_path / "l", budget=BUDGET)
    with pytest.raises(KeyboardInterrupt):
        other()(ledger)
    monkeypatch.undo()
    left, head = ledger.remaining, ledger.head
    assert rule_of(lambda: other()(ledger), LedgerError) == "spent-without-answer"
    assert (ledger.remaining, ledger.head) == (left, head)
    golden.CALLS["direction"](ledger, 5)  # other questions go on
    assert not dpc.ci_test(table(ledger), "a", "b", given=["u"], loss=LOSS, method="gcm", refresh=True).guarantee.cached
    assert other()(ledger).guarantee.cached.startswith("spend 3")


def test_processes_that_ask_the_same_at_once_pay_once(tmp_path: Path) -> None:
    path = tmp_path / "l"
    dpc.Ledger.create(path, budget=BUDGET).close()

    def ask() -> None:
        while True:
            try:
                other()(dpc.Ledger.open(path))
                return
            except LedgerError as error:
                if error.rule != "spent-without-answer":
                    raise

    workers = [start(ask) for _ in range(3)]
    assert [finish(worker) for worker in workers] == [0, 0, 0]
    assert len(dpc.Ledger.open(path).entries()) == 1


def test_threads_that_ask_the_same_at_once_pay_once() -> None:
    ledger = dpc.Ledger.in_memory(BUDGET)
    found: list[Any] = []

    def ask() -> None:
        try:
            found.append(other()(ledger).statistic)
        except LedgerError:
            found.append(None)

    together(*[ask] * 4)
    assert len(ledger.entries()) == 1 and len({one for one in found if one is not None}) == 1


def test_what_cannot_be_written_reaches_its_caller_with_a_warning_and_counts_as_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: an answer that the full disk did not take came without a word, and no later call had it."""
    ledger = dpc.Ledger.create(tmp_path / "l", budget=BUDGET)

    def full(*_: Any) -> None:
        raise LedgerError("the disk is full")

    monkeypatch.setattr(dpc.Ledger, "store", full)
    with pytest.warns(NotCachedWarning) as told:
        assert other()(ledger).decision
    assert told[0].message.spend == 1  # type: ignore[union-attr]
    with warnings.catch_warnings(), pytest.raises(NotCachedWarning) as raised:
        warnings.simplefilter("error")
        other(alpha=0.2)(ledger)
    assert raised.value.answer.decision and raised.value.spend == 2  # not lost where warnings are errors
    assert pickle.loads(pickle.dumps(raised.value)).answer == raised.value.answer
    monkeypatch.undo()
    assert rule_of(lambda: other()(ledger), LedgerError) == "spent-without-answer"


def test_an_answer_of_another_version_is_not_guessed_at() -> None:
    ledger = dpc.Ledger.in_memory(BUDGET)
    ledger.charge(LOSS, task="t", key="f" * 64)
    ledger.store(1, {"released": {"kind": "Gone", "fields": {}}, "at": "2026"})
    with pytest.raises(LedgerError, match="another version"):
        cache.load_cached(ledger, "f" * 64, False, None)
    with pytest.raises(ParameterError):
        cache.load_cached(ledger, "f" * 64, 1, None)  # type: ignore[arg-type]


def test_each_part_of_a_table_or_panel_is_public_or_is_left_out() -> None:
    """A new part must be placed here by hand: left out it would mix questions up, a private one would be hashed."""
    ledger = dpc.Ledger.in_memory(BUDGET)
    assert set(table(ledger).identity) == {
        "cluster", "ids", "inside", "max_rows_per_person", "missing", "n", "name", "person", "schema", "share",
        "weight",
    }  # fmt: skip
    assert set(golden.panel(dpc.Ledger.in_memory(BUDGET, unit="unit")).identity) == {
        "_named", "_series", "_starts", "bounds", "missing", "n", "name", "times", "treated",
    }  # fmt: skip
