"""The command ``dpcausal init``: a study file from answers about each column; no value is shown or stored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dpcausal.cli.program import app
from dpcausal.cli.shared import DATA, echo, exit_codes
from dpcausal.data.toml_text import escaped
from dpcausal.errors import DpCausalError, ParameterError, nearest

INTRODUCTION = """\
You will declare the allowed values of each column. They become public, so take them
from the questionnaire or codebook, not from the data.
  a number     lowest to highest      0..110  or  0 to 110  or  0-110
  a date       first to last          2019-01-01 to 2019-12-31; by month (or quarter, year)
  a category   all values             no, yes  or  no/yes
  skip         press Enter            the column will not be used
  more         after the values       0..110; cuts 18, 40; missing 999, -9
  back         type "back"            at any question
"""
BUDGETS = """
Total privacy budget for everything ever published from these data.
  ε = 0.5 strong   1 common   2 moderate   above 5 weak
  δ is about the probability that the guarantee fails: much smaller than 1/number of people."""
GAUSSIAN = "  δ allows Gaussian noise: {}. It is taken from the budget's δ; 0 for none."
TASKS = {"1": "effect", "2": "ci_test", "3": "discover", "4": ""}
YES = {"y": True, "yes": True, "n": False, "no": False}


class BackError(Exception):
    """The previous question is asked again."""


@app.command("init")
def init_command(
    data: Annotated[str, typer.Argument(metavar="DATA", help=DATA, show_default=False)] = "",
    out: Annotated[Path, typer.Option(help="Study file to write; none is replaced.")] = Path("study.toml"),
    header: Annotated[
        bool, typer.Option("--header", help="The first line of a text file is its header, whatever it looks like.")
    ] = False,
    schema_from: Annotated[
        str, typer.Option(help="labels: take levels from the value labels of a Stata or SPSS file; no record is read.")
    ] = "",
    resume: Annotated[
        Path | None, typer.Option(help="Study file whose questions were stopped: goes on there.", show_default=False)
    ] = None,
) -> None:
    """Start a study: declare the public bounds of each column. Shows column names only."""
    with exit_codes():
        from dpcausal.data.files.formats import DataFile, is_text, likely_format
        from dpcausal.data.files.packages import columns_from_labels
        from dpcausal.data.sources.fingerprint import seen_from
        from dpcausal.study.draft import names_of
        from dpcausal.study.writing import write_new

        if (resume is None) == (not data):
            raise ParameterError("name the data, or a study file with --resume", argument="data", rule="choice")
        if resume is not None:
            _resume(resume)
            return
        if out.exists():
            text, hint = f"{str(out)!r} exists already", "edit it, or choose another name with --out"
            raise ParameterError(text, argument="out", rule="exists", hint=hint)
        if not out.absolute().parent.is_dir():
            raise ParameterError(f"{str(out)!r} is not in a folder that exists", argument="out", rule="folder")
        source, form = DataFile(data), ""
        if is_text(data) and Path(data).is_file():
            source = _confirmed_format(likely_format(data))
            form = f" ({source.form})"
        source = _chosen_sheet(source)
        names, file = names_of(source, header), replace(source, path=seen_from(out.parent, data))
        echo(f"Reading the names of {len(names)} columns{form}. No value is shown or stored.\n\n{INTRODUCTION}")
        interview = Interview(names, partial(_draft, file, out.name), has_texts=is_text(data))
        if schema_from not in ("", "labels"):
            raise ParameterError("schema-from must be labels", argument="schema_from", rule="choice")
        if schema_from:
            interview.labelled = columns_from_labels(Path(data))
            interview.entries["columns"] |= interview.labelled
            echo(f"{len(interview.labelled)} columns are declared by the file's labels: documentation, not data.\n"
                 "They become public; check them in the study file. Other columns are asked for.\n")  # fmt: skip
        _finish(interview, out, write_new)


def _draft(data: Any, file: str, entries: Mapping[str, Any]) -> str:
    from dpcausal.study.draft import draft

    others = {key: value for key, value in entries.items() if key != "dates"}
    return draft(replace(data, dates=entries["dates"]), file=file, **others)


def _ask(prompt: str, default: Any = "", kind: Any = str, visible: bool = False) -> Any:
    answer = typer.prompt(prompt, default=default, show_default=visible)
    if str(answer).strip() in ("back", "<"):
        raise BackError
    try:
        return kind(answer)
    except ValueError as error:
        echo(f"      {str(error) if kind is _order else 'Write a number, such as 0.5.'}")
        return _ask(prompt, default, kind, visible)


def _order(answer: str) -> str:
    from dpcausal.data.panels.dates import ORDERS

    if answer not in ORDERS:
        raise ValueError(f"Write one of {', '.join(ORDERS)}.")
    return answer


def _yes(prompt: str, default: str) -> bool:
    while (answer := YES.get(_ask(prompt, default).strip().lower())) is None:
        echo("      Write yes or no.")
    return answer


def _confirmed_format(likely: Any) -> Any:
    from dpcausal.data.files.formats import DECIMALS, QUOTES, SEPARATORS, THOUSANDS, DataFile

    marks = {"separator": SEPARATORS, "decimal": DECIMALS, "thousands": THOUSANDS, "quote": QUOTES}
    while likely.options:
        echo(f"The name and the header suggest this format: {likely.form}.")
        echo("It becomes public; check it against the export. No record was used.")
        if YES.get(typer.prompt("Is it right? [yes]", default="yes", show_default=False).lower(), False):
            return likely
        options = {}
        for key, known in marks.items():
            names = {name.removeprefix("decimal ") or "none": mark for mark, name in known.items()}
            usual = next(name for name, mark in names.items() if mark == getattr(likely, key))
            answer = typer.prompt(f"{key.capitalize()} ({', '.join(names)})", default=usual)
            options[key] = names.get(answer, answer)
        try:
            likely = DataFile(likely.path, **options, encoding=typer.prompt("Encoding", default=likely.encoding))
        except ParameterError as error:
            echo(f"      {error}")
    return likely


def _chosen_sheet(source: Any) -> Any:
    from dpcausal.data.files.formats import WORKBOOKS, ending_of
    from dpcausal.data.files.packages import sheets_of

    path = Path(source.path)
    if ending_of(path) not in WORKBOOKS or not path.is_file() or len(sheets := sheets_of(path)) < 2:
        return source
    return replace(source, sheet=typer.prompt(f"Sheet ({', '.join(map(escaped, sheets))})", default=sheets[0]))


@dataclass
class Interview:
    """The questions of ``init``, each a step that may be gone back from, and their answers."""

    names: list[str]
    draft: Callable[[Mapping[str, Any]], str]
    labelled: Mapping[str, Any] = field(default_factory=dict)
    has_texts: bool = False
    step: int = 0
    entries: dict[str, Any] = field(default_factory=lambda: {
        "title": "", "columns": {}, "person": None, "epsilon": 1.0, "delta": 1e-6, "question": None, "design": None,
        "dates": "year-month-day",
    })  # fmt: skip

    def text(self) -> str:
        return self.draft(self.entries)

    def run(self, start: int = 0) -> None:
        columns = [partial(self._column, place) for place in range(len(self.names))]
        steps: list[Callable[[], bool | None]]
        steps = [self._title, self._person, *columns, self._budget, self._question, self._summary]
        place, answered = min(start, len(steps) - 1), list(range(min(start, len(steps) - 1)))
        while place < len(steps):
            self.step = place
            try:
                skipped = steps[place]() is False
            except BackError:
                place = answered.pop() if answered else 0
            except DpCausalError as error:
                echo(f"      {error}{'' if str(error).endswith('?') else '.'} Try again.")
            else:
                answered += [] if skipped else [place]
                place += 1

    def _title(self) -> None:
        self.entries["title"] = typer.prompt("Title of the study")

    def _person(self) -> None:
        person = _ask("Which column identifies the person? [Enter: one row per person]")
        if person and person not in self.names:
            raise ParameterError(f"There is no column {person!r}{nearest(person, self.names)}", rule="column")
        self.entries["person"] = person or None
        echo("  Each person is protected with all their rows." if person else "  Each row is protected by itself.")

    def _column(self, place: int) -> bool:
        from dpcausal.study.draft import declaration_of
        from dpcausal.study.phrases import is_affirmative

        name, columns = self.names[place], self.entries["columns"]
        if name == self.entries["person"]:
            columns.pop(name, None)
        elif name in self.labelled:
            columns.setdefault(name, self.labelled[name])
        if name in (self.entries["person"], *self.labelled):
            return False
        width = max(len(escaped(one)) for one in self.names)
        answer = _ask(f"[{place + 1}/{len(self.names)}] {escaped(name) or '(no name)':{width}}")
        column = declaration_of("" if answer.strip().lower() == "skip" else answer)
        columns.pop(name, None)
        if column is None:
            return True
        if not name:
            echo("      A column without a name cannot be used: it is left out.")
            return True
        columns[name] = column
        if self.has_texts and isinstance(column.get("lower"), date):
            prompt = "      Dates in the file: year-month-day, day-month-year or month-day-year"
            self.entries["dates"] = _ask(prompt, self.entries["dates"], _order, True)
        levels = [str(level) for level in column.get("levels", ())]
        if len(levels) == 2 and is_affirmative(*levels):
            column["levels"] = column["levels"][::-1]
            echo(f"      Order: {levels[1]}, {levels[0]}. The last category is the treated or counted one.")
        if len({level.casefold() for level in levels}) < len(levels):
            echo("      Some categories differ only in upper and lower case: they count as different ones.\n"
                 '      To make them one, leave one out and add spellings = { F = "f" } to the file.')  # fmt: skip
        described = _ask("      label; unit; source of these values [Enter: later]").split(";")
        parts = zip(("label", "unit", "source"), (part.strip() for part in described), strict=False)
        columns[name] |= {key: part for key, part in parts if part}
        return True

    def _budget(self) -> None:
        from dpcausal.privacy.checks import check_budget
        from dpcausal.privacy.loss import ApproxDP

        echo(BUDGETS)
        epsilon = _ask("Budget ε", 1.0, float, True)
        delta = _ask("Budget δ", 1e-6, float, True)
        check_budget(ApproxDP(epsilon, delta))
        self.entries["epsilon"], self.entries["delta"] = epsilon, delta

    def _question(self) -> None:
        self.entries["question"] = self.entries["design"] = None
        columns = list(self.entries["columns"])
        default = "1" if len(columns) > 1 else "4"
        number = _ask(f"\nFirst question? 1 effect  2 association test  3 graph  4 none [{default}]", default)
        if number not in TASKS:
            raise ParameterError("Write 1, 2, 3 or 4", rule="choice")
        if not TASKS[number]:
            return
        try:
            self.entries["question"] = self._arguments(TASKS[number], columns)
        except BackError:
            self._question()

    def _arguments(self, task: str, columns: list[str]) -> dict[str, Any]:
        one: dict[str, Any] = {"name": task.replace("_", "-"), "task": task}
        if task == "effect":
            one |= {"treatment": self._several("  Treatment", 1, 1)[0]}
            if levels := self.entries["columns"][one["treatment"]].get("levels"):
                echo(f"      {escaped(str(levels[-1]))} is treated, {escaped(str(levels[0]))} is not.")
            one |= {"outcome": self._several("  Outcome", 1, 1)[0]}
            if _yes("  Was the treatment randomised? [no]", "no"):
                one["adjust"] = self._several("  Randomised within which columns, as a,b [Enter: none]", 0, 40)
                self.entries["design"] = {"type": "randomised", "within": one["adjust"]}
            else:
                one["adjust"] = self._several("  Adjust for which confounders, as a,b (or none)", 0, 40, none="none")
                self.entries["design"] = {"type": "observational"}
            groups = self._several("  Results by group [Enter: none]", 0, 1)
            one |= ({"groups": groups[0]} if groups else {}) | self._epsilon()
            if self._automatic_cuts(one["adjust"]):
                one |= self._delta("numbers without cuts are adjusted for by a model, not in four parts")
            self._advise_cuts([*(() if "delta" in one else one["adjust"]), *groups])
            return one
        if task == "ci_test":
            one |= {"x": self._several("  First column", 1, 1)[0], "y": self._several("  Second column", 1, 1)[0],
                    "given": self._several("  Given, as a,b [Enter: none]", 0, 40)}  # fmt: skip
            self._advise_cuts(one["given"])
            return one | self._epsilon()
        one["columns"] = self._several("  Columns, as a,b [Enter: all]", 0, 40) or columns
        return one | self._epsilon() | self._delta("more columns and numbers can be searched")

    def _epsilon(self) -> dict[str, float]:
        return {"epsilon": _ask("  ε for this question", self.entries["epsilon"] / 2, float, True)}

    def _delta(self, gain: str) -> dict[str, float]:
        echo(GAUSSIAN.format(gain))
        delta = _ask("  δ for this question", self.entries["delta"] / 2, float, True)
        return {"delta": delta} if delta else {}

    def _automatic_cuts(self, names: list[str]) -> dict[str, str]:
        from dpcausal.data.coding import cuts_of
        from dpcausal.data.schema import Bounded, Schema
        from dpcausal.study.file import DESCRIPTIONS

        cuts = {}
        for name in names:
            declared = {key: value for key, value in self.entries["columns"][name].items() if key not in DESCRIPTIONS}
            column = Schema({name: declared}).column(name)
            if isinstance(column, Bounded) and column.cuts is None:
                cuts[name] = ", ".join(map(column.written, cuts_of(column).tolist()))
        return cuts

    def _advise_cuts(self, names: list[str]) -> None:
        for name, cuts in self._automatic_cuts(names).items():
            echo(f"      {escaped(name)}: people are compared within four parts of equal width, cut at {cuts}.\n"
                 f"      Thresholds that matter are better: cuts = [...] under [columns.{escaped(name)}].")

    def _several(self, prompt: str, least: int, most: int, none: str = "") -> list[str]:
        columns = list(self.entries["columns"])
        while True:
            answer = _ask(prompt).strip()
            names = [] if answer == none else [name.strip() for name in answer.split(",")]
            wrong = next((name for name in names if name not in columns), None)
            if wrong is None and least <= len(names) <= most:
                return names
            missing = "" if not wrong else f"There is no declared column {wrong!r}{nearest(wrong, columns)}"
            count = f"at most {most}" if len(names) > most else f"at least {max(least, 1)}"
            number = f"Name {count} of the columns, as a,b" + (f", or {none}." if none else ".")
            echo(f"      {missing or number}")

    def _summary(self) -> None:
        echo(f"\n{self.text()}")
        if not _yes("Is it right? yes, or back to change the last answers [yes]", "yes"):
            raise BackError


def _resume(path: Path) -> None:
    from dpcausal.data.files.formats import is_text
    from dpcausal.data.sources.fingerprint import resolved
    from dpcausal.study.draft import names_of, resumed
    from dpcausal.study.file import StudyText
    from dpcausal.study.writing import replace_files

    file, entries, step = resumed(StudyText(path).text, path.name)
    names = names_of(replace(file, path=resolved(path.parent, file.path)), header=True)
    labelled = {name: column for name, column in entries["columns"].items()
                if str(column.get("source")).startswith("value labels of")}  # fmt: skip
    interview = Interview(names, partial(_draft, file, path.name), labelled, is_text(file), entries=entries)
    echo(INTRODUCTION)
    _finish(interview, path, lambda place, text: replace_files({place: text}), step)


def _finish(interview: Interview, out: Path, write: Callable[[Path, str], None], step: int = 0) -> None:
    from dpcausal.study.draft import understood

    try:
        interview.run(step)
    except typer.Abort:  # Ctrl-C or Ctrl-D
        if interview.entries["title"]:
            write(out, interview.draft({**interview.entries, "step": interview.step}))
            echo(f"\nStopped. Your answers so far are in {out}; go on: dpcausal init --resume {out}", error=True)
        raise
    write(out, interview.text())
    questions = "1 question" if interview.entries["question"] else "no question yet: add one at its end"
    columns = f"{len(interview.entries['columns'])} column{'s' * (len(interview.entries['columns']) != 1)}"
    echo(f"\nWrote {out} ({columns}, {questions}). The ledger does not exist yet.\n")
    echo("\n".join(understood(interview.entries)))
    echo(f"\nNext: dpcausal check {out}    looks for data problems (for you only, not private)\n"
         f"      dpcausal plan {out}     shows the expected accuracy, free\n"
         f"      dpcausal run {out} --new-ledger")  # fmt: skip
