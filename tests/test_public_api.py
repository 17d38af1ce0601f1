"""The public names and what they promise."""

import inspect
import pydoc
import subprocess
import sys
from pathlib import Path

import numpy as np

import dpcausal as dpc

NAMES = {
    "ApproxDP", "Bounded", "Cpdag", "Direction", "Directions", "Discovery", "Effect", "Guarantee", "Knowledge",
    "Ledger", "Independence", "Independences", "Levels", "moments", "ModelX", "NoPrivacy", "Panel", "Power", "PureDP",
    "ci_test",
    "ci_tests", "Relation", "Release", "Schema", "Study", "SyntheticControl", "Table", "Unit", "ZCDP",
    "average_effect", "calculators",
    "cells", "did", "direction", "direction_all", "discover", "effect", "errors", "explain", "interop",
    "Plan", "plan", "plan_synthetic_control",
    "power", "simulate", "simulated_noise", "synthetic_control", "synthetic_controls",
}  # fmt: skip


def test_the_public_names_are_these() -> None:
    public = {name for name in dir(dpc) if not name.startswith("_")}
    assert public == NAMES | {"methods", "papers"}


def test_every_public_name_has_a_docstring() -> None:
    for name in NAMES:
        assert inspect.getdoc(getattr(dpc, name)), name


def test_a_loss_is_keyword_only_and_has_no_default() -> None:
    for call in (
        dpc.direction, dpc.direction_all, dpc.synthetic_control, dpc.synthetic_controls, dpc.ci_test, dpc.ci_tests,
        dpc.discover, dpc.effect, dpc.cells, dpc.moments, dpc.did,
    ):  # fmt: skip
        parameter = inspect.signature(call).parameters["loss"]
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert parameter.default is inspect.Parameter.empty


def test_everyone_is_protected_by_default() -> None:
    for call in (dpc.direction, dpc.direction_all):
        assert inspect.signature(call).parameters["protect"].default == "everyone"


def test_every_error_derives_from_one_base() -> None:
    for name, value in vars(dpc.errors).items():
        if inspect.isclass(value) and issubclass(value, Exception):
            assert issubclass(value, dpc.errors.DpCausalError), name


def test_help_shows_every_public_name() -> None:
    assert set(dpc.__all__) == NAMES | {"methods", "papers"}
    page = pydoc.render_doc(dpc, renderer=pydoc.plaintext)
    assert "    ci_test(table" in page and "class Ledger(" in page


def test_what_is_asked_first_does_not_change_what_a_name_means() -> None:
    program = (
        "import dpcausal.direction.question, dpcausal.synthetic_control.question, sys; import dpcausal as dpc; "
        "assert not hasattr(dpc, 'nothing') and not hasattr(dpc, '__wrapped__'); "
        "print(dpc.direction.__module__, dpc.synthetic_control.__module__, len(dpc.Release.__subclasses__()))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    kinds = len(dpc.Release.__subclasses__())
    assert told == f"dpcausal.direction.ask dpcausal.synthetic_control.ask {kinds}\n"


def test_a_saved_release_is_read_by_a_program_that_asked_nothing_else(tmp_path: Path) -> None:
    frame = {name: np.arange(100) % 2 for name in ("x", "y")}
    schema = dpc.Schema({name: dpc.Bounded(0, 1) for name in frame})
    table = dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.ZCDP(1)))
    (tmp_path / "r.json").write_text(dpc.moments(table, ["x", "y"], loss=dpc.ZCDP(1)).to_json())
    program = (
        "import sys; from dpcausal.releases.release import Release; "
        "print(Release.from_json(open(sys.argv[1]).read()).kind)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "r.json")], capture_output=True, text=True, check=True
    )
    assert told.stdout == "joint-moments\n"
