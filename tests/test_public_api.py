"""The public names and what they promise."""

import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from tests import factories

NAMES = {
    "ApproxDP", "Bounded", "Cpdag", "DataFile", "Direction", "DirectionSet", "Discovery", "Effect", "Guarantee",
    "Knowledge", "Ledger", "Independence", "IndependenceSet", "Levels", "moments", "ModelX", "NoPrivacy", "Panel",
    "PureDP", "ci_test",
    "ci_tests", "Relation", "Release", "Schema", "Study", "SyntheticControl", "Table", "Unit", "ZCDP",
    "average_effect",
    "cells", "datasets", "did", "direction", "direction_all", "discontinuity", "discover", "effect", "errors",
    "explain", "interop", "Plan", "plan", "simulate", "simulated_noise", "synthetic_control", "synthetic_controls",
}  # fmt: skip


def test_a_loss_is_keyword_only_and_has_no_default() -> None:
    for call in (
        dpc.direction, dpc.direction_all, dpc.synthetic_control, dpc.synthetic_controls, dpc.ci_test, dpc.ci_tests,
        dpc.discover, dpc.effect, dpc.cells, dpc.moments, dpc.did,
        dpc.discontinuity,
    ):  # fmt: skip
        parameter = inspect.signature(call).parameters["loss"]
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert parameter.default is inspect.Parameter.empty


def test_every_error_derives_from_one_base() -> None:
    for name, value in vars(dpc.errors).items():
        if inspect.isclass(value) and issubclass(value, Exception) and not issubclass(value, Warning):
            assert issubclass(value, dpc.errors.DpCausalError), name


def test_the_public_names_are_these_and_help_shows_them() -> None:
    public = {name for name in dir(dpc) if not name.startswith("_")}
    assert public == set(dpc.__all__) == NAMES | {"methods", "papers"}
    page = pydoc.render_doc(dpc, renderer=pydoc.plaintext)
    assert re.search(r"    ci_test\(\s*table", page) and "class Ledger(" in page  # 3.13 breaks the line


def test_what_is_asked_first_does_not_change_what_a_name_means() -> None:
    program = (
        "import dpcausal.direction.question, dpcausal.synthetic_control.question, sys; import dpcausal as dpc; "
        "assert not hasattr(dpc, 'nothing') and not hasattr(dpc, '__wrapped__'); "
        "print(dpc.direction.__module__, dpc.synthetic_control.__module__, len(dpc.Release.__subclasses__()))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    kinds = len(dpc.Release.__subclasses__())
    assert told == f"dpcausal.direction.api dpcausal.synthetic_control.api {kinds}\n"


def test_a_saved_release_is_read_by_a_program_that_asked_nothing_else(tmp_path: Path) -> None:
    rows = dict.fromkeys("xy", np.arange(100) % 2)
    table = factories.table(rows, dict.fromkeys("xy", dpc.Bounded(0, 1)), dpc.ZCDP(1))
    (tmp_path / "r.json").write_text(dpc.moments(table, ["x", "y"], loss=dpc.ZCDP(1)).to_json())
    program = "import sys, dpcausal; print(dpcausal.Release.from_json(open(sys.argv[1]).read()).kind)"
    told = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "r.json")], capture_output=True, text=True, check=True
    )
    assert told.stdout == "joint-moments\n"


FUNCTIONS = sorted(name for name in NAMES if inspect.isfunction(getattr(dpc, name)) and name != "simulated_noise")
MORE = [dpc.Table, dpc.Panel, dpc.Table.where, dpc.Ledger.create, dpc.Ledger.open_or_create, dpc.Study.run]


@pytest.mark.parametrize("function", [*(getattr(dpc, name) for name in FUNCTIONS), *MORE])
def test_a_call_that_does_not_fit_is_told_how_it_is_written(function: Any) -> None:
    """Seen to fail: bare TypeErrors, which named a count of places."""
    taken = [one for one in inspect.signature(function).parameters.values() if one.kind is not one.VAR_KEYWORD]
    first = taken[-1].name
    calls = [(("secret",) * 14, {}, "takes other arguments by name"), ((), {first[:-1] + "q": 1}, "no argument")]
    if any(one.default is one.empty for one in taken if one.name != "self"):
        calls.append(((), {}, " needs "))
    for arguments, named, rule in calls:
        with pytest.raises(dpc.errors.CallError) as told:
            function(*arguments, **named)
        words = str(told.value)
        assert rule in words and "secret" not in words and words.endswith(")") and isinstance(told.value, TypeError)


def test_a_slip_is_told_with_the_names_of_the_arguments_or_the_nearest_one() -> None:
    table = factories.table(dict.fromkeys("ab", np.zeros(500)), dict.fromkeys("ab", dpc.Bounded(0, 1)), dpc.PureDP(1))
    loss = dpc.PureDP(0.5)
    for call, rule in (
        (lambda: dpc.ci_test(table, "a", "b", ["c"]), "given, loss, .*alpha"),  # type: ignore[misc]
        (lambda: dpc.ci_test(table, "a", "b", given=[], epsilon=1), r"PureDP\(1\)"),  # type: ignore[call-arg]
        (lambda: dpc.effect(table, "a", "b"), r"effect\(table, treatment=\.\.\., outcome=\.\.\., adjust=\.\.\., loss"),
        (lambda: dpc.effect(table, treatmnt="a", outcome="b", adjust=[], loss=loss), "did you mean 'treatment'"),
        (lambda: dpc.ci_test(table, "a", "b", given=[], loss=loss, alhpa=0.1), "did you mean 'alpha'"),
        (lambda: dpc.ci_test(table, "a", "b", given=[], loss=loss, blcks=4), "did you mean 'blocks'"),
        (lambda: dpc.methods.Gcm(blcks=4), "Gcm has no option 'blcks'; did you mean 'blocks'"),
        (lambda: dpc.methods.Gcm(4), "takes its options by name"),
        (lambda: dpc.ci_test(table, "a", given=[], loss=loss, x="b"), "has 'x' twice"),
    ):
        with pytest.raises(dpc.errors.ParameterError, match=rule):
            call()
    assert not table.ledger.entries()


def test_a_type_error_from_inside_is_not_taken_for_a_call_that_does_not_fit() -> None:
    @dpc.errors.with_signature_errors
    def fails(one: int) -> int:
        return one + ""  # type: ignore[operator]

    with pytest.raises(TypeError, match="unsupported operand"):
        fails(1)
