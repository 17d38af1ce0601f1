"""No planted value comes out of a test of independence: results, pictures, pickles, ledger, loggers, streams."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from tests.independence.neighbours import KINDS, METHODS, WITH_MODEL, way
from tests.test_leaks import TABLE, clean, holds_data, quiet, shown  # noqa: F401  (a fixture among them)

PLANTED = pa.concat_tables([TABLE] * 8)
SCHEMA = dpc.Schema(
    {"x": dpc.Bounded(0, 100), "y": dpc.Bounded(0, 100), "z": dpc.Levels(["no", "yes"]), "v": dpc.Bounded(0, 100),
     "second": dpc.Levels(["no", "yes"])}
)  # fmt: skip
FRAME = PLANTED.append_column("v", pa.array(np.resize(np.asarray(TABLE["x"])[::-1], len(PLANTED))))
FRAME = FRAME.append_column("second", FRAME["z"])


def ask(method: str, **arguments: Any) -> Any:
    loss = arguments.pop("loss", dpc.PureDP(1))
    exact = isinstance(loss, dpc.NoPrivacy)
    ledger = dpc.Ledger.without_privacy() if exact else dpc.Ledger.in_memory(dpc.ApproxDP(20, 0.5))
    table = dpc.Table(FRAME, SCHEMA, ledger, missing="impute")
    model = {"model_x": dpc.ModelX(mean=lambda Z: 50 + 0 * Z[:, 0], sd=20.0)} if method in WITH_MODEL else {}
    asked = way(method, **model)
    fixed: dict[str, list[str]] = {"hsic": [], "strata-covariance": ["z"], "counts": []}
    x, y = ("z", "second") if method == "counts" else ("x", "y")
    with dpc.simulated_noise(3):
        result = dpc.ci_test(table, x, y, given=fixed.get(method, ["v", "z"]), loss=loss, method=asked, **arguments)
    clean([repr(table.ledger.entries())])
    return result


@pytest.mark.parametrize("method", METHODS)
def test_nothing_planted_comes_out_of_any_method(method: str, quiet: None) -> None:  # noqa: F811
    result = ask(method)
    clean(shown(result))
    assert not holds_data(result) and (result.pvalue is not None) == KINDS[method].releases_pvalue
    assert result.plot().get_title().endswith("NOT PRIVATE")


@pytest.mark.parametrize("method", ["gcm", "gcm-weighted", "crt"])
def test_nothing_planted_comes_out_without_privacy(method: str, quiet: None) -> None:  # noqa: F811
    clean(shown(ask(method, loss=dpc.NoPrivacy())))


def test_nothing_planted_comes_out_of_many_tests(quiet: None) -> None:  # noqa: F811
    table = dpc.Table(FRAME, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(2)), missing="impute")
    with dpc.simulated_noise(3):
        found = dpc.ci_tests(table, [("x", "y", ["v"]), ("x", "z", [])], loss=dpc.PureDP(2), method=way("gcm"))
    clean(shown(found))
    assert not holds_data(found)
