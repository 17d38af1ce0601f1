"""Graphs and tests for other packages: each extra is named like its package, ``pip install 'dpcausal[pgmpy]'``."""

from dpcausal.discovery.graph import Cpdag
from dpcausal.interop.packages import (
    MeteredCiTest,
    from_causal_learn,
    from_dowhy,
    from_networkx,
    from_pgmpy,
    to_causal_learn,
    to_dowhy,
    to_pgmpy,
)  # fmt: skip
from dpcausal.interop.text_formats import from_dagitty, from_dot, from_tetrad, to_tetrad

to_networkx, to_dagitty, to_dot, to_graphml = Cpdag.to_networkx, Cpdag.to_dagitty, Cpdag.to_dot, Cpdag.to_graphml

__all__ = [
    "MeteredCiTest", "from_causal_learn", "from_dagitty", "from_dot", "from_dowhy", "from_networkx", "from_pgmpy",
    "from_tetrad", "to_causal_learn", "to_dagitty", "to_dot", "to_dowhy", "to_graphml", "to_networkx", "to_pgmpy",
    "to_tetrad",
]  # fmt: skip
