"""Graphs as texts that other tools read and write: DAGitty and DOT, which share a grammar, and Tetrad's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from dpcausal.discovery.graph import Cpdag
from dpcausal.errors import ParameterError

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|<->|->|<-|--|[{}\[\];,=]|[\w.+]+(?:-(?![->])[\w.+]+)*|\S', re.DOTALL
)
_SETTINGS = {"graph", "node", "edge"}


def from_dagitty(text: str) -> Cpdag:
    """Read the text of DAGitty: ``dag`` or ``pdag``, with ``->``, ``<-`` and ``--``; positions and roles are left out.

    Examples
    --------
    >>> str(from_dagitty('dag { bb="0,0,1,1" a [exposure] a -> {b c} ; d }'))
    'a -> b, a -> c'
    """
    return _Braces(text, {"dag", "pdag"}).graph()


def from_dot(text: str) -> Cpdag:
    """Read a graph in the DOT language; an edge with ``dir=none``, or ``--``, is undirected.

    Examples
    --------
    >>> str(from_dot("digraph g { rankdir=LR; a -> b -> c; c -> d [dir=none]; }"))
    'a -> b, b -> c, c -- d'
    """
    return _Braces(text, {"digraph", "graph"}).graph()


def to_tetrad(graph: Cpdag) -> str:
    """Return the text that Tetrad and causal-learn read: ``a --> b``, ``a --- b``.

    Raises
    ------
    ParameterError
        A name with white space, a comma or a semicolon, which that text cannot hold.
    """
    for name in graph.nodes:
        if not name or re.search(r"[\s,;]", name):
            raise ParameterError(f"Tetrad's text has no place for the name {name!r}: no space, comma or semicolon")
    drawn = [f"{a} --> {b}" for a, b in graph.arcs()] + [f"{a} --- {b}" for a, b in graph.edges()]
    lines = [f"{number}. {edge}" for number, edge in enumerate(drawn, start=1)]
    return "\n".join(["Graph Nodes:", ";".join(graph.nodes), "", "Graph Edges:", *lines]) + "\n"


def from_tetrad(text: str) -> Cpdag:
    """Read the text of Tetrad and causal-learn; other marks than ``-->``, ``<--`` and ``---`` are refused."""
    parts = re.split(r"^Graph (Nodes|Edges|Attributes):\s*$", text, flags=re.M)
    found = {kind: body.strip() for kind, body in zip(parts[1::2], parts[2::2], strict=True)}
    nodes = [name for name in re.split(r"[;,\s]+", found.get("Nodes", "")) if name]
    arcs, edges = [], []
    for line in filter(str.strip, found.get("Edges", "").splitlines()):
        words = re.sub(r"^\s*\d+\.\s+", "", line).split()
        mark = words[1] if len(words) > 2 else ""
        if mark not in {"-->", "<--", "---"}:
            raise ParameterError("an edge of Tetrad's text is a --> b, a <-- b or a --- b: others are no CPDAG's")
        if mark == "---":
            edges.append(frozenset((words[0], words[2])))
        else:
            arcs.append((words[0], words[2]) if mark == "-->" else (words[2], words[0]))
    return Cpdag(tuple(nodes), frozenset(arcs), frozenset(edges))


class _Braces:
    """Statements in braces: names, chains of edges between names or sets of names, attributes in brackets."""

    def __init__(self, text: str, kinds: set[str]) -> None:
        self.tokens = [token for token in _TOKEN.findall(text) if not token.startswith(("//", "/*"))]
        self.at, self.kinds = 0, kinds
        self.nodes: dict[str, None] = {}
        self.joined: dict[frozenset[str], tuple[str, str] | None] = {}

    def graph(self) -> Cpdag:
        head = []
        while self.seen() not in {"", "{"}:
            head.append(self.take())
        word = head[1:2] if head[:1] == ["strict"] else head[:1]
        if not self.kinds.intersection(word) or self.take() != "{":
            raise ParameterError(f"the text must begin with {' or '.join(sorted(self.kinds))} and a brace")
        while self.seen() not in {"", "}"}:
            self.statement()
        if self.take() != "}" or self.seen():
            raise ParameterError("the text must end with the brace that closes its graph")
        arcs = [arc for arc in self.joined.values() if arc]
        return Cpdag(tuple(self.nodes), frozenset(arcs), frozenset(e for e, arc in self.joined.items() if not arc))

    def seen(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def statement(self) -> None:
        if self.seen() in {";", ","}:
            self.take()
            return
        bare = self.seen() in _SETTINGS
        chain, marks = [self.operand()], []
        if self.seen() == "=":  # a setting of the whole text
            self.take(), self.take()
            return
        if bare and self.seen() == "[":
            self.attributes()
            return
        while self.seen() in {"->", "<-", "--", "<->"}:
            marks.append(self.take())
            chain.append(self.operand())
        way = {"none": "--", "back": "<-", "both": "<->"}.get(self.attributes().get("dir", ""))
        self.nodes.update(dict.fromkeys(name for names in chain for name in names))
        for mark, (left, right) in zip(marks, pairwise(chain), strict=True):
            for a in left:
                for b in right:
                    self.join(a, b, way or mark)

    def join(self, a: str, b: str, mark: str) -> None:
        if mark == "<->":
            raise ParameterError("an edge with two heads stands in no CPDAG")
        arc = None if mark == "--" else (a, b) if mark == "->" else (b, a)
        if self.joined.setdefault(frozenset((a, b)), arc) != arc:
            raise ParameterError("a graph joins two nodes by at most one edge")

    def operand(self) -> list[str]:
        if self.seen() != "{":
            return [self.name()]
        self.take()
        names = list(self.until("}"))
        return [name for name in names if name not in {";", ","}]

    def until(self, end: str) -> Iterator[str]:
        while self.seen() not in {"", end}:
            yield self.take() if self.seen() in {";", ","} else self.name()
        self.take()

    def name(self) -> str:
        token = self.take()
        if token.startswith('"'):
            return re.sub(r"\\(.)", r"\1", token[1:-1])
        if token == "subgraph" or not re.match(r"[\w.+]", token):
            raise ParameterError("a graph's text holds names, edges and attributes in brackets alone")
        return token

    def attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while self.seen() == "[":
            self.take()
            words = []
            while self.seen() not in {"", "]"}:
                words.append(self.take())
            self.take()
            found |= {a: b.strip('"') for a, mark, b in zip(words, words[1:], words[2:], strict=False) if mark == "="}
        return found
