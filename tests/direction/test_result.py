"""Directions as results: frozen, portable, without a trace of the rows, and what an answer names at which level."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats
from statsmodels.stats.multitest import multipletests

import dpcausal as dpc
from dpcausal.mechanisms.gate import recording_gate
from tests.direction.methods.test_votes import easy
from tests.direction.neighbours import CORRECTED, PUBLISHED, Rows, ask, halves, quick, table  # noqa: F401
from tests.direction.test_many import all_of
from tests.direction.test_many import table as wide_table

MODES: dict[str, dict[str, Any]] = {"votes": {"blocks": 5}, **CORRECTED, **PUBLISHED}
PAIRS = [("a", "b"), ("c", "a")]


def rows(n: int = 60) -> Rows:
    return np.random.default_rng(8).uniform([-1, -1], [1, 3], (n, 2))


def answered(answer: float, **arguments: Any) -> dpc.Direction:
    with recording_gate(lambda event, value: np.full_like(value, answer)):
        return ask(rows(), **({"blocks": 5} | arguments))


def answers(counts: tuple[int, ...] = (4, 0, 3, 5), **arguments: Any) -> dpc.DirectionSet:
    """Return four answers of five blocks with the given noisy counts of votes."""
    released = iter(counts)
    with recording_gate(lambda event, value: np.full_like(value, next(released))):
        return all_of(wide_table(), PAIRS, **({"scores": ["lsnm", "hsic"], "blocks": 5} | arguments))


@pytest.mark.parametrize("count", [-3, 0, 2, 3, 5, 9])
def test_the_same_release_names_a_cause_at_its_p_and_above_and_none_below(count: int) -> None:
    free = answered(count, alpha=0.999)
    assert free.p_sign is not None and free.favoured is not None
    for alpha in (0.001, 0.01, 0.1, 0.3, 0.9, min(free.p_sign, 0.999), float(np.nextafter(free.p_sign, 0))):
        r = answered(count, alpha=alpha)
        assert r.inconclusive == (r.cause is None) == (free.p_sign > alpha)
        assert (r.cause, r.favoured) == (None if r.inconclusive else free.favoured, free.favoured)
        same = dataclasses.replace(r, cause=free.cause, effect=free.effect, alpha=0.999, guarantee=free.guarantee)
        assert same == free  # margin and p are as released


@pytest.mark.parametrize("mode", [*CORRECTED, *PUBLISHED])
def test_a_half_is_a_forced_choice_at_every_level_and_says_first_that_the_other_is_not_protected(mode: str) -> None:
    for alpha in (0.001, 0.9):
        with recording_gate(lambda event, value: np.full_like(value, 3)):
            r = ask(rows(), alpha=alpha, **MODES[mode])
        assert r.cause == r.favoured is not None and r.verdict is None
        assert any("forced choice" in caveat for caveat in r.guarantee.caveats)
    r = ask(rows(), **MODES[mode])
    assert r.guarantee.unit is dpc.Unit.TEST_ROW and r.guarantee.private
    assert "TEST HALF ONLY" in r.details().splitlines()[0]
    assert "training half are NOT protected" in r.guarantee.caveats[0]


def test_an_open_answer_says_so_in_words_in_json_and_in_its_picture() -> None:
    r = answered(3)
    assert "inconclusive" in r.headline()[0] and "+1 votes" in r.details() and r.cause is None
    values = json.loads(r.to_json())
    assert (values["cause"], values["effect"], values["favoured"], values["margin"]) == (None, None, "x", 1.0)
    assert r.plot().get_title().startswith("x and y: inconclusive")


def test_the_level_is_in_the_ledger_and_without_noise_nothing_is_open() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    for alpha in (0.1, 0.4):
        r = dpc.direction(table(rows(), ledger), "x", "y", loss=dpc.PureDP(0.5), alpha=alpha)
        assert r.spent == r.guarantee.loss == dpc.PureDP(0.5)
    assert [json.loads(entry.detail)["alpha"] for entry in ledger.entries()] == [0.1, 0.4]
    exact = ask(rows(), loss=dpc.NoPrivacy(), alpha=0.001)
    assert exact.cause is not None and exact.p_sign is None


def test_a_result_is_one_row_of_a_frame_with_its_scores() -> None:
    r = ask(rows(), blocks=5)
    line = r.to_frame().iloc[0]
    assert (line["cause"], line["margin"], line["loss"], line["private"]) == (r.cause, r.margin, "PureDP(1)", True)
    scored = dataclasses.replace(ask(rows(), protect="test"), scores=(0.25, 0.5))
    line = scored.to_frame().iloc[0]
    assert "x -> y 0.25, y -> x 0.5" in scored.details() and (line["scores_1"], line["scores_2"]) == (0.25, 0.5)


def test_the_texts_say_arrow_favoured_side_and_margin_or_that_nothing_was_released() -> None:
    r = answered(9)
    assert r.headline()[0] == "x → y." and r.p_sign is not None and r.cause == "x"
    assert all(part in r.details() for part in (f"{r.p_sign:.3f}", "+13 votes", "5 blocks", "60 rows"))
    declined = dataclasses.replace(ask(rows(), protect="test"), cause=None, effect=None, margin=None, p_sign=None)
    assert "no direction was released" in declined.details()


@pytest.mark.parametrize("mode", ["votes", "hsic", "published hsic"])
def test_plots_draw_released_values_on_the_axes_that_are_given_and_are_stamped(mode: str) -> None:
    r, ax = ask(rows(), **MODES[mode]), Figure().subplots()
    assert r.plot(ax) is ax
    assert ax.get_title().startswith(r.answer()) and ax.get_xlim() == (-1.05, 1.05)
    ends = [float(line.get_xdata()[-1]) for line in ax.lines if len(line.get_xdata()) == 2][1:]
    far = 1.0 if r.p_sign is None else min(1.0, -np.log10(max(r.p_sign, 1e-3)) / 3)
    assert ends == pytest.approx([far if (r.margin or 0) >= 0 else -far])
    assert ("TEST HALF ONLY" in ax.get_title()) == (mode != "votes")
    with dpc.simulated_noise(1):
        assert "NOT PRIVATE" in ask(rows(), **MODES[mode]).plot().get_title()


def test_a_set_is_a_frame_of_its_directions() -> None:
    r = answers(shares={("a", "b"): 3}, alpha=0.4)
    frame = r.to_frame()
    assert frame[["columns_1", "columns_2", "score"]].to_numpy().tolist() == [
        ["a", "b", "lsnm"], ["a", "b", "hsic"], ["c", "a", "lsnm"], ["c", "a", "hsic"],
    ]  # fmt: skip
    assert frame["epsilon"].tolist() == [0.375, 0.375, 0.125, 0.125] and set(frame["loss"]) == {"PureDP(1)"}
    assert frame["inconclusive"].tolist() == [one.inconclusive for one in r.directions]
    assert frame["margin"].tolist() == [3, -5, 1, 5]
    assert "it was paid ε = 0.375 of ε = 1" in r.directions[0].details()


def test_the_summary_of_a_set_has_a_line_for_each_answer_and_names_scores_that_disagree() -> None:
    head, *lines = answers((60, 0, 3, 5), alpha=0.3).headline()
    assert "2 pairs, 2 scores, 80 rows" in head and "a -> b" in head
    assert "+115 votes" in lines[0] and "adjusted p" in lines[0] and "5 blocks; paid ε = 0.25" in lines[0]
    assert "c and a: inconclusive   lsnm: +1 votes" in lines[2]
    (line,) = [line for line in answers((60, -60, 5, 5)).headline() if "disagree" in line]
    assert "lsnm says a -> b, hsic says b -> a" in line
    assert not [line for line in answers((60, 2, 5, 5)).headline() if "disagree" in line]


@pytest.mark.parametrize("correction", ["holm", "benjamini-hochberg", "none"])
def test_arrows_are_corrected_for_their_number(correction: Any) -> None:
    r = answers((60, 20, 3, -40), alpha=0.3, correction=correction)
    pvalues, by = [one.p_arrow for one in r.directions], {"holm": "holm", "benjamini-hochberg": "fdr_bh"}
    expected = pvalues if correction == "none" else multipletests(pvalues, method=by[correction])[1]
    assert r.adjusted == pytest.approx(expected)
    assert set(r.arrows) == {one.columns if one.favoured == one.columns[0] else one.columns[::-1]
                             for one, p in zip(r.directions, expected, strict=True) if p <= 0.3}  # fmt: skip


def test_a_half_has_no_arrow_after_correction_only_favoured_sides() -> None:
    r = all_of(wide_table(protect="test"), PAIRS, scores=["iqr"], protect="test")
    assert r.arrows == () and set(r.adjusted) == {None} and all(one.cause for one in r.directions)


def test_the_picture_of_a_set_draws_arrows_and_a_dotted_line_for_the_others() -> None:
    r = answers((60, 60, 3, 5), alpha=0.3)
    ax = r.plot()
    drawn = [one for one in ax.texts if getattr(one, "arrow_patch", None) is not None]
    assert len(drawn) == len({one.arrow_patch.get_edgecolor() for one in drawn}) == 2
    assert {"a", "b", "c", "no arrow"} <= {text.get_text() for text in ax.texts}
    assert "NOT PRIVATE" in ax.get_title() and r.plot(ax) is ax
    ax.figure.canvas.draw()


def test_what_plays_no_part_without_privacy_is_said_to() -> None:
    rows = np.zeros((40, 2))
    assert "had no effect" in ask(rows, loss=dpc.NoPrivacy(), method="majority-vote").details().splitlines()[0]
    assert not any("no effect" in caveat for caveat in ask(rows, loss=dpc.NoPrivacy()).guarantee.caveats)
    asked = table(rows, dpc.Ledger.without_privacy())
    many = dpc.direction_all(asked, loss=dpc.NoPrivacy(), method="majority-vote", scores="hsic")
    for one in (many, *many.directions):
        assert "method='majority-vote' had no effect" in one.guarantee.caveats[-1]


def test_the_sign_of_the_margin_is_the_direction_and_a_margin_of_zero_goes_to_the_first() -> None:
    for answer, cause in ((0.25, "x"), (0.0, "x"), (-0.25, "y")):
        with recording_gate(lambda event, value, answer=answer: np.asarray(answer)):
            r = ask(easy(40, 5), protect="test")
        assert (r.margin, r.cause) == (answer, cause)
    for answer, margin, cause in ((0, 0.5, "x"), (-1, -0.5, "y")):
        with recording_gate(lambda event, value, answer=answer: np.asarray(answer)):
            r = ask(easy(40, 5), protect="test", score="kendall")
        assert (r.margin, r.cause, r.margin_unit) == (margin, cause, "records")


def test_a_tie_of_the_exact_scores_goes_to_the_first() -> None:
    rows = easy(40, 5)
    train, _ = halves(40)
    rows[train] = 0.0  # constant regressions: both rank scores are |rho| of the test half's two columns
    with dpc.simulated_noise(0):
        r = ask(rows, score="kendall", protect="test", loss=dpc.NoPrivacy())
    assert r.margin == 0 and r.cause == "x"


@pytest.mark.replication
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("mode", ["everyone", "test"])
def test_the_cause_of_an_easy_pair_is_favoured_far_more_often_than_by_chance(mode: str) -> None:
    # 40 answers at ε = 2, seeds fixed; chance would be right 37 times or more with a chance of 1e-8.
    assert stats.binom(40, 0.5).sf(36) < 1e-8
    right = 0
    for seed in range(20):
        rows = easy(400, seed)
        for columns in (rows, np.column_stack([(rows[:, 1] - 1) / 2, 1 + 2 * rows[:, 0]])):
            with dpc.simulated_noise(seed):
                r = ask(columns, protect=mode, loss=dpc.PureDP(2))
            right += r.favoured == ("x" if columns is rows else "y")
    assert right >= 37
