"""Pictures: of released values, on axes that are given or new, and never on the caller's current figure."""

import sys

import pytest
from matplotlib.figure import Figure

import dpcausal as dpc
from dpcausal.errors import MissingDependencyError, ParameterError
from dpcausal.independence.result import draw_pvalues
from dpcausal.plotting import axes, titled


def test_given_axes_come_back_and_new_ones_stand_on_a_figure_of_their_own() -> None:
    given = Figure().subplots()
    assert axes(given) is given
    made = axes()
    assert made.figure is not given.figure and made.figure.canvas is not None


@pytest.mark.parametrize("given", ["x.png", 3, Figure()], ids=str)
def test_what_is_no_axes_is_refused_with_the_way_to_save(given: object) -> None:
    with pytest.raises(ParameterError, match=r'picture\.figure\.savefig\("answer\.png"\)'):
        axes(given)


def test_names_with_dollar_signs_are_shown_as_they_stand_and_powers_of_ten_as_powers() -> None:
    names = ["$\\frac{a$, b$", "c, d"]
    ax = draw_pvalues(axes(), (0.5, 1e-4), 0.05, (False, True))
    ax.set_yticks(range(2), names)
    titled(ax, names[0], "").figure.canvas.draw()
    written = [ax.title, ax.xaxis.label, *ax.get_yticklabels()]
    assert not any(text.get_parse_math() for text in written if "$" in text.get_text())
    assert all(text.get_parse_math() for text in ax.get_xticklabels())


def test_a_decision_without_a_pvalue_is_drawn_as_such() -> None:
    data = dpc.simulate.smooth_design(100, effect=0.5, seed=1)
    table = dpc.Table(data.columns, data.schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    ax = dpc.ci_test(table, "x", "y", given=[], method="hsic", loss=dpc.PureDP(1)).plot()
    assert "no p-value" in ax.texts[0].get_text() and len(ax.lines) == 1


def test_pyplot_is_left_alone() -> None:
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("agg")
    before = plt.get_fignums()
    axes()
    assert plt.get_fignums() == before


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"dpcausal\[plot\]"):
        axes()
