"""Adjustment sets of a graph: earlier columns, or the possible causes of the treatment in its class.

A missing arrow is never an effect of 0: where a member of the class has the outcome among the treatment's causes, or no
way from one to the other, its other causes are adjusted for and the effect is estimated.
"""

from itertools import combinations

from dpcausal.core import validate as public
from dpcausal.discovery.graph import Cpdag
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.errors import ParameterError

RULES = ("ida", "earlier")
MOST_OPEN = 12
"""Edges at the treatment that point neither way: each way they may point is a set of its own."""


def adjustment_sets(
    graph: Cpdag, knowledge: Knowledge, treatment: str, outcome: str, rule: str, unpruned_graph: Cpdag | None = None
) -> tuple[tuple[str, ...], ...]:
    """Return the sets by a rule, each in the order of the graph's nodes.

    ``ida``: the treatment's causes in each member of the class (Maathuis, Kalisch & Bühlmann 2009: ways in which open
    edges may point at it without a new collider); ``earlier``: all columns of earlier tiers.
    An arrow of ``unpruned_graph`` that is a line in the graph may be of a collider after all.
    """
    public.check_choice("adjust", rule, RULES)
    for name in (treatment, outcome):
        if name not in graph.nodes:
            raise ParameterError(f"no column {name!r} in the graph")
    tier = {name: place for place, group in enumerate(knowledge.tiers) for name in group}
    if rule == "earlier" and treatment not in tier:
        raise ParameterError("adjusting for 'earlier' needs knowledge with the treatment in one of its tiers")
    near = {name: {other for edge in graph.skeleton if name in edge for other in edge - {name}} for name in graph.nodes}

    def sorted_set(names: set[str]) -> tuple[str, ...]:
        return tuple(name for name in graph.nodes if name in names - {treatment, outcome})

    if rule == "earlier":
        return (sorted_set({name for name in graph.nodes if tier.get(name, len(tier)) < tier[treatment]}),)
    sure = {cause for cause, effect in graph.directed if effect == treatment}
    free = sorted({other for edge in graph.undirected if treatment in edge for other in edge - {treatment}})
    if len(free) > MOST_OPEN:
        raise ParameterError(f"over {MOST_OPEN} edges of {treatment!r} are open: add knowledge, or adjust by a list")
    weak = {
        other for other in free if unpruned_graph and {(other, treatment), (treatment, other)} & unpruned_graph.directed
    }
    sets = {
        sorted_set(sure | set(chosen))
        for size in range(len(free) + 1) for chosen in combinations(free, size)
        if all(knowledge.allows(name, treatment) for name in chosen)
        and all(
            one in near[other] or {one, other} & weak for one in chosen for other in (sure | set(chosen)) - {one}
        )
    }  # fmt: skip
    return tuple(sorted(sets, key=lambda names: (len(names), names)))
