"""Answers of a study: of its own data, once paid, and never lost without a word."""

import os
from pathlib import Path
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.study.status import ANSWERED, EARLIER, TO_ASK, UNKEPT
from tests.processes import called
from tests.study.made import question

LINKED: dict[str, Any] = {"task": "ci_test", "x": "a", "y": "b", "given": [], "epsilon": 1.0}


def study(
    folder: Path, *questions: str, data: str = "d.csv", columns: str = "ab", ledger: str = "s.ledger",
    epsilon: float = 4.0, named: str = "",
) -> dpc.Study:  # fmt: skip
    folder.mkdir(exist_ok=True)
    path = folder / "study.toml"
    head = f'title = "T"\ndata = "{data}"\nledger = "{ledger}"\nbudget = {{ epsilon = {epsilon} }}\n'
    name = f'name = "{named}"\n' if named else ""
    declared = "".join(f"[columns.{column}]\nlevels = [0, 1]\n" for column in columns)
    path.write_text(head + name + declared + "".join(questions or [question("linked", **LINKED)]))
    return dpc.Study.open(path)


def delivery(path: Path, seed: int = 1) -> Path:
    rows = generator_from_seed(seed).integers(0, 2, (2000, 3))
    path.parent.mkdir(exist_ok=True)
    path.write_text("a,b,c\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n")
    before = path.stat()
    os.utime(path, ns=(before.st_atime_ns, 10**18 + seed))
    return path


def spends(folder: Path) -> int:
    return (folder / "s.ledger").read_text().count('"kind":"spend"')


def states(plan: Any) -> list[str]:
    return [one.state for one in plan.questions]


def test_a_new_delivery_under_the_old_path_is_said_in_plan_run_and_report(tmp_path: Path) -> None:
    delivery(tmp_path / "d.csv")
    first = study(tmp_path).run(new_ledger=True).questions[0].answer
    assert states(study(tmp_path).plan(accuracy=False)) == [ANSWERED]
    before = study(tmp_path).report().with_suffix(".md").read_text()
    delivery(tmp_path / "d.csv", seed=2)
    for plan in (study(tmp_path).plan(accuracy=False), study(tmp_path).run(new_ledger=True)):
        assert states(plan) == [EARLIER] and not plan.done and "linked" in plan.summary()
        assert "--refresh" in plan.refresh_advice[0]
        assert plan.questions[0].answer.statistic == first.statistic and plan.questions[0].reason
    assert plan.questions[0].reason in study(tmp_path).report().with_suffix(".md").read_text()
    assert plan.questions[0].reason not in before and spends(tmp_path) == 1
    assert states(study(tmp_path).run(refresh=["linked"])) == [ANSWERED] == states(study(tmp_path).plan(accuracy=False))
    assert spends(tmp_path) == 2
    assert study(tmp_path).plan(accuracy=False).refresh_advice == []
    delivery(tmp_path / "d.csv", seed=3)
    assert states(study(tmp_path, named="third").run(new_ledger=True)) == [ANSWERED] and spends(tmp_path) == 3


def test_a_report_of_data_that_are_gone_still_tells_their_answers(tmp_path: Path) -> None:
    delivery(tmp_path / "d.csv")
    text = (study(tmp_path).path).read_text().replace('title = "T"', 'title = "T"\nn = 2000')
    (tmp_path / "study.toml").write_text(text)
    dpc.Study.open(tmp_path / "study.toml").run(new_ledger=True)
    (tmp_path / "d.csv").unlink()
    gone = dpc.Study.open(tmp_path / "study.toml")
    assert states(gone.plan(accuracy=False)) == [ANSWERED] and "linked" in gone.report().read_text()


def test_another_spelling_a_moved_folder_and_a_column_more_are_paid_for_once(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    delivery(folder / "d.csv")
    study(folder).run(new_ledger=True)
    (folder / "link.csv").symlink_to("d.csv")
    for data in ("./d.csv", "../first/d.csv", "link.csv"):
        assert study(folder, data=data).run(new_ledger=True).questions[0].answer.guarantee.cached, data
    both = question("linked", **LINKED), question("second", **LINKED | {"y": "c"})
    assert states(study(folder, *both, columns="abc").plan(accuracy=False)) == [ANSWERED, TO_ASK]
    folder.rename(tmp_path / "moved")
    assert study(tmp_path / "moved").run(new_ledger=True).questions[0].answer.guarantee.cached
    assert spends(tmp_path / "moved") == 1


def test_files_of_one_name_in_two_folders_are_two_questions(tmp_path: Path) -> None:
    for number, place in enumerate(("one", "two"), start=1):
        delivery(tmp_path / place / "d.csv", seed=number)
        found = study(tmp_path / place, ledger="../s.ledger").run(new_ledger=True)
        assert states(found) == [ANSWERED] and found.questions[0].answer.guarantee.cached == ""
        assert spends(tmp_path) == number
    (tmp_path / "one" / "d.csv").unlink()
    (tmp_path / "one" / "d.csv").symlink_to("../two/d.csv")
    again = study(tmp_path / "one", ledger="../s.ledger").run().questions[0].answer
    assert again.guarantee.cached.startswith("spend 2")


def test_one_question_under_two_names_is_counted_and_paid_once(tmp_path: Path) -> None:
    delivery(tmp_path / "d.csv")
    both = study(tmp_path, *(question(name, **LINKED) for name in ("main", "appendix")), epsilon=1.0)
    plan = both.plan(accuracy=False)
    assert states(plan) == [TO_ASK, TO_ASK] and plan.questions[1].reason and not plan.questions[0].reason
    assert states(both.run(new_ledger=True)) == [ANSWERED, ANSWERED] and spends(tmp_path) == 1
    text = both.report().with_suffix(".md").read_text()
    assert "main, appendix" in text
    with pytest.raises(dpc.errors.BudgetExceededError):
        both.run(refresh=["main", "appendix"], new_ledger=True)


def test_frames_of_one_study_are_told_apart(tmp_path: Path) -> None:
    import pandas as pd

    delivery(tmp_path / "d.csv")
    study(tmp_path)
    first, second = pd.read_csv(tmp_path / "d.csv"), pd.read_csv(tmp_path / "d.csv")
    found = dpc.Study.open(tmp_path / "study.toml", data=first)
    assert states(found.run(new_ledger=True)) == [ANSWERED] == states(found.plan(accuracy=False))
    assert states(dpc.Study.open(tmp_path / "study.toml", data=second).plan(accuracy=False)) == [EARLIER]


@pytest.mark.parametrize("command", ["run", "cells"])
def test_a_disk_that_fills_between_spend_and_answer_ends_the_command_with_a_code_and_the_answer(
    command: str, tmp_path: Path
) -> None:
    """Seen to fail: exit code 0 and "answered", and neither the next run nor the report had the answer."""
    delivery(tmp_path / "d.csv")
    study(tmp_path, question("q", "cells", by=["a", "b"], epsilon=0.5))
    (tmp_path / "schema.toml").write_text("[a]\nlevels = [0, 1]\n[b]\nlevels = [0, 1]\n")
    ledger = tmp_path / "s.ledger"
    dpc.Ledger.create(ledger, budget=dpc.PureDP(4)).close()
    words = ["run", "study.toml"] if command == "run" else [
        "ci-test", "d.csv", "a", "b", "--schema", "schema.toml", "--ledger", "s.ledger", "--epsilon", "0.5", "--name",
        "s"]  # fmt: skip
    size, done = ledger.stat().st_size, None
    for room in range(600, 3000, 200):  # as a line for the spend has one length, and one for the answer another
        done = called(tmp_path, *words, most_bytes=size + room)
        if spends(tmp_path):
            break
    assert done is not None and spends(tmp_path) == 1 and '"kind":"answer"' not in ledger.read_text()
    assert done.returncode not in (0, 1), done.stderr
    assert command != "run" or UNKEPT in done.stdout
    assert "counts of" in done.stdout or "b" in done.stdout.split(":")[0] or "q:" in done.stdout
    assert "Traceback" not in done.stderr and dpc.Ledger.open(ledger).verify()
    assert called(tmp_path, *words).returncode == 2 and spends(tmp_path) == 1
