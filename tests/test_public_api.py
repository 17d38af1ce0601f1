"""The public names and what they promise."""

import inspect

import dpcausal as dpc

NAMES = {
    "ApproxDP", "Bounded", "Cpdag", "Direction", "Directions", "Discovery", "Effect", "Guarantee", "Knowledge",
    "Ledger", "Independence", "Independences", "Levels", "moments", "ModelX", "NoPrivacy", "Panel", "Power", "PureDP",
    "ci_test",
    "ci_tests", "Relation", "Release", "Schema", "Study", "SyntheticControl", "Table", "Unit", "ZCDP", "calculators",
    "cells", "did", "direction", "direction_all", "discover", "effect", "errors", "explain", "interop",
    "plan_synthetic_control",
    "power", "simulate", "simulated_noise", "synthetic_control", "synthetic_controls",
}  # fmt: skip


def test_the_public_names_are_these() -> None:
    rooms = {
        "asking", "data", "dependence", "discovery", "effects", "independence", "mechanisms", "methods", "papers",
        "privacy", "proofs", "regression", "releases", "report", "study",
    }  # fmt: skip
    public = {name for name in vars(dpc) if not name.startswith("_")}
    assert public - rooms - {"audit", "cli", "plots", "demo", "simulate_panels"} == NAMES


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
    assert set(dpc.__all__) >= NAMES and not {"asking", "privacy", "data"} & set(dpc.__all__)
