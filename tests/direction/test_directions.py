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
    head, *lines, _, _ = [*r.headline()[:7], ""]
    assert head.startswith("2 pairs, 2 scores, 80 rows; a direction is named in 3 of 4 answers")
    assert "a -> b   spearman: +3 votes; right 0." in lines[0] and "paid PureDP(0.25)" in lines[0]
    assert "c and a: undecided (below 0.6)   spearman: +1 votes" in lines[2]
    assert "Guarantee" in r.summary()


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
    assert ax.get_title() == "NOT PRIVATE"  # a recording gate is none
    assert r.plot(ax) is ax


def test_an_answer_without_a_probability_is_left_out_of_the_picture() -> None:
    one = dataclasses.replace(answers().directions[0], probability_correct=None)
    assert one.towards_first() is None
    assert dataclasses.replace(one, margin=None).towards_first() is None
    exact = all_of(table(dpc.NoPrivacy()), loss=dpc.NoPrivacy(), scores=["kendall"])
    assert {one.towards_first() for one in exact.directions} <= {0.0, 1.0}
    exact.plot().figure.canvas.draw()
