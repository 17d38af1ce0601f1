"""What every way to release a direction has in common: whom it protects, what it takes and costs, how it runs.

Each module of this package that releases something names its ``ROUTES``; ``plan`` picks one from public arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from dpcausal.direction.anm import Column, Interval
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.neighbours import Unit
from dpcausal.privacy.noise import PublicGenerator

UNITS = {"everyone": Unit.ROW, "test": Unit.TEST_ROW, "training": Unit.TRAINING_ROW}
"""Whose row the loss speaks of, by ``protect``."""


@dataclass(frozen=True)
class Released:
    """What left: the margin in its unit, how sure the noise lets one be, and the scores where they were released.

    ``penalty`` and ``width`` are those of protected regressions, as given or as privately chosen.
    """

    margin: float | None
    unit: Literal["score", "records", "votes"]
    probability: float | None
    scores: tuple[float, float] | None = None
    penalty: float | None = None
    width: float | None = None


@dataclass(frozen=True)
class Plan:
    """A call after its public arguments were checked: all that decides its cost and its control flow.

    ``release_scores``, ``blocks``, ``training_share``, ``penalty`` and ``width`` are as asked for until the route
    settles them.
    """

    first: str
    second: str
    range_first: Interval
    range_second: Interval
    n: int
    score: str
    protect: str
    calibration: str
    route: Route
    spent: Loss
    note: str
    release_scores: bool = False
    blocks: int | None = None
    training_share: float | None = None
    penalty: float | tuple[float, ...] | None = None
    width: float | tuple[float, ...] | None = None
    min_probability: float | None = None

    @property
    def method(self) -> str:
        """The route's name."""
        return self.route.method

    @property
    def unit(self) -> Unit:
        """Whose row the loss speaks of."""
        return UNITS[self.protect]

    @property
    def proofs(self) -> tuple[str, ...]:
        """The claims that the release rests on."""
        return self.route.proofs(self)


def _as_it_is(plan: Plan) -> Plan:
    return plan


def _always(plan: Plan) -> bool:
    return True


@dataclass(frozen=True)
class Route:
    """One way to release a direction.

    Parameters
    ----------
    method : str
        Its name, as ``method=`` takes it and the result shows it.
    protect : str
        ``"everyone"``, ``"test"`` or ``"training"``.
    scores : tuple of str
        The scores it serves.
    pay : callable
        Takes the loss asked for, returns what is spent of it and a note; refuses a kind it cannot spend.
    proofs : callable
        The claims that a plan's release rests on.
    release : callable
        Reads the two columns and releases.  It is total: nothing may fail or warn for a reason that lies in a value.
    settle : callable
        Checks the optional arguments of a plan and fills their defaults, from public numbers.
    takes : frozenset of str
        The optional arguments it takes.
    gives_scores : str
        Whether both scores are released: ``"never"``, ``"if asked"`` or ``"always"``.
    gives_probability : callable
        Whether a plan's release says how sure the noise lets one be.
    calibration : str
        ``"corrected"`` or ``"published"``.
    unproven : str
        What has no valid proof, in words; empty for a proved route.
    """

    method: str
    protect: str
    scores: tuple[str, ...]
    pay: Callable[[Loss], tuple[Loss, str]]
    proofs: Callable[[Plan], tuple[str, ...]]
    release: Callable[[Column, Column, Plan, PublicGenerator, Allotment], Released]
    settle: Callable[[Plan], Plan] = field(default=_as_it_is)
    takes: frozenset[str] = frozenset()
    gives_scores: Literal["never", "if asked", "always"] = "never"
    gives_probability: Callable[[Plan], bool] = field(default=_always)
    calibration: str = "corrected"
    unproven: str = ""
