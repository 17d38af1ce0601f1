"""Published Bayesian networks: a reader of their BIF files, samples of them, and their true classes."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import dpcausal as dpc
from benchmarks.data import text

_VARIABLE = re.compile(r"variable\s+(\S+)\s*\{\s*type\s+discrete\s*\[\s*\d+\s*\]\s*\{([^}]*)\}")
_TABLE = re.compile(r"probability\s*\(\s*([^)]*)\)\s*\{([^}]*)\}")
_ROW = re.compile(r"\(([^)]*)\)\s*(.*)", re.DOTALL)

SMALL = ("earthquake", "cancer", "survey", "asia")


@dataclass(frozen=True)
class Network:
    """A network: the levels of each node, its parents, and its conditional probabilities."""

    name: str
    levels: dict[str, tuple[str, ...]]
    parents: dict[str, tuple[str, ...]]
    tables: dict[str, npt.NDArray[np.float64]]

    @property
    def truth(self) -> dpc.Cpdag:
        """The class of its DAG."""
        arcs = [(parent, node) for node, above in self.parents.items() for parent in above]
        return dpc.Cpdag.from_dag(self.levels, arcs)

    @property
    def schema(self) -> dpc.Schema:
        """Integer levels, as sampled."""
        return dpc.Schema({name: dpc.Levels(range(len(levels))) for name, levels in self.levels.items()})

    def sample(self, rows: int, seed: int) -> dict[str, npt.NDArray[np.int64]]:
        """Draw rows of integer codes."""
        rng = np.random.default_rng(seed)
        drawn: dict[str, Any] = {}
        while len(drawn) < len(self.levels):
            for node, above in self.parents.items():
                if node in drawn or not all(parent in drawn for parent in above):
                    continue
                chances = self.tables[node][tuple(drawn[parent] for parent in above)]
                chances = np.broadcast_to(chances, (rows, chances.shape[-1]))
                steps = chances.cumsum(axis=1) / chances.sum(axis=1, keepdims=True)
                codes = (steps < rng.random(rows)[:, None]).sum(axis=1)
                drawn[node] = np.minimum(codes, chances.shape[1] - 1).astype(np.int64)
        return {node: drawn[node] for node in self.levels}


def read(name: str) -> Network:
    """Read a network of the Bayesian Network Repository from ``bif/<name>.bif.gz``."""
    bif = text("bif", f"{name}.bif.gz")
    levels = {found[1]: _words(found[2]) for found in _VARIABLE.finditer(bif)}
    parents, tables = {}, {}
    for found in _TABLE.finditer(bif):
        node, _, above = (part.strip() for part in found[1].partition("|"))
        parents[node] = _words(above)
        table = np.zeros([len(levels[parent]) for parent in parents[node]] + [len(levels[node])])
        for line in filter(None, (line.strip() for line in found[2].split(";"))):
            if line.startswith("table"):
                table[...] = np.array([float(value) for value in line[5:].split(",")]).reshape(table.shape)
            else:
                row = _ROW.match(line)
                assert row is not None, line
                place = tuple(levels[p].index(w) for p, w in zip(parents[node], _words(row[1]), strict=True))
                table[place] = [float(value) for value in row[2].split(",")]
        assert np.allclose(table.sum(axis=-1), 1, atol=1e-5), node
        tables[node] = table
    return Network(name, levels, {node: parents[node] for node in levels}, tables)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
