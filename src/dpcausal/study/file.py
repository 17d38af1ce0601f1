"""The study file: its shape, checked by pydantic, and errors that name the line."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from dpcausal.data.files.formats import DataFile
from dpcausal.data.schema import Schema
from dpcausal.data.toml_text import text_of, toml_in
from dpcausal.errors import DpCausalError, Hint, ParameterError
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, PureDP, written_amount

Place = tuple[str | int, ...]

HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'))*)\s*=")


def lines_of(text: str) -> dict[Place, int]:
    """Return the line of each table and key, by its path; arrays of tables are counted.

    Examples
    --------
    >>> lines_of('title = "t"\\n[[question]]\\nname = "a"\\n')
    {('title',): 1, ('question', 0): 2, ('question', 0, 'name'): 3}
    """
    lines: dict[Place, int] = {}
    arrays: Counter[Place] = Counter()
    table: Place = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header, key = HEADER.match(line), KEY.match(line)
        if key is not None:
            lines.setdefault((*table, *_place_names(key[1])), number)
        elif header is not None and _place_names(header[2]):
            table = _place_names(header[2])
            if header[1] == "[[":
                arrays[table] += 1
                table = (*table, arrays[table] - 1)
            lines.setdefault(table, number)
    return lines


def _place_names(dotted: str) -> Place:
    try:
        nested = tomllib.loads(f"{dotted} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    names: list[str | int] = []
    while isinstance(nested, dict):
        ((name, nested),) = nested.items()
        names.append(name)
    return tuple(names)


ONE_TEXT = "constrained-str"
"""What pydantic calls a text among several types."""
Text = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]


def _checked_amount(value: object) -> float | Fraction:
    if isinstance(value, str):
        return written_amount(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError('must be a number above 0, or a fraction in quotes, as "1/3"')
    return value


Amount = Annotated[Any, PlainValidator(_checked_amount), WithJsonSchema({"type": ["number", "string"]})]


class Part(BaseModel):
    """A table of the file: unknown keys are refused, what was given is not printed."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, frozen=True, use_attribute_docstrings=True)


class Price(Part):
    """An amount: ``epsilon``, with ``delta`` or without, or ``rho``."""

    epsilon: Amount | None = None
    """Privacy loss ε, a number or a fraction in quotes such as "1/3"."""
    delta: Amount | None = None
    """Privacy loss δ, much smaller than 1 divided by the number of persons."""
    rho: Amount | None = None
    """Privacy loss ρ of zero-concentrated privacy, instead of ε and δ."""

    @model_validator(mode="after")
    def _one_kind(self) -> Price:
        if (self.epsilon is None) == (self.rho is None) or (self.rho is not None and self.delta is not None):
            raise ValueError("say epsilon, or epsilon and delta, or rho")
        return self

    def loss(self) -> Loss:
        if self.rho is not None:
            return ZCDP(self.rho)
        epsilon = self.epsilon or 0.0
        return PureDP(epsilon) if self.delta is None else ApproxDP(epsilon, self.delta)


class Budget(Price):
    """The budget: an amount, and consent to one above ε = 20."""

    accept_large_epsilon: bool = Field(default=False, description="Whether a budget above ε = 20 is accepted.")


class QuestionPart(Price):
    """A question: its name, its task, what it may cost, and the task's arguments by their Python names. ``assumed``
    holds what a plan supposes of it, as ``dpcausal.plan`` takes it: ``assumed = {share = 0.02}``."""

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True, frozen=True, use_attribute_docstrings=True)

    name: Annotated[str, StringConstraints(pattern=r"^[\w .-]{1,60}$")]
    """Name of the question in results and in the report."""
    task: Text
    """What is asked: effect, did, discontinuity, ci_test, discover, direction or another task."""
    where: Text | None = None
    """Subgroup that the question is about, such as "age >= 50 and sex in ['f']"."""
    method: str | dict[str, Any] = "auto"
    """Short name of a method, or a table with its name and options."""
    assumed: dict[str, Any] = Field(default_factory=dict)
    """Assumptions of the plan, such as {share = 0.02, spread = 0.1}; spread is the SD divided by the bounds' width."""

    @property
    def arguments(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class DataPart(Part):
    """A data file and its format."""

    file: Text = Field(description="Path of the data file, relative to the study file.")
    separator: str = Field(default="", description="Separator of the fields: a comma, a semicolon, a tab or a bar.")
    decimal: str = Field(default=".", description="Decimal point or comma of numbers.")
    thousands: str = Field(default="", description="Mark between thousands: comma, point, blank or apostrophe.")
    quote: str = Field(default='"', description="Quotation mark around fields: double, single or none.")
    dates: str = Field(default="year-month-day", description="Order of dates: year-month-day, day-month-year, ...")
    encoding: str = Field(default="utf-8", description="Encoding of the text, such as utf-8 or cp1252.")
    sheet: str = Field(default="", description="Sheet of a workbook that has several.")

    def at(self, path: str) -> DataFile:
        return DataFile(path, **self.model_dump(exclude={"file"}))

    @model_validator(mode="after")
    def _known(self) -> DataPart:
        try:
            self.at(self.file)
        except ParameterError as error:
            raise ValueError(str(error)) from None
        return self


class Bounds(Part):
    """Public bounds of a panel's outcome."""

    lower: Annotated[float, Field(strict=True)]
    """Least value that counts."""
    upper: Annotated[float, Field(strict=True)]
    """Largest value that counts."""


class PanelPart(Part):
    """How the data are a panel: as ``dpcausal.Panel`` takes it."""

    unit: Text = Field(description="Column with the name of the unit.")
    time: Text = Field(description="Column with the period.")
    outcome: Text = Field(description="Column with the outcome.")
    target: Any = Field(description="Treated unit, or a list of them.")
    start: Any = Field(description="First treated period.")
    bounds: Bounds = Field(description="Public bounds of the outcome.")
    treated: tuple[Any, ...] | str = ()
    """All treated units: a list, or a rule such as "unit in ['a', 'b']"."""
    times: tuple[Any, ...] | None = None
    """Periods in order, where the column does not say it."""
    period: str | None = Field(default=None, description="Period of dates: month, quarter or year.")
    missing: str = Field(default="carry", description="Rule for missing periods of control units: carry or midpoint.")


class Design(Part):
    """How the treatment came about: without it, the report calls no association an effect."""

    type: Literal["randomised", "observational"]
    """How treatment was assigned: randomised or observational."""
    treatment: Text | None = None
    """Column of the treatment that was assigned; needed where the questions have several."""
    within: tuple[Text, ...] = Field(default=(), description="Columns within which treatment was randomised.")
    unit_of_assignment: Text | None = None
    """Column with the unit that was assigned, such as a clinic."""


class Approvers(Part):
    """Who signs the report: name and institution."""

    controller: Text | None = Field(default=None, description="Data controller, with institution.")
    analyst: Text | None = Field(default=None, description="Analyst, with institution.")
    privacy_officer: Text | None = Field(default=None, description="Privacy officer, with institution.")


class Disclosure(Part):
    """What only a person can say, for the report and the registry."""

    curators: Text | None = Field(default=None, description="Who holds the data.")
    contact: Text | None = Field(default=None, description="Whom to ask about the publication.")
    description: str | None = Field(default=None, description="What the publication is, in a sentence.")
    intended_use: str | None = Field(default=None, description="What the results are for.")
    region: Text | None = Field(default=None, description="Where the persons live.")
    population: str | None = Field(default=None, description="Who the persons are.")
    actors: str | None = Field(default=None, description="Who has access to what.")
    justification: str | None = Field(default=None, description="Why this budget was chosen.")
    looked_at_before: str | None = None
    """Who looked at the data before the questions were fixed."""


class WeightPart(Part):
    """Survey weights of the rows."""

    column: Text = Field(description="Column with the weights.")
    largest: Annotated[float, Field(gt=0)]
    """Public maximum; a weight above it counts as the maximum."""


class StudyFile(Part):
    """The whole file."""

    title: Text = Field(description="Title of the study and of its report.")
    data: Text | DataPart
    """Path of the data file, relative to the study file; a table if its format is not the usual one."""
    ledger: Text = Field(description="Path of the ledger, relative to the study file.")
    budget: Budget = Field(description="Total privacy budget of the ledger.")
    name: Annotated[str, StringConstraints(max_length=200)] = ""
    """Permanent name of the data set; repeated questions are then free."""
    n: Annotated[int, Field(ge=1, le=10**12, strict=True)] | None = None
    """Public number of rows or persons, where it is not read from the file."""
    person: Text | None = None
    """Column with the person ID: all rows of a person are protected together."""
    ids: str = Field(default="private", description="Whether the IDs are private or public.")
    max_rows_per_person: Annotated[int, Field(ge=1, strict=True)] | None = None
    """Most rows of a person that count."""
    weight: WeightPart | None = Field(default=None, description="Survey weights: their column and public maximum.")
    missing: str = Field(default="drop", description="Rule for missing values: drop, level or impute.")
    columns: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Allowed values of each column: bounds or levels, label, unit, missing codes, source."""
    panel: PanelPart | None = Field(default=None, description="Layout of a panel, for synthetic control.")
    question: list[QuestionPart] = Field(default_factory=list, description="The questions, in order.")
    disclosure: Disclosure = Field(default=Disclosure(), description="What only a person can say, for the report.")
    design: Design | None = Field(default=None, description="How the treatment came about.")
    approvers: Approvers = Field(default=Approvers(), description="Who signs the report.")

    @property
    def data_file(self) -> str:
        return self.data.file if isinstance(self.data, DataPart) else self.data

    @property
    def table_options(self) -> dict[str, Any]:
        """The arguments of ``Table`` that say whose the rows are and how they count."""
        clusters = dict.fromkeys(one.arguments.get("cluster") for one in self.question)
        return {
            "person": self.person, "ids": self.ids, "max_rows_per_person": self.max_rows_per_person,
            "weight": None if self.weight is None else (self.weight.column, self.weight.largest),
            "missing": self.missing, "clusters": [one for one in clusters if isinstance(one, str)],
        }  # fmt: skip

    @model_validator(mode="after")
    def _whole(self) -> StudyFile:
        if not self.columns and self.panel is None:
            raise ValueError("declare [columns.NAME] for each column that is asked about, or a [panel]")
        treatments = {str(one.arguments["treatment"]) for one in self.question if "treatment" in one.arguments}
        design = self.design
        if design is not None and design.type == "randomised" and design.treatment is None and len(treatments) > 1:
            text = "the questions have several treatments: name the one that was randomised by treatment under [design]"
            raise ValueError(text)
        return self

    def described(self, key: str) -> dict[str, Any]:
        """Return what the columns say under a key of ``DESCRIPTIONS``, by column."""
        return {name: column[key] for name, column in self.columns.items() if key in column}

    def unfilled(self) -> list[str]:
        """Return the entries that only a person can fill, and that the report marks as empty."""
        wanted = {"disclosure": ("population", "actors", "justification", "looked_at_before"),
                  "approvers": ("controller", "analyst", "privacy_officer")}  # fmt: skip
        missing = [f"{part}.{key}" for part, keys in wanted.items() for key in keys
                   if getattr(getattr(self, part), key) is None]  # fmt: skip
        return missing + ([] if self.design is not None else ["design.type"])


DESCRIPTIONS = {"label": str, "unit": str, "source": str, "meaning": str, "level_labels": dict}
"""What a column of a study may say of itself for the report, and what is not part of its schema."""


def json_schema() -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **StudyFile.model_json_schema()}


class StudyText:
    """A file as it was read: its text, and its name for messages."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.text = text_of(path, "'dpcausal init DATA' makes a study file")
        self.path = Path(path)

    def refusal(self, place: Place, text: str, rule: str = "study-file", hint: Hint = "") -> ParameterError:
        lines = lines_of(self.text)
        line = next((lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in lines), None)
        dotted = ".".join(str(part) for part in place if not isinstance(part, int))
        where = f"{self.path.name}{'' if line is None else f', line {line}'}{f', {dotted}' if dotted else ''}"
        return ParameterError(f"{where}: {text}", argument=dotted, rule=rule, hint=hint)

    def read(self) -> tuple[StudyFile, Schema | None]:
        table = toml_in(self.text, self.path.name)
        problems: list[ParameterError] = []
        try:
            study = StudyFile.model_validate(table)
        except ValidationError as error:
            is_table = isinstance(table.get("data"), dict)  # of a text or a table, errors of the other are left out
            problems = [self._problem(details) for details in error.errors(include_url=False, include_input=False)
                        if details["loc"][:1] != ("data",) or is_table != (ONE_TEXT in details["loc"])]  # fmt: skip
        if problems:
            raise ParameterError("\n".join(str(problem) for problem in problems))
        columns = {}
        for name, declared in study.columns.items():
            for key, kind in DESCRIPTIONS.items():
                if not isinstance(declared.get(key, kind()), kind):
                    raise self.refusal(("columns", name, key), f"must be {'text' if kind is str else 'a table'}")
            try:
                schema = {key: value for key, value in declared.items() if key not in DESCRIPTIONS}
                columns[name] = Schema({name: schema})[name]
            except DpCausalError as error:
                text = error.message("toml")
                raise self.refusal(("columns", name), text.partition(": ")[2] or text) from None
        names = [question.name for question in study.question]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise self.refusal(("question", place, "name"), f"{name!r} names another question already")
        return study, Schema(columns) if columns else None

    def _problem(self, details: Any) -> ParameterError:
        inner = ("function-", ONE_TEXT, "DataPart")
        place: Place = tuple(part for part in details["loc"] if not str(part).startswith(inner))
        known = {"missing": "is missing", "extra_forbidden": "is not a key of a study",
                 "model_type": "must be a table, as budget = { epsilon = 2.0, delta = 1e-6 }"}
        return self.refusal(place, known.get(details["type"], str(details["msg"]).removeprefix("Value error, ")))
