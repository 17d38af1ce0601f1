"""What every command of a question does with its result: print it, save it, draw it, and lose none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcausal.cli.shared import echo, show
from dpcausal.errors import LedgerError, ParameterError

if TYPE_CHECKING:
    from dpcausal.privacy.ledger import Ledger
    from dpcausal.result import Result


@dataclass(frozen=True)
class Call:
    """What every call has besides its question, on an open ledger."""

    ledger: Ledger
    as_json: bool
    details: bool = False
    plot: Path | None = None
    save_release: Path | None = None

    def show(self, result: Result, graph_text: str = "") -> None:
        """Save a result where that is asked, print it and what is left of the budget, and draw it."""
        released = getattr(result, "release", None) is not None
        if released:
            self.save(result)  # first: whoever reads the lines may stop after the first
        with self.rescued(result):
            if graph_text and not self.as_json:
                echo(graph_text)
            else:
                show(result, self.ledger, self.as_json, self.details)
            sys.stdout.flush()
        if not released:
            self.save(result)  # says that there is nothing to save, but of an answer that was paid for and is shown
        if self.plot is not None:
            result.plot().figure.savefig(self.plot)

    @contextmanager
    def rescued(self, result: Result) -> Iterator[None]:
        """Say where a result is that could not be printed; one that its ledger does not store goes to a file there."""
        try:
            yield
        except BaseException:
            with suppress(OSError):
                echo(f"warning: {self._whereabouts(result)}", error=True)
            raise

    def _whereabouts(self, result: Result) -> str:
        from dpcausal.study.writing import write_new

        head = result.guarantee.ledger_head
        with suppress(LedgerError):
            if any(spend.hash == head and self.ledger.answer(spend.number) for spend in self.ledger.entries()):
                place = repr(str(self.ledger.path))
                return f"the result is saved in ledger {place}: the same command without --refresh prints it at no cost"
        path = Path(f"{self.ledger.path}.answer-{head[:12]}.json")
        try:
            write_new(path, result.to_json())
        except ParameterError as error:
            return f"the result is paid for and lost: {error}"
        return f"the result is paid for, and is in {str(path)!r}"

    def save(self, result: Any) -> None:
        """Write the noisy statistics of a result to their file, if it has any."""
        from dpcausal.study.writing import replace_files

        if self.save_release is None:
            return
        if result.release is None:
            text = f"method {result.method} releases no statistics that can be re-used: nothing was saved"
            raise ParameterError(text, argument="save_release", rule="no-release")
        replace_files({self.save_release: result.release.to_json()})
