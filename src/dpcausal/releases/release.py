"""A release: noisy numbers that were paid for once, and may be saved and re-used at no privacy cost."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from functools import singledispatch, wraps
from typing import Any, ClassVar, Self, TypeVar, TypeVarTuple

from dpcausal.errors import ParameterError, with_signature_errors
from dpcausal.privacy.loss import NoPrivacy
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Relation, Unit
from dpcausal.releases.saved import Form, guarantee_dict, guarantee_from_json
from dpcausal.result import Guarantee, TextResult, plain

Answer = TypeVar("Answer")
Arguments = TypeVarTuple("Arguments")

FORMAT = 1

UNSTATED = Guarantee(
    NoPrivacy(), Relation.REPLACE_ONE, Unit.ROW, private=False, proofs=(), caveats=("no guarantee is stated",)
)
"""The guarantee of numbers that were put together by hand."""


@singledispatch
def discover_release(release: object, **options: Any) -> Any:
    """Find a graph in a release; the room of discovery registers how."""
    raise ParameterError("no graph is found from this release: import dpcausal")


@singledispatch
def test_release(release: object, x: str, y: str, **options: Any) -> Any:
    """Test independence by a release; the room of discovery registers how."""
    raise ParameterError("no test is made from this release: import dpcausal")


@singledispatch
def estimate_release(release: object, **options: Any) -> Any:
    """Estimate an effect from a release; the room of effects registers how."""
    raise ParameterError("no effect is estimated from this release: import dpcausal")


def memoized(method: Callable[[Any, *Arguments], Answer]) -> Callable[[Any, *Arguments], Answer]:
    """Return a method of frozen objects that computes its answer once for each object and arguments."""
    name = f"_{method.__name__}_answers"

    @wraps(method)
    def answer(self: Any, *arguments: *Arguments) -> Answer:
        answers: dict[tuple[*Arguments], Answer] = self.__dict__.setdefault(name, {})
        if arguments not in answers:
            answers[arguments] = method(self, *arguments)
        return answers[arguments]

    return answer


@dataclass(frozen=True, eq=False)
class Release(TextResult, ABC):
    """Noisy numbers of some columns: a function of ``dpcausal`` pays for them, the methods of a release are free.

    Attributes
    ----------
    names : tuple of str
        The columns.
    n : int
        Rows, public, those with missing values included.
    guarantee : Guarantee
        What the numbers cost and whom they protect; whatever is computed from them costs nothing more.

    Notes
    -----
    ``to_json`` saves it: every number comes back as it is.  The text holds what was released and nothing else.  It is
    not signed: whoever may change it may change the numbers and the guarantee that it states.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcausal as dpc
    >>> columns = {"a": np.arange(1000) % 2, "b": np.arange(1000) % 2}
    >>> schema = dpc.Schema({name: dpc.Levels([0, 1]) for name in columns})
    >>> table = dpc.Table(columns, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    >>> text = dpc.discover(table, loss=dpc.PureDP(1)).release.to_json()
    >>> again = dpc.Release.from_json(text)
    >>> again.guarantee.loss, again.discover(alpha=0.001).graph.skeleton == {frozenset("ab")}
    (PureDP(1), True)
    """

    kind: ClassVar[str]
    """The word for it in the saved form."""

    names: tuple[str, ...]
    n: int
    guarantee: Guarantee = field(default=UNSTATED, kw_only=True)

    def with_extra_noise(self, generator: PublicGenerator) -> Self:
        """Return it with fresh noise of the same distribution on top, its variance declared.

        For a parametric bootstrap of a graph.
        """
        raise TypeError(f"{type(self).__name__} is searched for no graph")

    def numbers(self) -> dict[str, Any]:
        """Return what it holds beside names, n and guarantee, as JSON's types."""
        own = (one.name for one in fields(self) if one.init and one.name not in ("names", "n", "guarantee"))
        return {name: plain(getattr(self, name)) for name in own}

    @classmethod
    @abstractmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        """Return the release that ``numbers`` wrote."""

    @property
    def records_counted(self) -> float | None:
        """How many records count, noisy; ``None`` where that was not released."""
        return None

    @property
    def count_deviation(self) -> float:
        """The deviation of the noise of ``records_counted``."""
        return 0.0

    def as_graph_release(self) -> Release:
        """Return it in the form that a graph is searched in: itself, where there is no other."""
        return self

    def graph_notes(self) -> str:
        """Return in a sentence what a graph that is found in it should say of its tests; empty if nothing."""
        return ""

    def under(self, guarantee: Guarantee) -> Self:
        """Return it with the guarantee under which it left."""
        return self if guarantee is self.guarantee else replace(self, guarantee=guarantee)

    def number_notes(self) -> list[str]:
        """Return in sentences what its numbers say of themselves."""
        return []

    def summary(self) -> str:
        """Return in lines what was released and what it cost."""
        head = f"Released: noisy {self.kind.replace('-', ' ')} of {', '.join(self.names)}; {self.n} " \
            f"{self.guarantee.records} in all."  # fmt: skip
        free = "Asked again free, by its methods; to_json() saves it."
        return "\n".join([head, *self.number_notes(), free, *self.guarantee.lines()])

    def to_dict(self) -> dict[str, Any]:
        """Return the released numbers and the guarantee as JSON's types; amounts of the loss are exact fractions."""
        return {
            "format": FORMAT, "kind": self.kind, "names": list(self.names), "n": self.n, **self.numbers(),
            "guarantee": guarantee_dict(self.guarantee),
        }  # fmt: skip

    @staticmethod
    def from_json(text: str) -> Release:
        """Return the release that ``to_json`` wrote.

        Raises
        ------
        ParameterError
            The text is no release, or that of a newer version.
        """
        try:
            payload = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            raise ParameterError("this is no release: the text is not JSON") from None
        form = Form(payload)
        if form.whole("format", 1) > FORMAT:
            raise ParameterError(f"this release has a newer format than {FORMAT}: read it with a newer dpcausal")
        kinds = {one.kind: one for kind in Release.__subclasses__() for one in (kind, *kind.__subclasses__())}
        kind = kinds[form.text("kind", tuple(kinds))]
        release = kind.from_payload(form, form.texts("names", different=True), form.whole("n", 0))
        return release.under(guarantee_from_json(form.part("guarantee")))

    @with_signature_errors
    def discover(
        self, *, knowledge: Any = None, alpha: float | None = None, max_order: int | None = None, search: str = "auto"
    ) -> Any:
        """Find the causal graph of the released numbers: free, however often.

        Parameters
        ----------
        knowledge : Knowledge, optional
            Tiers, forbidden and required arrows.
        alpha : float, optional
            Level of the tests, in (0, 1); by default that of the method.
        max_order : int, optional
            Largest conditioning set, 0 to 8; by default that of the method.
        search : str
            ``"score"`` or ``"pc"``; by default score for a noisy table of at most 14 columns.

        Returns
        -------
        Discovery
        """
        return discover_release(self, knowledge=knowledge, alpha=alpha, max_order=max_order, search=search)

    @with_signature_errors
    def ci_test(self, x: str, y: str, *, given: Iterable[str] = (), alpha: float = 0.05) -> Any:
        """Test whether x is linked to y once others are known, by the released numbers: free, however often.

        The p-value is that of the tests by which a graph is found in the release, with the noise in their null
        distribution; many tests are not corrected for their number.

        Parameters
        ----------
        x, y : str
        given : list of str
        alpha : float
            Level, in (0, 1).

        Returns
        -------
        Independence
            ``statistic`` is the p-value as the size of a normal number.  The caveats say what the numbers can show.

        Raises
        ------
        InfeasibleError
            Noise hides one of the columns, or they were not released together.
        """
        return test_release(self, x, y, given=given, alpha=alpha)
