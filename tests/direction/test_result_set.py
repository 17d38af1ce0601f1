"""Many directions as one result: the choice among scores, the table, the words and the picture."""

from __future__ import annotations

import dataclasses
import json
import pickle
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

import dpcausal as dpc
from dpcausal.mechanisms.gate import recording_gate
from tests.direction.test_many import all_of, table

PAIRS = [("a", "b"), ("c", "a")]


def answers(counts: Any = (4, 0, 3, 5), **arguments: Any) -> dpc.DirectionSet:
    """Return four answers of five blocks with the given noisy counts of votes."""
    told = iter(counts)
    with recording_gate(lambda event, value: np.full_like(value, next(told))):
        return all_of(table(), PAIRS, **({"scores": ["igci", "igci-slope"], "blocks": 5} | arguments))


def test_the_table_has_a_row_for_each_pair_and_score() -> None:
    r = answers(shares={("a", "b"): 3}, alpha=0.4)
    frame = r.to_frame()
    assert frame[["columns_1", "columns_2", "score"]].to_numpy().tolist() == [
        ["a", "b", "igci"], ["a", "b", "igci-slope"], ["c", "a", "igci"], ["c", "a", "igci-slope"],
    ]  # fmt: skip
    assert frame["epsilon"].tolist() == [0.375, 0.375, 0.125, 0.125]
    assert set(frame["loss"]) == {"PureDP(1)"}
    assert frame["inconclusive"].tolist() == [one.inconclusive for one in r.directions]
    assert frame["margin"].tolist() == [3, -5, 1, 5]


def test_it_is_frozen_pickles_and_goes_to_json() -> None:
    r = answers()
    with pytest.raises(dataclasses.FrozenInstanceError):
        r.n = 3  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(r)) == r
    assert hash(pickle.loads(pickle.dumps(r))) == hash(r)
    back = json.loads(r.to_json())
    assert back == r.to_dict()
    assert [one["margin"] for one in back["directions"]] == [3, -5, 1, 5]
    assert back["pairs"] == [["a", "b"], ["c", "a"]]


def test_the_summary_has_a_line_for_each_answer() -> None:
    r = answers((60, 0, 3, 5), alpha=0.3)
    head, *lines = r.headline()
    assert head == "2 pairs, 2 scores, 80 rows. Arrows that stand at level 0.3 (correction: holm): a -> b."
    assert lines[0].startswith("  a -> b   igci: +115 votes, leans to a as the cause (coins: p ")
    assert "; arrow: adjusted p " in lines[0] and "; 5 blocks; paid ε = 0.25" in lines[0]
    assert "c and a: inconclusive   igci: +1 votes" in lines[2]
    assert "Guarantee" in r.details()


@pytest.mark.parametrize("correction", ["holm", "benjamini-hochberg", "none"])
def test_arrows_are_corrected_for_their_number_and_stand_by_it(correction: Any) -> None:
    r = answers((60, 20, 3, -40), alpha=0.3, correction=correction)
    pvalues = [one.p_arrow for one in r]
    by = {"holm": "holm", "benjamini-hochberg": "fdr_bh"}
    expected = pvalues if correction == "none" else multipletests(pvalues, method=by[correction])[1]
    assert r.adjusted == pytest.approx(expected)
    stand = {one.columns if one.favoured == one.columns[0] else one.columns[::-1]
             for one, p in zip(r, expected, strict=True) if p <= 0.3}  # fmt: skip
    assert set(r.arrows) == stand


def test_a_half_has_no_arrow_that_stands_only_leans() -> None:
    r = all_of(table(protect="test"), PAIRS, scores=["iqr"], protect="test")
    assert r.arrows == () or all(p is not None for p in r.adjusted)
    assert set(r.adjusted) == {None} and all(one.cause for one in r)


def test_decided_scores_that_point_opposite_ways_are_said_to_disagree() -> None:
    (line,) = [line for line in answers((60, -60, 5, 5)).headline() if "disagree" in line]
    assert "igci says a -> b, igci-slope says b -> a" in line
    undecided = answers((60, 2, 5, 5))
    assert not [line for line in undecided.headline() if "disagree" in line]


def test_it_is_a_sequence_of_its_directions() -> None:
    r = answers()
    assert len(r) == 4 and list(r) == list(r.directions)
    assert r[0] is r.directions[0] and r[-1] is r.directions[3] and r[1:3] == r.directions[1:3]


def test_each_answer_says_what_part_it_was_paid() -> None:
    assert "it was paid ε = 0.25 of ε = 1" in answers().directions[0].details()


def test_the_picture_draws_the_arrows_that_stand_and_a_dotted_line_for_the_others() -> None:
    r = answers((60, 60, 3, 5), alpha=0.3)
    ax = r.plot()
    drawn = [one for one in ax.texts if getattr(one, "arrow_patch", None) is not None]
    assert len(drawn) == 2
    colours = [one.arrow_patch.get_edgecolor() for one in drawn]
    assert len(set(colours)) == 2  # one stands, one does not
    assert {"a", "b", "c", "no arrow"} <= {text.get_text() for text in ax.texts}
    assert "NOT PRIVATE" in ax.get_title()  # a recording gate is none
    assert r.plot(ax) is ax
    ax.figure.canvas.draw()
