"""Public background knowledge: tiers, forbidden and required arrows."""

from collections.abc import Iterable
from dataclasses import dataclass

from dpcausal.codec import storable
from dpcausal.discovery.search.orientation import Marks
from dpcausal.errors import ParameterError

Arc = tuple[str, str]


@storable("Knowledge")
@dataclass(frozen=True)
class Knowledge:
    """Arrows that are excluded or sure before any data is read.

    Parameters
    ----------
    forbidden : iterable of (cause, effect)
        Arrows that cannot be.  Forbidden both ways, two columns are not joined and are never tested.
    required : iterable of (cause, effect)
        Arrows that must be; never tested either.
    tiers : iterable of iterables of names
        Groups in order of time: no arrow leads from a later group to an earlier one.  Columns in no group are free.

    Raises
    ------
    ParameterError
        The parts contradict each other: an arrow both required and excluded, or required arrows in a cycle.

    Notes
    -----
    *Guarantee*: public.  A test that knowledge makes needless is not made, so it costs nothing.

    Examples
    --------
    >>> known = Knowledge(tiers=[["age"], ["dose", "pressure"]], required=[("dose", "pressure")])
    >>> known.allows("pressure", "age"), known.joined("dose", "pressure")
    (False, True)
    """

    forbidden: frozenset[Arc] = frozenset()
    required: frozenset[Arc] = frozenset()
    tiers: tuple[tuple[str, ...], ...] = ()

    def __init__(
        self, forbidden: Iterable[Arc] = (), required: Iterable[Arc] = (), tiers: Iterable[Iterable[str]] = ()
    ) -> None:
        object.__setattr__(self, "forbidden", _arcs("forbidden", forbidden))
        object.__setattr__(self, "required", _arcs("required", required))
        groups = [] if isinstance(tiers, str) else list(tiers)
        if isinstance(tiers, str) or any(isinstance(tier, str) for tier in groups):
            raise ParameterError("tiers must be a list of lists of column names")
        object.__setattr__(self, "tiers", tuple(tuple(tier) for tier in groups))
        names = [name for tier in self.tiers for name in tier]
        if len(set(names)) != len(names) or not all(isinstance(name, str) for name in names):
            raise ParameterError("a column belongs to one tier at most")
        for cause, effect in sorted(self.required):
            if not self.allows(cause, effect):
                raise ParameterError(f"the arrow {cause!r} -> {effect!r} is required and excluded")
        among = sorted({name for arc in self.required for name in arc})
        if any((b, a) in self.required for a, b in self.required) or not Marks.of(among, self.required, ()).acyclic():
            raise ParameterError("the required arrows form a cycle")

    @property
    def names(self) -> frozenset[str]:
        """Every column that is spoken of."""
        arcs = {name for arc in self.forbidden | self.required for name in arc}
        return frozenset(arcs | {name for tier in self.tiers for name in tier})

    def allows(self, cause: str, effect: str) -> bool:
        """Return whether an arrow may be."""
        if (cause, effect) in self.forbidden or (effect, cause) in self.required:
            return False
        place = {name: number for number, tier in enumerate(self.tiers) for name in tier} if self.tiers else {}
        return not (cause in place and effect in place and place[cause] > place[effect])

    def joined(self, a: str, b: str) -> bool:
        """Return whether an arrow between two columns is required."""
        return (a, b) in self.required or (b, a) in self.required

    def forbids_edge(self, a: str, b: str) -> bool:
        """Return whether neither arrow may be."""
        return not self.allows(a, b) and not self.allows(b, a)

    def check_names(self, names: Iterable[str]) -> None:
        """Refuse a column that the table does not have."""
        known = set(names)
        for name in sorted(self.names - known):
            raise ParameterError(f"knowledge applies to {name!r}, which is not among the columns")


def _arcs(kind: str, arcs: Iterable[Arc]) -> frozenset[Arc]:
    if isinstance(arcs, str):
        raise ParameterError(f"{kind} must be a list of (cause, effect)")
    pairs: set[Arc] = set()
    for arc in arcs:
        ends = tuple(arc) if isinstance(arc, (tuple, list)) else ()
        if len(ends) != 2 or ends[0] == ends[1] or not all(isinstance(end, str) for end in ends):
            raise ParameterError(f"{kind} must be a list of (cause, effect), two different columns each")
        pairs.add((ends[0], ends[1]))
    return frozenset(pairs)
