"""CONTRIBUTING's recipe is complete: its method is built as it stands there and passes the conformance."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.cli.options import build_method, method_parameters
from dpcausal.independence import methods
from tests.independence.neighbours import SCHEMA, frame

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
N = 130


@pytest.fixture(scope="module")
def kind() -> Any:
    """The method of the page's only block of Python."""
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    made: dict[str, Any] = {}
    exec(compile(block, str(PAGE), "exec", dont_inherit=True), made)
    return made["SignGcm"]


def test_its_own_option_reaches_the_ledger_and_the_result_without_another_line(kind: Any) -> None:
    rows = np.random.default_rng(1).uniform([-1, -1, -2, 0], [1, 3, 2, 2], (N, 4))
    table = dpc.Table(frame(rows), SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(1)))
    r = dpc.ci_test(table, "x", "y", given=["z"], loss=dpc.PureDP(1), method=kind(least=0.25, blocks=2))
    (entry,) = table.ledger.entries()
    assert r.settings["least"] == json.loads(entry.detail)["least"] == 0.25
    assert r.method == "gcm-signs" and all(dpc.explain(claim) for claim in r.guarantee.proofs)


def test_the_list_of_short_names_is_all_that_the_command_and_the_namespace_read(kind: Any) -> None:
    kinds = {**methods.METHODS, kind.name: kind}
    assert {"method", "least", "blocks"} <= {one.name for one in method_parameters(kinds)}
    assert build_method(kinds, "gcm-signs", {"least": 0.5, "blocks": 7}) == kind(least=0.5, blocks=7)


def test_every_method_of_the_list_is_an_object_of_the_public_namespace() -> None:
    for method in methods.ALL:
        assert getattr(dpc.methods, method.__name__) is method
        assert method.name and method.about and all(field.kw_only for field in fields(method))
