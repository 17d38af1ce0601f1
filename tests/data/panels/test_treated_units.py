"""Who is treated, by names or by a rule about names: no record decides, and a rule is the same however written."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.data.panels.treated_units import checked_treated, membership
from dpcausal.errors import ParameterError

NAMES: tuple[Any, ...] = (None, -5, 0, 3, 3.5, 7, "", "3", "03", "3.5", "7e0", "a", "b", "nan", "9" * 400, "0x1f", True)


@pytest.mark.parametrize(
    ("rule", "target", "true_of"),
    [
        ("unit >= 3 and unit <= 7", 3, {3, 3.5, 7, "3", "03", "3.5"}),
        ("state in [3, 'b']", "b", {3, "3", "03", "b"}),
        ("state == '03'", "03", {"03"}),
        ("unit >= 'a' and state <= 'b'", "a", {"a", "b"}),
        ("unit <= -1.5", -5, {-5}),
    ],
)
def test_a_rule_is_true_of_the_names_that_python_says(rule: str, target: Any, true_of: set[Any]) -> None:
    """Numbers are compared with numbers and texts that are plain numbers, texts with texts, a null with nothing."""
    holds = membership(checked_treated(rule, [target], "state"), as_text=False)
    assert {name for name in NAMES if name is not True and holds(name)} == true_of
    assert not holds(None)


def test_two_ways_to_write_a_rule_are_one_and_another_rule_is_another() -> None:
    first = checked_treated("state <= 9 and state >= 2 and state in [3, 2, 3]", [3], "state")
    assert (
        first
        == checked_treated("unit in (2, 3) and unit >= 2 and unit <= 9", [2], "place")
        == checked_treated(str(first), [3])
    )
    assert first != checked_treated("unit in (2, 3) and unit >= 2", [2])


@pytest.mark.parametrize(
    "rule",
    ["3", "unit", "unit > 3", "unit != 3", "unit >= 3 or unit <= 1", "other >= 3", "unit >= True", "unit in 'abc'",
     "unit in []", "unit in [None]", "unit >= 1e400", "unit == [1]", "unit >= __import__('os')", "unit >= 4", 3, b"3"],
)  # fmt: skip
def test_what_is_no_rule_or_leaves_the_target_out_is_refused(rule: Any) -> None:
    with pytest.raises(ParameterError, match="treated must"):
        checked_treated(rule, [3], "unit")


def test_names_are_told_apart_as_a_frame_tells_them_apart() -> None:
    named = checked_treated([3, "b"], ["b"])
    assert [membership(named, as_text)("3") for as_text in (False, True)] == [False, True]
    assert membership(named, False)(3) and not membership(named, True)(3)
    assert checked_treated((), [3, 4]) == (3, 4)


@pytest.mark.parametrize("targets", [(1, 1.0), (1e16, 10**16), (1, np.float64(1))])
def test_numbers_of_one_name_are_one_unit_of_a_text_file(targets: tuple[Any, Any], tmp_path: Path) -> None:
    """Seen to fail: the units "1" and "1.0" of a CSV file were each a public target under one declaration."""
    path = tmp_path / "panel.csv"
    units = [*(str(target) for target in targets), "2", "3"]
    path.write_text("u,t,y\n" + "".join(f"{u},{t},{place}\n" for place, u in enumerate(units) for t in range(4)))
    ledger, nine = dpc.Ledger.in_memory(dpc.PureDP(1), unit="u"), dpc.Bounded(0, 9)
    found = [
        dpc.Panel(path, unit="u", time="t", outcome="y", target=target, start=2, bounds=nine, ledger=ledger)
        for target in targets
    ]
    assert [one.series(one.targets[0]).tolist() for one in found] == [[units.index(str(int(targets[0])))] * 4] * 2
