"""A share of records at the bounds of an outcome is said only where the released sums show it."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.effects.values_at_bounds import LEAST_SHARE, MARGIN, OutcomeSums, narrow_bounds_text, share_at_bounds
from tests.study.made import write

RNG = np.random.default_rng(4)
EXACT = np.zeros((3, 3))
SHAPES: dict[str, Any] = {
    "both ends": RNG.normal(0.5, 3.0, 4000), "the upper end": RNG.normal(3.0, 1.0, 4000), "inside": RNG.random(4000),
    "low counts": RNG.poisson(3, 4000) / 52, "near 0": RNG.random(4000) / 100, "a mixture": RNG.beta(0.1, 0.2, 4000),
    "in the middle": RNG.normal(0.5, 0.1, 4000), "just within the margin": RNG.choice([0.049, 0.951], 4000),
}  # fmt: skip


def sums_of(values: Any) -> Any:
    return np.array([len(values), values.sum(), (values**2).sum()])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_share_that_is_said_is_at_most_the_true_one(shape: str) -> None:
    values = np.clip(SHAPES[shape], 0, 1)
    true = float(np.mean((values <= MARGIN) | (values >= 1 - MARGIN)))
    said = share_at_bounds(OutcomeSums(sums_of(values), EXACT))
    assert said <= true
    assert (said >= LEAST_SHARE) == (shape in ("both ends", "the upper end"))


def test_the_share_that_is_said_is_reached_by_values_at_the_bounds_and_at_the_margin() -> None:
    for inside in (0, 100, 400):
        values = np.repeat([0.0, 1.0, MARGIN], [1000, 1000 - inside, inside])
        said = share_at_bounds(OutcomeSums(sums_of(values), EXACT))
        assert said == pytest.approx(1 - inside / 2000)  # those at the margin are counted as not within it


def test_noise_makes_the_share_that_is_said_smaller() -> None:
    values = np.repeat([0.0, 1.0], 1000)
    said = [share_at_bounds(OutcomeSums(sums_of(values), np.eye(3) * one**2)) for one in (0, 1, 5, 20, 1000)]
    assert said == sorted(said, reverse=True) and said[0] == 1 and said[-1] == 0


def test_a_least_share_is_never_said_to_be_all_records() -> None:
    values = np.repeat([0.0, 1.0], 1000)
    text = narrow_bounds_text("y", dpc.Bounded(0, 10), OutcomeSums(sums_of(values), EXACT))
    assert [int(number) for number in re.findall(r"(\d+) %", text)] == [99]


@pytest.mark.parametrize("bounds, told", [((40, 45), True), ((0, 20), True), ((-50, 150), False), ((0, 100), False)])
@pytest.mark.parametrize("method", ["stratified", "trial"])
def test_bounds_that_are_far_too_narrow_are_named_with_their_column(
    bounds: tuple[int, int], told: bool, method: str
) -> None:
    rng = np.random.default_rng(7)
    arm = rng.integers(0, 2, 6000)
    frame = {"drug": arm, "pressure": rng.normal(45, 20, 6000) + 5 * arm}
    schema = dpc.Schema({"drug": dpc.Levels([0, 1]), "pressure": dpc.Bounded(*bounds)})
    table = dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.PureDP(9)))
    way: Any = dpc.methods.RandomizedTrial(probabilities=(0.5, 0.5)) if method == "trial" else method
    result = dpc.effect(table, treatment="drug", outcome="pressure", adjust=[], loss=dpc.PureDP(2), method=way)
    note = result.bounds_note
    assert bool(note) is told and (note in result.warnings()) is told
    assert not told or ("'pressure'" in note and all(str(end) in note for end in bounds))


def test_an_outcome_of_0_and_1_with_these_bounds_is_not_remarked() -> None:
    rows = np.random.default_rng(1).integers(0, 2, (2, 3000))
    schema = dpc.Schema({"a": dpc.Levels([0, 1]), "y": dpc.Bounded(0, 1)})
    table = dpc.Table({"a": rows[0], "y": rows[1]}, schema, dpc.Ledger.in_memory(dpc.PureDP(9)))
    assert dpc.effect(table, treatment="a", outcome="y", adjust=[], loss=dpc.PureDP(2)).bounds_note == ""


def test_a_study_says_so_where_it_answers_and_on_the_first_page_of_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, '[[question]]\nname="q"\ntask="effect"\ntreatment="a"\noutcome="v"\nadjust=[]\nepsilon=2\n',
                 n=3000)  # fmt: skip
    narrow = path.read_text().replace("[columns.v]\nlower = -4\nupper = 4", "[columns.v]\nlower = 0\nupper = 0.1")
    path.write_text(narrow)
    (one,) = dpc.Study.open(path).run(new_ledger=True).questions
    note = one.answer.bounds_note
    assert "'v'" in note and any(note in line for line in one.conclusions)
    first = dpc.Study.open(path).report().with_suffix(".md").read_text().partition("How the results were obtained")[0]
    assert note[1:] in first
