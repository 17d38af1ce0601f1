"""What every way to test has in common: what it takes and costs, how it runs, what it may release.

Each module of this package that releases something names its ``ROUTES``; ``plan`` picks one by its method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpcausal.data.schema import Schema
from dpcausal.errors import ParameterError
from dpcausal.independence.columns import Rows
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import PublicGenerator


@dataclass(frozen=True)
class Released:
    """What left: a statistic, and a p-value or only a decision."""

    statistic: float
    pvalue: float | None
    rejected: bool | None = None


@dataclass(frozen=True)
class Plan:
    """A call after its public arguments were checked: all that decides its cost and its control flow.

    The optional arguments are as asked for until the route settles them.
    """

    x: tuple[str, ...]
    y: tuple[str, ...]
    given: tuple[str, ...]
    schema: Schema
    n: int
    alpha: float
    route: Route
    spent: Loss
    note: str
    blocks: int | None = None
    regression: Any = None
    model_x: Any = None
    resamples: int | None = None
    penalty: float | None = None
    width: float | None = None
    calibration: str | None = None
    strata: int | None = None
    workers: int | None = None
    caveats: tuple[str, ...] = ()
    unproven: str = ""
    """What is published without a valid proof, in words; empty otherwise."""

    @property
    def method(self) -> str:
        """The route's name."""
        return self.route.method

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, in the order they were named."""
        return (*self.x, *self.y, *self.given)


OPTIONS = ("blocks", "regression", "model_x", "resamples", "penalty", "width", "calibration", "strata", "workers")
"""Arguments that some methods take."""


def as_it_is(plan: Plan) -> Plan:
    """Return the plan: nothing to settle."""
    return plan


def checked_calibration(plan: Plan) -> str:
    """Return whose constants were asked for, by default the corrected ones."""
    asked = "corrected" if plan.calibration is None else plan.calibration
    if not (isinstance(asked, str) and asked in ("corrected", "published")):
        raise ParameterError("calibration must be 'corrected' or 'published'")
    return asked


Release = Callable[[Rows, Plan, PublicGenerator, Allotment], Released]


@dataclass(frozen=True)
class Route:
    """One way to test.

    Parameters
    ----------
    method : str
        Its name, as ``method=`` takes it and the result shows it.
    pay : callable
        Takes the loss asked for, returns what is spent of it and a note; refuses a kind it cannot spend.
    proofs : callable
        The claims that a plan's release rests on.
    release : callable
        Reads the rows and releases.  It is total: nothing may fail or warn for a reason that lies in a value.
    exact : callable, optional
        The same test of all rows without privacy.
    settle : callable
        Checks the optional arguments of a plan and fills their defaults, from public numbers.
    takes : frozenset of str
        The optional arguments it takes.
    tests : str
        What the statistic is, in a few words.
    """

    method: str
    pay: Callable[[Loss], tuple[Loss, str]]
    proofs: Callable[[Plan], tuple[str, ...]]
    release: Release
    exact: Release | None = None
    settle: Callable[[Plan], Plan] = field(default=as_it_is)
    takes: frozenset[str] = frozenset()
    tests: str = ""
