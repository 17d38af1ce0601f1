"""Many directions as one result: the choice among scores, the table, the words and the picture."""

from __future__ import annotations

import dataclasses
import json
import pickle
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import ParameterError
from dpcausal.mechanisms.gate import recording_gate
from tests.direction.test_many import all_of, table

PAIRS = [("a", "b"), ("c", "a")]


def answers(counts: Any = (4, 0, 3, 5), **arguments: Any) -> dpc.Directions:
    """Return four answers of five blocks with the given noisy counts of votes."""
    told = iter(counts)
    with recording_gate(lambda event, value: np.full_like(value, next(told))):
        return all_of(table(), PAIRS, **({"scores": ["spearman", "kendall"], "blocks": 5} | arguments))


def test_the_best_score_is_the_one_that_the_noise_leaves_surest() -> None:
    r = answers()
    assert r.best("a", "b") is r.best("b", "a") is r.directions[1]  # 0 of 5 is surer than 4 of 5
    assert r.best("c", "a") is r.directions[3]


def test_among_equals_the_score_named_first_is_the_best() -> None:
    assert answers((5, 0, 5, 5)).best("a", "b").score == "spearman"


def test_without_probabilities_the_first_score_is_the_best() -> None:
    r = all_of(table(dpc.NoPrivacy()), loss=dpc.NoPrivacy(), scores=["igci", "hsic"])
    assert r.best("c", "d").score == "igci"


@pytest.mark.parametrize("pair", [("a", "c", "b")[1:], ("a", "a"), ("b", "q"), (None, 1), (["a"], "b")])
def test_a_pair_that_was_not_asked_about_has_no_best(pair: Any) -> None:
    with pytest.raises(ParameterError, match="asked about"):
        answers().best(*pair)


def test_the_table_has_a_row_for_each_pair_and_score() -> None:
    r = answers(shares={("a", "b"): 3}, min_probability=0.52)
    frame = r.to_frame()
    assert frame[["columns_1", "columns_2", "score"]].to_numpy().tolist() == [
        ["a", "b", "spearman"], ["a", "b", "kendall"], ["c", "a", "spearman"], ["c", "a", "kendall"],
    ]  # fmt: skip
    assert frame["epsilon"].tolist() == [0.375, 0.375, 0.125, 0.125]
    assert set(frame["loss"]) == {"PureDP(1)"}
    assert frame["undecided"].tolist() == [one.undecided for one in r.directions]
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
    r = answers(min_probability=0.6)
    head, *lines = r.headline()
    assert head.startswith("2 pairs, 2 scores, 80 rows; decided: 3 of 4 at or above 0.6")
    assert "a -> b   spearman: +3 votes; right 0." in lines[0] and "; 5 blocks; paid PureDP(0.25)" in lines[0]
    assert "c and a: undecided (below 0.6)   spearman: +1 votes" in lines[2]
    assert "Guarantee" in r.summary()


def test_answers_below_the_usual_threshold_count_as_not_decided() -> None:
    r = answers((3, 2, 3, 2))  # margins of one vote
    assert all(not one.undecided and not one.decided for one in r)
    assert "decided: 0 of 4 at or above 0.9." in r.headline()[0]
    assert sum("(not decided: below 0.9)" in line for line in r.headline()) == 4
    exact = all_of(table(dpc.NoPrivacy()), loss=dpc.NoPrivacy(), scores=["igci"])
    assert "exact answers, none undecided" in exact.headline()[0] and all(one.decided for one in exact)


def test_an_answer_without_a_probability_is_not_counted_as_decided() -> None:
    r = answers()
    blind = tuple(dataclasses.replace(one, probability_correct=None) for one in r)
    assert not any(one.decided for one in blind)
    assert "no answer says how sure" in dataclasses.replace(r, directions=blind).headline()[0]


def test_decided_scores_that_point_opposite_ways_are_said_to_disagree() -> None:
    (line,) = [line for line in answers((5, 0, 5, 5), min_probability=0.6).headline() if "disagree" in line]
    assert "spearman says a -> b, kendall says b -> a" in line
    undecided = answers((5, 2, 5, 5), min_probability=0.6)
    assert not [line for line in undecided.headline() if "disagree" in line]


def test_it_is_a_sequence_of_its_directions() -> None:
    r = answers()
    assert len(r) == 4 and list(r) == list(r.directions)
    assert r[0] is r.directions[0] and r[-1] is r.directions[3] and r[1:3] == r.directions[1:3]


def test_the_probability_stands_beside_the_margin() -> None:
    names = list(answers().to_frame().columns)
    assert names[names.index("margin") + 1] == "probability_correct"
    assert len(set(names)) == len(names)


def test_each_answer_says_what_part_it_was_paid() -> None:
    assert "it was paid PureDP(0.25) of PureDP(1)" in answers().directions[0].summary()


def test_the_picture_shows_how_sure_each_answer_is() -> None:
    r = answers(min_probability=0.6)
    ax = r.plot()
    ends = [float(line.get_xdata()[-1]) for line in ax.lines if len(line.get_xdata()) == 2][1:]
    assert ends == [one.towards_first() for one in r.directions]
    assert ends[0] > 0.5 > ends[1]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [
        "a, b: spearman", "a, b: kendall", "c, a: spearman", "c, a: kendall",
    ]  # fmt: skip
    bars = [line for line in ax.lines if len(line.get_xdata()) == 2][1:]
    grey = [bar.get_color() == "0.4" and bar.get_linestyle() == ":" for bar in bars]
    assert grey == [not one.decided for one in r.directions] and True in grey and False in grey
    assert ax.get_title() == "NOT PRIVATE"  # a recording gate is none
    assert r.plot(ax) is ax


def test_an_answer_without_a_probability_is_left_out_of_the_picture() -> None:
    one = dataclasses.replace(answers().directions[0], probability_correct=None)
    assert one.towards_first() is None
    assert dataclasses.replace(one, margin=None).towards_first() is None
    exact = all_of(table(dpc.NoPrivacy()), loss=dpc.NoPrivacy(), scores=["kendall"])
    assert {one.towards_first() for one in exact.directions} <= {0.0, 1.0}
    exact.plot().figure.canvas.draw()
