"""A study: a file of questions, its plan, its run and its report."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcausal.data.curator.profile import SchemaCheck, check
from dpcausal.data.files.formats import DataFile
from dpcausal.data.panels.panel import Panel
from dpcausal.data.records import LONGEST_NAME
from dpcausal.data.sources.fingerprint import CLUSTER, Stamp, place_from, resolved
from dpcausal.data.sources.origin import Origin
from dpcausal.data.table import Table
from dpcausal.errors import (
    BudgetExceededError,
    DpCausalError,
    LedgerDamagedError,
    LedgerError,
    LossError,
    ParameterError,
    Setting,
    with_signature_errors,
)
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.storage.entries import total_text
from dpcausal.privacy.storage.place import ledger_exists, refuse_lost
from dpcausal.privacy.storage.postgres import Address
from dpcausal.privacy.unpicklable import Uncopyable
from dpcausal.study import tasks
from dpcausal.study.report.inputs import ReportInputs
from dpcausal.study.report.write_report import write_report
from dpcausal.study.status import (
    ANSWERED,
    BEYOND,
    CANNOT,
    EARLIER,
    SAVE,
    SPENT,
    TO_ASK,
    UNKEPT,
    Forecaster,
    QuestionStatus,
    StudyPlan,
    is_cached,
    simulated_ledger,
    status_of,
)
from dpcausal.study.subject import subject_of_data, subject_of_results, table_of_size
from dpcausal.study.wording import Wording
from dpcausal.study.writing import one_at_a_time

if TYPE_CHECKING:
    from dpcausal.study.file import QuestionPart, StudyText

Progress = Callable[[int, int, str], None]


class Study(Uncopyable):
    """A study file: questions about one table or panel, under one budget.

    Attributes
    ----------
    path : Path
    file : StudyFile
        Its content, checked.
    schema : Schema or None
        Of its columns.

    Notes
    -----
    *Guarantee*: that of the ledger: ``run`` spends from it question by question, ``plan``, ``report`` and ``open``
    spend nothing and read no record.  Results are cached under the study's ``name``, by default the place of its data
    as seen from the ledger.  If the file was written to since, they are results of other data.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "study.toml"
    >>> written = file.write_text('''
    ... title = "Are a and b linked?"
    ... data = "study.csv"
    ... ledger = "study.ledger"
    ... budget = { epsilon = 1.0 }
    ... n = 2000
    ... columns = { a = { levels = [0, 1] }, b = { levels = [0, 1] } }
    ... [[question]]
    ... name = "linked"
    ... task = "ci_test"
    ... x = "a"
    ... y = "b"
    ... given = []
    ... epsilon = 0.5
    ... ''')
    >>> "linked" in Study.open(file).plan().summary()
    True
    """

    confined = "a study may hold private records: it cannot be pickled, open its file again"

    def __init__(self, source: StudyText, data: Any = None) -> None:
        self.path = source.path
        self.file, self.schema = source.read()
        self._source, self._data = source, data
        if Address.fits(self.file.ledger) and Address.of(self.file.ledger).has_password():
            raise source.refusal(("ledger",), "a study file holds no password: set PGPASSWORD, or use ~/.pgpass")
        try:
            self.trial()
        except LossError as error:
            raise source.refusal(("budget",), error.message("toml"), error.rule) from None
        for place, question in enumerate(self.file.question):
            try:
                tasks.check(question)
            except ParameterError as error:
                text = f"{question.name}: {error.message('toml')}"
                raise source.refusal(("question", place), text, error.rule) from None

    @classmethod
    def open(cls, path: str | PathLike[str], data: Any = None) -> Study:
        """Read and check a study file; a frame given as ``data`` replaces the file that it names."""
        from dpcausal.study.file import StudyText  # pydantic is slow to load

        return cls(StudyText(path), data)

    @property
    def name(self) -> str:
        """The name under which answers are kept: its own, or where its data are, seen from its ledger.

        So it stays as it is where both are moved, and two folders' files of one name are two.
        """
        folder = self.ledger_path.parent if isinstance(self.ledger_path, Path) else self.path.parent
        place = self.file.name or place_from(folder, self._path())
        return place if len(place) <= LONGEST_NAME and place.isprintable() else sha256(os.fsencode(place)).hexdigest()

    @property
    def budget(self) -> Loss:
        """The whole budget."""
        return self.file.budget.loss()

    @property
    def unit(self) -> dict[str, str]:
        """Whom the ledger protects, in the words of ``Ledger.create``."""
        if self.file.panel is not None:
            return {"unit": self.file.panel.unit}
        return {} if self.file.person is None else {"person": self.file.person, "ids": self.file.ids}

    def trial(self) -> Ledger:
        """Return a new ledger in memory that is declared as the study's."""
        return Ledger.in_memory(self.budget, **self.unit, accept_large_epsilon=self.file.budget.accept_large_epsilon)

    @property
    def ledger_path(self) -> Path | str:
        """Its file, or its address in a database."""
        return self.file.ledger if Address.fits(self.file.ledger) else self.path.parent / self.file.ledger

    def ledger_exists(self) -> bool:
        return ledger_exists(self.ledger_path)

    def __repr__(self) -> str:
        return f"Study({str(self.path)!r}, {len(self.file.question)} questions)"

    def check(self) -> SchemaCheck:
        """Return what the schema does to the data: NOT PRIVATE, for the curator alone."""
        if self.schema is None:
            raise ParameterError("a study of a panel declares no columns to check")
        return check(
            self._frame(), self.schema, meanings=self.file.described("level_labels"), person=self.file.person
        )

    def plan(self, *, accuracy: bool = True) -> StudyPlan:
        """Return what each question would cost, what accuracy to expect, and what cannot work; no record is read.

        Parameters
        ----------
        accuracy : bool
            False leaves the forecasts out, which take some seconds.
        """
        reading = self._opened(read_only=True) if self.ledger_exists() else nullcontext(None)
        with reading as ledger:
            subject = self._public_subject(ledger)
            statuses = self._statuses(subject, ledger)
            if accuracy:
                statuses = Forecaster(self.schema, subject).added_to(statuses)
            return self._plan_of(statuses, subject.n, ledger)

    def _plan_of(self, statuses: list[QuestionStatus], n: int, ledger: Ledger | None) -> StudyPlan:
        wording = Wording.of(self.file, self.schema)
        return StudyPlan(
            self.file.title, n, tuple(one.worded(wording) for one in statuses), self.budget,
            (ledger or self.trial()).remaining,
            "units" if self.file.panel is not None else "people" if self.file.person else "rows",
            self.file.ledger if ledger is None else "", "" if ledger is None else ledger.head,
            total_text(self.budget, () if ledger is None else ledger.entries()),
        )  # fmt: skip

    @with_signature_errors
    def run(
        self,
        *,
        refresh: Collection[str] = (),
        partial: bool = False,
        new_ledger: bool = False,
        progress: Progress | None = None,
    ) -> StudyPlan:
        """Ask every question that has no cached result, and return the status of all.

        Run refresh, it does not pay again for what was answered: it goes on where it was stopped.

        Parameters
        ----------
        refresh : names of questions
            Run again at a new privacy cost.
        partial : bool
            Ask the others where one cannot be asked, or is beyond the budget; otherwise nothing is asked then.
        new_ledger : bool
            Make the ledger if there is none; a study of a table that is refused leaves none.
        progress : function of (done, all, text), optional
            Called after each question, with public text.
        """
        unknown = sorted(set(refresh) - {question.name for question in self.file.question})
        if unknown:
            raise ParameterError(f"no question of the study is named {unknown[0]!r}")

        if isinstance(self.ledger_path, Path) and self.ledger_path.exists() and self.ledger_path.samefile(self.path):
            raise self._source.refusal(("ledger",), "the study file itself is no ledger: name another file")

        def waits() -> None:
            if progress is not None:
                progress(0, len(self.file.question), "waiting for another run of this study to end")

        with one_at_a_time(self.path, waits):
            return self._run(refresh, partial, new_ledger, progress)

    def _run(self, refresh: Collection[str], partial: bool, new_ledger: bool, progress: Progress | None) -> StudyPlan:
        if not self.ledger_exists():
            refuse_lost(self.ledger_path)
            if not new_ledger:
                hint = (
                    "if these data have never been analysed with dpcausal, create it: ", Setting("new_ledger", True),
                    "; if they have, restore the ledger from your backup: a new one would double the privacy loss",
                )  # fmt: skip
                raise self._source.refusal(("ledger",), f"there is no ledger {self.file.ledger!r}", "no-ledger", hint)
            if self.file.panel is None:  # a panel is made on the ledger alone, which declares whose series are public
                self._checked(self.trial(), refresh, partial)
            Ledger.open_or_create(self.ledger_path, budget=self.budget, **self.unit,
                                  accept_large_epsilon=self.file.budget.accept_large_epsilon).close()  # fmt: skip
        with self._opened() as ledger:
            subject = self._checked(ledger, refresh, partial)
            statuses = []
            for done, question in enumerate(self.file.question, start=1):
                statuses.append(self._ask(question, subject, ledger, question.name in refresh))
                if progress is not None:
                    progress(done, len(self.file.question), statuses[-1].line())
            return self._plan_of(statuses, subject.n, ledger)

    def report(self, path: str | PathLike[str] = "report.html") -> Path:
        """Write the report beside the study, as HTML, with Markdown and the registry's record; return the HTML's path.

        It is made from the ledger alone: nothing is spent and no record is read.
        """
        return write_report(self._report_inputs(), self.path.parent / path)

    def _report_inputs(self) -> ReportInputs:
        if not self.ledger_exists():
            text = f"there is no ledger {self.file.ledger!r}, so there is nothing to report"
            raise LedgerError(text, argument="ledger", rule="no-ledger", hint="run the study, or restore it")
        with self._opened(read_only=True) as ledger:
            subject = self._reported_subject(ledger)
            plan = self._plan_of(self._statuses(subject, ledger), subject.n, ledger)
            return ReportInputs(
                self.path, self.file, self.schema, Wording.of(self.file, self.schema), plan, tuple(ledger.entries()),
                tuple(ledger.renewals),
            )  # fmt: skip

    def _statuses(
        self, subject: Table | Panel, ledger: Ledger | None, refresh: Collection[str] = ()
    ) -> list[QuestionStatus]:
        trial, origin = simulated_ledger(ledger, self.trial()), self._origin()
        statuses, counted = list[QuestionStatus](), dict[str, str]()
        for question in self.file.question:
            statuses.append(status_of(question, subject, ledger, origin, trial=trial, counted=counted,
                                  refresh=question.name in refresh))  # fmt: skip
            if statuses[-1].state == TO_ASK and statuses[-1].key:
                counted.setdefault(statuses[-1].key, question.name)
        return statuses

    def _check_all(self, statuses: list[QuestionStatus]) -> None:
        """Refuse a study with a question that is impossible or beyond the budget, with its line; nothing is spent."""
        problems = []
        for place, one in enumerate(statuses):
            if one.state == CANNOT:
                message = f"question {one.question.name!r} cannot be asked: {one.reason}"
                problems.append(str(self._source.refusal(("question", place), message)))
            elif isinstance(one.error, BudgetExceededError) and not problems:
                where = str(self._source.refusal(("question", place), f"question {one.question.name!r}"))
                amounts = one.error.requested, one.error.spent, one.error.left
                raise BudgetExceededError(*amounts, f"{where}, after those before it", PARTIAL)
        if problems:
            raise ParameterError("\n".join([*problems, "nothing was spent"]), rule="questions", hint=PARTIAL)

    def _ask(self, question: QuestionPart, subject: Table | Panel, ledger: Ledger, refresh: bool) -> QuestionStatus:
        before = status_of(question, subject, ledger, subject.origin)
        if before.state in (CANNOT, ANSWERED, EARLIER, SPENT) and not (refresh and before.state != CANNOT):
            return before
        try:
            answer = tasks.ask(question, subject, refresh)
        except LedgerDamagedError:
            raise
        except BudgetExceededError as error:
            return replace(before, state=BEYOND, reason=error.message("toml"))
        except LedgerError as error:
            state = SPENT if error.rule == "spent-without-answer" else CANNOT
            return replace(before, state=state, reason=error.message("toml"))
        except DpCausalError as error:
            return replace(before, state=CANNOT, reason=error.message("toml"))
        cached = not before.key or is_cached(ledger, before.key)
        return replace(before, state=ANSWERED if cached else UNKEPT, reason="" if cached else SAVE, answer=answer)

    def _path(self) -> str:
        return resolved(self.path.parent, self.file.data_file)

    def _source_file(self) -> str | DataFile:
        data, path = self.file.data, self._path()
        return path if isinstance(data, str) else data.at(path)

    def _origin(self) -> Origin | None:
        origin = Origin.of(self._source_file() if self._data is None else self._data)
        gone = origin.stamp is not None and not origin.stamp.state and not CLUSTER.fullmatch(self._path())
        return None if gone else origin

    def _frame(self) -> Any:
        if self._data is not None:
            return self._data
        path = self._path()
        if not CLUSTER.fullmatch(path) and not (Path(path).exists() or Stamp.of(path).state):
            raise self._source.refusal(("data",), f"there is no file {self.file.data_file!r}")
        return self._source_file()

    def _subject(self, ledger: Ledger) -> Table | Panel:
        return subject_of_data(self._frame(), self.file, self.schema, ledger, self.name)

    def _reported_subject(self, ledger: Ledger) -> Table | Panel:
        stored = subject_of_results(self.file, self.schema, ledger, self.trial(), self.name)
        if stored is None and self._origin() is None:
            has_rows = self.file.panel is None
            facts = "the number of records" if has_rows else "the periods and the number of units"
            text = f"there is no file {self.file.data_file!r}, and no result in the ledger states {facts} of these data"
            hint = "write the report where the data are", *((", or state ", Setting("n")) if has_rows else ())
            raise self._source.refusal(("data",), text, "no-data", hint)
        return stored or self._public_subject(ledger)

    def _public_subject(self, ledger: Ledger | None) -> Table | Panel:
        """Return what is publicly the same as the data: simulated rows in the stated number, or in that of the data.

        A panel is made on the ledger itself, which declares for good whose series are public before one is looked at.
        """
        if self.file.panel is None:
            if self.file.n is None:
                return self._subject(self.trial())
            return table_of_size(self.file.n, self.file, self.schema, self.trial(), self.name)
        if ledger is None:
            raise LedgerError(
                f"there is no ledger {self.file.ledger!r}: a plan shows the target's own series, public once a ledger "
                "has declared it; 'dpcausal ledger create' makes one"
            )
        if ledger.declared:
            return self._subject(ledger)
        with self._opened() as writing:
            return self._subject(writing)

    def _checked(self, ledger: Ledger, refresh: Collection[str], partial: bool) -> Table | Panel:
        subject = self._subject(ledger)
        if self.file.n is not None and self.file.panel is None and subject.n != self.file.n:
            raise self._source.refusal(("n",), f"the data have {subject.n} records, a public number; nothing was spent")
        if not partial:
            self._check_all(self._statuses(subject, ledger, refresh))
        return subject

    def _opened(self, *, read_only: bool = False) -> Ledger:
        ledger = Ledger.open(self.ledger_path, read_only=read_only)
        if ledger.budget != self.budget:
            raise self._source.refusal(("budget",), f"the ledger's budget is {ledger.budget}")
        if ledger.protects != self.trial().protects:
            place = "panel" if self.file.panel is not None else "person"
            raise self._source.refusal((place,), f"the ledger protects {ledger.protects} for good, the study asks for "
                                       f"{self.trial().protects}; nothing was spent; another unit needs another "
                                       "ledger, whose budget comes on top of this one's")  # fmt: skip
        return ledger


PARTIAL = "to run the other questions use ", Setting("partial", True)
