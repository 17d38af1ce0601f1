"""Pictures: of released values, on axes that are given or new, and never on the caller's current figure."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from dpcausal.errors import MissingDependencyError, ParameterError
from dpcausal.independence.picture import draw, draw_many
from dpcausal.plots import axes, draw_direction, draw_directions

COLUMNS = ("age", "income")


def test_given_axes_come_back_and_new_ones_stand_on_a_figure_of_their_own() -> None:
    given = Figure().subplots()
    assert axes(given) is given
    made = axes()
    assert made.figure is not given.figure and made.figure.canvas is not None


@pytest.mark.parametrize("given", ["x.png", 3, Figure()], ids=str)
def test_what_is_no_axes_is_refused_with_the_way_to_save(given: object) -> None:
    with pytest.raises(ParameterError, match=r'picture\.figure\.savefig\("answer\.png"\)'):
        draw_direction(given, columns=COLUMNS, margin=1.0, unit="votes", probability=0.9)
    with pytest.raises(ParameterError, match="got"):
        draw_directions(given, rows=[("a, b", 0.7, True)])


def test_the_words_below_the_picture_of_many_answers_are_not_cut_off() -> None:
    rows = [("a rather long name, another long name: spearman", 0.7, True), ("a, b", 0.2, False)]
    ax = draw_directions(None, rows=rows)
    ax.figure.canvas.draw()
    box, whole = ax.xaxis.label.get_window_extent(), ax.figure.bbox
    assert box.x0 >= 0 and box.x1 <= whole.x1 and box.y0 >= 0


def test_names_with_dollar_signs_are_shown_as_they_stand_and_powers_of_ten_as_powers() -> None:
    names = ["$\\frac{a$, b$", "c, d"]
    for ax in (
        draw(None, pvalue=0.003, alpha=0.05, decision="dependent", title=names[0], stamp=""),
        draw_many(None, names=names, pvalues=(0.5, 1e-4), alpha=0.05, stamp=""),
        draw_direction(None, columns=(names[0], "b"), margin=1.0, unit="votes", probability=0.9),
    ):
        ax.figure.canvas.draw()
        written = [ax.title, ax.xaxis.label, *ax.get_yticklabels()]
        assert not any(text.get_parse_math() for text in written if "$" in text.get_text())
        assert all(text.get_parse_math() for text in ax.get_xticklabels())


def test_a_decision_without_a_pvalue_is_drawn_as_such() -> None:
    ax = draw(None, pvalue=None, alpha=0.05, decision="not shown", title="a, b", stamp="")
    assert "no p-value" in ax.texts[0].get_text() and len(ax.lines) == 1


def test_pyplot_is_left_alone() -> None:
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("agg")
    before = plt.get_fignums()
    draw_direction(None, columns=COLUMNS, margin=1.0, unit="votes", probability=0.9)
    assert plt.get_fignums() == before


@pytest.mark.parametrize(
    ("margin", "title"),
    [(2.5, "age → income"), (-2.5, "income → age"), (0.0, "age → income"), (None, "no direction was released")],
)
def test_the_arrow_ends_at_the_released_margin(margin: float | None, title: str) -> None:
    ax = draw_direction(None, columns=COLUMNS, margin=margin, unit="records", probability=None)
    assert ax.get_title().startswith(title)
    drawn = {float(value) for line in ax.lines for value in np.ravel(line.get_xdata())}
    assert drawn == {0.0} | ({margin} if margin is not None else set())
    assert "released margin (records)" in ax.get_xlabel()
    low, high = ax.get_xlim()
    assert low < (margin or 0) < high
    ax.figure.canvas.draw()


def test_the_probability_is_in_the_title_where_there_is_one() -> None:
    ax = draw_direction(None, columns=COLUMNS, margin=1.0, unit="score", probability=0.875)
    assert "0.875" in ax.get_title()


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"dpcausal\[plot\]"):
        axes()
