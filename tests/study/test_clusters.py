"""A study that names clusters is planned without data, and its answer and entry say whose inference it is."""

import json
from pathlib import Path

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.study.status import TO_ASK
from dpcausal.study.wording import Wording

STUDY = """title = "Villages"
data = "villages.csv"
n = 4000
ledger = "villages.ledger"
budget = { epsilon = 1.0 }
[design]
type = "randomised"
[columns.arm]
levels = [0, 1]
[columns.y]
lower = -8
upper = 8
[[question]]
name = "effect"
task = "effect"
treatment = "arm"
outcome = "y"
adjust = []
cluster = "village"
epsilon = 1.0
"""


def test_clusters_are_planned_for_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    plan = dpc.Study.open("study.toml").plan()
    assert [one.state for one in plan.questions] == [TO_ASK] and "40 clusters" in plan.questions[0].forecast
    rng = np.random.default_rng(1)
    village = rng.permutation(np.arange(4_000) % 50)
    arm = (rng.random(50) < 0.5).astype(int)[village]
    y = arm + rng.normal(0, 1, 50)[village] + rng.normal(0, 1, 4_000)
    rows = [f"v{one},{a},{value:.3f}" for one, a, value in zip(village, arm, y, strict=True)]
    Path("villages.csv").write_text("\n".join(["village,arm,y", *rows]))
    study = dpc.Study.open("study.toml")
    answer = study.run(new_ledger=True).questions[0].answer
    assert answer.cluster == "village" and answer.clusters > 0
    told = Wording.of(study.file).conclusions(study.file.question[0], answer)
    assert any("village" in one and f"{answer.clusters:.0f}" in one for one in told)
    with dpc.Ledger.open("villages.ledger", read_only=True) as ledger:
        assert json.loads(ledger.entries()[0].detail)["cluster"] == "village"
