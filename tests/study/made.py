"""Made-up studies for tests, audit and browser: ``python -m tests.study.made FOLDER`` writes, runs and reports two."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.privacy.noise import generator_from_seed

HEAD = """title = {title!r}
data = "d.csv"
ledger = "s.ledger"
budget = {{ epsilon = {epsilon}, delta = 1e-6 }}
[columns.a]
levels = [0, 1]
[columns.b]
levels = [0, 1]
[columns.u]
lower = -4
upper = 4
[columns.v]
lower = -4
upper = 4
"""
ASKED = (
    'name="test"\ntask="ci_test"\nx="a"\ny="b"\ngiven=[]', 'name="way"\ntask="direction"\nx="u"\ny="v"\nscore="hsic"',
    'name="graph"\ntask="discover"\ncolumns=["a","b"]', 'name="sums"\ntask="cells"\nby=["a"]\nvalues=["u"]',
    'name="size"\ntask="effect"\ntreatment="a"\noutcome="b"\nadjust=[]',
    'name="many"\ntask="ci_tests"\nhypotheses=[["a","b",[]],["a","u",[]]]',
)  # fmt: skip
"""One question of each kind of picture."""


def write(folder: Path, questions: str, *, n: int, title: str = "A study", epsilon: float | str = 9.0) -> Path:
    """Write a table of linked pairs, a to b and u to v, with a study of it, and return the study's path."""
    coins = generator_from_seed(1)
    a, u = coins.integers(0, 2, n), np.round(coins.normal(size=n), 3)
    b = np.where(coins.random(n) < 0.8, a, 1 - a)
    v = np.round(0.5 * u + 0.5 * coins.normal(size=n), 3)
    rows = "\n".join(",".join(map(str, row)) for row in zip(a, b, u, v, strict=True))
    (folder / "d.csv").write_text(f"a,b,u,v\n{rows}\n")
    path = folder / "s.toml"
    path.write_text(HEAD.format(title=title, epsilon=epsilon) + questions)
    return path


def question(name: str, task: str, **arguments: Any) -> str:
    """Return a question as a study file has it, a line for each argument; a table is given as the file writes it."""
    values = {"name": name, "task": task, **arguments}
    lines = (f"{key} = {one if str(one)[:1] == '{' else json.dumps(one)}\n" for key, one in values.items())
    return "".join(("[[question]]\n", *lines))


def asked(epsilon: float = 1.0) -> str:
    """Return a question of each kind."""
    return "".join(f"[[question]]\n{one}\nepsilon={epsilon}\n" for one in ASKED)


def main(folder: Path) -> None:
    """Write reports of a table, two of whose questions go without an answer, and of a panel."""
    folder.mkdir(parents=True, exist_ok=True)
    beyond = '[[question]]\nname="beyond"\ntask="ci_test"\nx="u"\ny="v"\ngiven=["a"]\nepsilon=15\n'
    cannot = '[[question]]\nname="cannot"\ntask="effect"\ntreatment="u"\noutcome="v"\nadjust=[]\nepsilon=1\n'
    study = dpc.Study.open(write(folder, asked() + beyond + cannot, n=3000, title="Every kind of question"))
    study.run(new_ledger=True, partial=True)
    print(study.report("table.html"))
    made = dpc.simulate.factor_panel(1000, effect=0.3, seed=1)
    series = np.vstack([made.target, made.donors])
    rows = [f"{unit},{time},{value}" for unit, one in enumerate(series) for time, value in enumerate(one, start=1)]
    (folder / "p.csv").write_text("\n".join(["unit,time,outcome", *rows]))
    (folder / "p.toml").write_text(
        'title = "What would have happened?"\ndata = "p.csv"\nledger = "p.ledger"\nbudget = { epsilon = 1.0 }\n'
        f'[panel]\nunit = "unit"\ntime = "time"\noutcome = "outcome"\ntarget = 0\nstart = {made.start}\n'
        f"bounds = {{ lower = {made.bounds.lower}, upper = {made.bounds.upper} }}\n"
        '[[question]]\nname = "path"\ntask = "synthetic_control"\nepsilon = 1.0\n'
    )
    panel = dpc.Study.open(folder / "p.toml")
    print(panel.run(new_ledger=True).summary())
    print(panel.report("panel.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
