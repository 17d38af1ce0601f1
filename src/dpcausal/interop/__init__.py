"""Graphs and tests for other packages: each extra is named like its package, ``pip install 'dpcausal[pgmpy]'``."""

from dpcausal.discovery.graph import Cpdag
from dpcausal.interop.ci_test import MeteredCiTest as MeteredCiTest
from dpcausal.interop.packages import from_causal_learn as from_causal_learn
from dpcausal.interop.packages import from_dowhy as from_dowhy
from dpcausal.interop.packages import from_networkx as from_networkx
from dpcausal.interop.packages import from_pgmpy as from_pgmpy
from dpcausal.interop.packages import to_causal_learn as to_causal_learn
from dpcausal.interop.packages import to_dowhy as to_dowhy
from dpcausal.interop.packages import to_pgmpy as to_pgmpy
from dpcausal.interop.text_formats import from_dagitty as from_dagitty
from dpcausal.interop.text_formats import from_dot as from_dot
from dpcausal.interop.text_formats import from_tetrad as from_tetrad
from dpcausal.interop.text_formats import to_tetrad as to_tetrad

to_networkx, to_dagitty, to_dot, to_graphml = Cpdag.to_networkx, Cpdag.to_dagitty, Cpdag.to_dot, Cpdag.to_graphml

__all__ = [
    "MeteredCiTest", "from_causal_learn", "from_dagitty", "from_dot", "from_dowhy", "from_networkx", "from_pgmpy",
    "from_tetrad", "to_causal_learn", "to_dagitty", "to_dot", "to_dowhy", "to_graphml", "to_networkx", "to_pgmpy",
    "to_tetrad",
]  # fmt: skip
