"""The rows of an effect in blocks: who is treated, the outcome, what is adjusted for; each row by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcausal.data.coding import bin_codes
from dpcausal.data.rows import Rows
from dpcausal.data.schema import Bounded
from dpcausal.effects.contrast import arms_of
from dpcausal.effects.noisy_cells import levels_of, value_of
from dpcausal.effects.question import Contrast
from dpcausal.regression.smoother import Given

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """The rows of a question: 0 or 1, the outcome in widths of its range, what is adjusted for."""

    treated: Reals
    outcome: Reals
    given: Given
    kept: npt.NDArray[np.bool_]
    keys: Integers | None = None

    @property
    def n(self) -> int:
        return len(self.treated)

    def at(self, rows: Integers) -> Sample:
        """Return the rows at these positions."""
        return Sample(self.treated[rows], self.outcome[rows], self.given.at(rows), self.kept[rows])

    @classmethod
    def of(cls, question: Contrast, rows: Rows) -> Sample:
        """Return records as rows of an effect; one in another arm counts as one that lacks a column."""
        value = value_of(question.outcome, question.column(question.outcome))
        named = question.column(question.treatment)
        control, treated = arms_of(levels_of(named), question.treatment, question.treated, question.control)
        arm = rows.values[question.treatment]
        arm = bin_codes(arm, named) if isinstance(named, Bounded) else arm
        numbers, codes, sizes = [], [], []
        for name in question.adjust:
            declared = question.column(name)
            if isinstance(declared, Bounded):
                numbers.append(rows.values[name].astype(np.float64))
            else:
                codes.append(rows.values[name])
                sizes.append(len(levels_of(declared)))
        given = Given(
            np.stack(numbers, axis=1) if numbers else np.empty((rows.n, 0)),
            np.stack(codes, axis=1).astype(np.int64) if codes else np.empty((rows.n, 0), dtype=np.int64), tuple(sizes),
        )  # fmt: skip
        unit = (rows.values[question.outcome].astype(np.float64) - value.lower) / value.width
        kept = rows.kept & ((arm == control) | (arm == treated))
        return cls((arm == treated).astype(np.float64), unit, given, kept, rows.keys)
