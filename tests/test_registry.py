"""The registry is complete, and its rows hold: a new mechanism, claim or call without its rows fails here.

Needed: for a mechanism its claim, worst-case pair, audit row and mutants; for a claim that a ``Sensitivity`` names its
falsifier row and mutants, which stand for a room's own search; for a public call that spends its grey-box row, audit
row and mutants; for a claim of composition, or a lemma, a marked test.

False alarms: the black-box audits here share 1e-6 equally; falsifier and grey box compare exact numbers.
"""

import ast
import importlib
import inspect
import os
import pkgutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal import mechanisms, papers
from dpcausal.audit import audit_samples
from dpcausal.audit.blackbox import BlackBoxAudit
from dpcausal.audit.falsifier import distance
from dpcausal.claims import claims
from dpcausal.core import run as asking
from dpcausal.mechanisms.additive import geometric
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.papers import AnmTestPrivacy, AnmTestPrivacyIqr, Holdout
from dpcausal.papers.direction import holdout
from dpcausal.papers.statistics import hsic as gaussian
from dpcausal.papers.statistics.iqr import IqrReach, iqr_signed_distance
from dpcausal.papers.statistics.rank import flip_sensitivity
from dpcausal.privacy.sensitivity import Norm, Query
from tests.direction.neighbours import ANSWERS
from tests.factories import make_quick
from tests.registry import discovery, effects, independence, iqr, training
from tests.registry.exact import less_noise
from tests.registry.index import MECHANISMS, SENSITIVITIES, TASKS, TEXTS, cases, mutants_of
from tests.registry.mechanisms import published_columns
from tests.registry.panels import PANEL_WAYS
from tests.registry.rows import MechanismRow, SensitivityRow, TaskRow, searched
from tests.sources import MODULES, tree
from tests.test_proofs import marked_in_tests

THE_GATE = {"gate:exact", "gate:release", "propose_test_release:tested"}
"""They take a query, but are what mechanisms are made of: ``exact`` answers without privacy only."""

CLAIMED = (1.0, 2.0)
PRIVATE = [row for row in MECHANISMS if row.claim is not None]
ATTAINED = [row for row in TASKS if row.attained]
CHEAP = [row for row in PRIVATE if row.draws >= 100_000]
EACH = 1e-6 / (len(CLAIMED) * len(MECHANISMS) + len(TASKS) + 2)


def names(rows: Any) -> list[str]:
    return [getattr(row, "name", None) or row.claim for row in rows]


def public_mechanisms() -> set[str]:
    """Return ``module:function`` of all public functions of mechanisms and papers of a query and an allotment."""
    found = set()
    for room in (mechanisms, papers):
        for info in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            module, place = importlib.import_module(info.name), info.name.rsplit(".", 1)[1]
            for name, function in inspect.getmembers(module, inspect.isfunction):
                own = function.__module__ == module.__name__ and not name.startswith("_")
                if own and {"query", "allotment"} <= set(inspect.signature(function).parameters):
                    found.add(f"{place}:{name}")
    return found


def proofs_in_code() -> set[str]:
    """Return every claim's name that stands as a text in a call or default of the sources that makes a sensitivity."""
    found = set()
    for path in MODULES:
        for node in ast.walk(tree(path)):
            parts: list[ast.AST] = []
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func).lower()
                if any(word in called for word in ("sensitivity", "calibration")):
                    parts = [*node.args, *(keyword.value for keyword in node.keywords)]
            elif isinstance(node, ast.FunctionDef) and "sensitivity" in node.name:
                parts = [default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None]
            found |= {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    return found & set(claims())


def spending_calls() -> set[str]:
    """Return the public functions of the package that take a table or a panel, and a loss."""
    members = {name: getattr(dpc, name) for name in dir(dpc) if not name.startswith("_")}
    return {
        name
        for name, member in members.items()
        if inspect.isfunction(member)
        and not name.startswith("plan_")  # from public numbers
        and "loss" in inspect.signature(member).parameters
        and {"table", "panel"} & set(inspect.signature(member).parameters)
    }


def test_every_public_mechanism_has_a_row() -> None:
    assert public_mechanisms() - THE_GATE == {row.function for row in MECHANISMS}


def test_every_claim_has_one_row_of_its_kind() -> None:
    rows = [row.claim for row in (*SENSITIVITIES, *TEXTS)]
    assert len(rows) == len(set(rows))
    assert set(rows) | {str(row.claim) for row in PRIVATE} == set(claims())
    assert not set(rows) & {row.claim for row in PRIVATE}


def test_every_claim_that_a_sensitivity_names_has_a_falsifier_row() -> None:
    # A mechanism's claim is none about a statistic: "gaussian" is a kernel's name there, too.
    assert proofs_in_code() - {row.claim for row in PRIVATE} == {row.claim for row in SENSITIVITIES}


def test_a_claim_without_a_falsifier_row_says_why() -> None:
    assert {row.kind for row in TEXTS} == {"lemma", "composition"}
    assert all(row.why for row in TEXTS)
    composition = {name for name, claim in claims().items() if claim.page == "privacy/composition.md"}
    assert {row.claim for row in TEXTS if row.kind == "composition"} == composition
    assert {row.claim for row in TEXTS} <= marked_in_tests(), "a test is to be marked: pytest.mark.proves(claim)"


def test_every_call_that_spends_has_rows_for_all_its_ways() -> None:
    assert spending_calls() == {row.function for row in TASKS}
    ways = {"direction verdict", "direction majority-vote", "direction_all by epsilon", "direction_all by rho"}
    ways |= {"direction_all test half"}
    ways |= {f"direction holdout {score}" for score in holdout.PROOFS}
    ways |= {f"direction holdout {score} scores" for score in holdout.VALUE_PROOFS}
    ways |= {f"direction {method}" for method in iqr.METHODS}
    ways |= {f"direction published {score}" for score in AnmTestPrivacy.scores}
    ways |= training.WAYS | independence.WAYS | discovery.WAYS | effects.WAYS
    ways |= PANEL_WAYS
    assert set(names(TASKS)) == ways
    assert all(set(row.claims) <= set(claims()) and row.claims for row in TASKS)


def test_every_row_names_mutants_that_exist() -> None:
    mutants, _ = cases()
    for row in (*MECHANISMS, *SENSITIVITIES, *TASKS):
        assert mutants_of(row) and set(mutants_of(row)) <= set(mutants), names([row])


@pytest.mark.parametrize("row", SENSITIVITIES, ids=names(SENSITIVITIES))
def test_no_neighbours_move_a_statistic_past_its_bound(row: SensitivityRow, monkeypatch: pytest.MonkeyPatch) -> None:
    # Small tiles only leave out empty sums: the Gaussian kernels of twenty rows in a fiftieth of the time.
    monkeypatch.setattr(gaussian, "TILE", 32)
    claim = row.sensitivity(max(row.sizes))
    rounds = searched(row)
    assert claim.proof == row.claim or row.claim == "block-votes"
    pairs, worst = sum(found.evaluations for found in rounds), max(rounds, key=lambda found: found.ratio)
    assert pairs >= 8_000
    assert not worst.violated, worst.summary()
    assert worst.ratio >= row.reached, worst.summary()
    print(f"{row.claim}: {pairs:,d} neighbour pairs, at most {worst.ratio:.4f} of the bound")


@pytest.mark.parametrize("row", PRIVATE, ids=names(PRIVATE))
def test_a_mechanism_shows_its_name_and_its_worst_pair_at_the_gate(row: MechanismRow) -> None:
    with recording_gate() as recording:
        for answer in row.pair:
            row.draw(answer, 1.0, 1, 1.0)
    one, other = recording.passages
    assert one.event.mechanism == other.event.mechanism == row.name
    assert one.event == other.event
    assert distance(one.value, other.value, Norm(one.event.norm)) == pytest.approx(one.bound, rel=1e-8)
    assert one.bound == 1


@pytest.mark.parametrize("epsilon", CLAIMED)
@pytest.mark.parametrize("row", CHEAP, ids=names(CHEAP))
def test_the_black_box_shows_most_of_a_claim_where_many_outputs_cost_little(row: MechanismRow, epsilon: float) -> None:
    # All mechanisms are audited by their exact laws: tests/audit/test_exact.py.
    with dpc.simulated_noise(21):
        first, second = [row.draw(answer, epsilon, row.draws, 1.0) for answer in row.pair]
    audit = audit_samples(first, second, claimed=epsilon, delta=row.delta(epsilon), false_alarm=EACH)
    assert not audit.violated, audit.summary()
    assert audit.lower_bound >= 0.82 * epsilon, audit.summary()
    print(f"{row.name}: ε at least {audit.lower_bound:.3f}, claimed {epsilon:g}, {row.draws:,d} draws a side")


@pytest.mark.parametrize("row", TASKS, ids=names(TASKS))
def test_a_call_brings_the_same_to_the_gate_on_neighbours_in_silence(
    row: TaskRow, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    make_quick(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(4):
            for answers in ANSWERS.values():
                audit = row.compare(seed, answers)
                assert audit.passages and not audit.violated, audit.summary()
    assert capfd.readouterr() == ("", "")


EPSILON, DRAWN = (1.0, 3_300) if os.environ.get("AUDIT") == "full" else (3.0, 800)
"""At ε = 3 the loss stands out of a fourth of the draws that show the same share of it at ε = 1: ``make audit``."""


def worst_pair_audited(row: TaskRow) -> BlackBoxAudit:
    with dpc.simulated_noise(22):
        first, second = [row.draw(side, EPSILON, DRAWN) for side in (0, 1)]
    return audit_samples(first, second, claimed=EPSILON, delta=row.delta, pilot=DRAWN // 11, false_alarm=EACH)


@pytest.mark.parametrize("row", ATTAINED, ids=names(ATTAINED))
def test_a_call_keeps_its_claim_on_its_worst_pair(row: TaskRow) -> None:
    # Of other pairs a hundred draws show little beside what the gate compares: ``python -m benchmarks audit_table``.
    audit = worst_pair_audited(row)
    assert not audit.violated, audit.summary()
    assert audit.lower_bound >= row.attained * audit.claimed, audit.summary()


@pytest.mark.parametrize("name", ["direction training hsic", "direction majority-vote", "direction holdout iqr"])
def test_a_call_with_half_of_its_noise_is_flagged_on_its_worst_pair(name: str) -> None:
    with less_noise(0.5):
        assert worst_pair_audited(next(row for row in ATTAINED if row.name == name)).violated


def runs(call: Callable[[], Any]) -> list[Any]:
    return [call() for _ in range(160)]


def test_the_published_interquartile_algorithm_is_shown_in_violation_by_160_calls_on_each_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole call, with consent and an in-memory ledger: it states (1, 3e-6), printed as (9ε, 3δ) for four IQRs."""
    monkeypatch.setattr(asking, "public_generator", iqr.same_split)
    one, other = (iqr.call(columns, AnmTestPrivacyIqr) for columns in iqr.neighbours())
    with dpc.simulated_noise(31):
        audit = audit_samples(runs(one), runs(other), claimed=1.0, delta=3e-6, pilot=30)
    assert audit.violated and audit.lower_bound > 1.5, audit.summary()
    assert audit.event == "output is None"


def test_the_corrected_call_in_its_place_is_not_flagged_on_that_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "public_generator", iqr.same_split)
    one, other = (iqr.call(columns, Holdout) for columns in iqr.neighbours())
    with dpc.simulated_noise(32):
        audit = audit_samples(runs(one), runs(other), claimed=1.0, pilot=30, false_alarm=EACH)
        assert None not in (one(), other())
    assert not audit.violated, audit.summary()


def test_the_flip_distance_in_its_place_is_not_flagged_on_that_pair() -> None:
    x, neighbour = published_columns()
    loss = dpc.PureDP(3)
    others = IqrReach(neighbour, -10, 10)

    def draws(z: int) -> Any:
        # One vector: its entries have independent noise of the law of a single answer.
        claim = replace(flip_sensitivity("iqr-flip-distance"), norm=Norm.L1)
        allotment = dpc.Ledger.in_memory(loss, accept_large_epsilon=True).charge(loss, task="audit")
        return geometric(Query(np.full(4_000, z), claim, "margin"), allotment, loss)

    one, other = (iqr_signed_distance((IqrReach(c, -10, 10), others), (others, others)) for c in (x, neighbour))
    assert (one, other) == (-1, 0)
    with dpc.simulated_noise(33):
        audit = audit_samples(draws(one), draws(other), claimed=3.0, false_alarm=EACH)
    assert not audit.violated, audit.summary()
    assert audit.lower_bound > 1.5, audit.summary()
