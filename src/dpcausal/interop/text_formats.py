"""Read and write graphs as text: DAGitty and DOT, which share a grammar, and Tetrad."""

import re
from itertools import pairwise

from dpcausal.discovery.graph import Cpdag
from dpcausal.errors import ParameterError

_TOKEN = re.compile(
    r'^[ \t]*#[^\n]*|"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|<->|->|<-|--|[{}\[\];,=]|[\w.+]+(?:-(?![->])[\w.+]+)*|\S',
    re.DOTALL | re.MULTILINE,
)
_SETTINGS = {"graph", "node", "edge"}
_KEYWORDS = _SETTINGS | {"digraph", "strict", "subgraph"}
_DEEPEST = 50


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

    What ``edge [...]`` says holds for the edges after it, in its braces.  An edge with two heads is refused.

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
    sections = {kind: body.strip() for kind, body in zip(parts[1::2], parts[2::2], strict=True)}
    nodes = [name for name in re.split(r"[;,\s]+", sections.get("Nodes", "")) if name]
    arcs, edges = [], []
    for line in filter(str.strip, sections.get("Edges", "").splitlines()):
        tokens = re.sub(r"^\s*\d+\.\s+", "", line).split()
        mark = tokens[1] if len(tokens) > 2 else ""
        if mark not in {"-->", "<--", "---"}:
            raise ParameterError("an edge of Tetrad's text is a --> b, a <-- b or a --- b: others are no CPDAG's")
        if mark == "---":
            edges.append(frozenset((tokens[0], tokens[2])))
        else:
            arcs.append((tokens[0], tokens[2]) if mark == "-->" else (tokens[2], tokens[0]))
    return Cpdag(tuple(nodes), frozenset(arcs), frozenset(edges))


class _Braces:
    """Statements in braces: names, chains of edges between names or sets of names, attributes in brackets."""

    def __init__(self, text: str, kinds: set[str]) -> None:
        self.dot = "digraph" in kinds
        self.tokens = [token for token in _TOKEN.findall(text) if not token.lstrip().startswith(("//", "/*", "#"))]
        if '"' in self.tokens:
            raise ParameterError("a quoted name or value has no closing quote")
        self.at, self.kinds, self.depth = 0, kinds, 0
        self.nodes: dict[str, None] = {}
        self.joined: dict[frozenset[str], tuple[str, str] | None] = {}
        self.defaults: dict[str, str] = {}

    def graph(self) -> Cpdag:
        head = []
        while self.seen() not in {"", "{"}:
            head.append(self.keyword() or self.seen())
            self.take()
        keyword = head[1:2] if head[:1] == ["strict"] else head[:1]
        if not self.kinds.intersection(keyword) or self.seen() != "{":
            raise ParameterError(f"the text must begin with {' or '.join(sorted(self.kinds))} and a brace")
        self.body()
        if self.seen():
            raise ParameterError("the text must end with the brace that closes its graph")
        arcs = [arc for arc in self.joined.values() if arc]
        return Cpdag(tuple(self.nodes), frozenset(arcs), frozenset(e for e, arc in self.joined.items() if not arc))

    def seen(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def keyword(self) -> str:
        """Return the next token if it is a word of the language; DOT takes these in any case."""
        token = self.seen().lower() if self.dot else self.seen()
        return token if token in _KEYWORDS else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def body(self) -> list[str]:
        """Read what is in braces, and return the nodes that it names; what holds for all its edges ends with it."""
        before, named = dict(self.defaults), list[str]()
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ParameterError(f"braces of a graph's text may stand {_DEEPEST} deep")
        self.take()
        while self.seen() not in {"", "}"}:
            named += self.statement()
        if self.take() != "}":
            raise ParameterError("the text must end with the brace that closes its graph")
        self.defaults, self.depth = before, self.depth - 1
        return list(dict.fromkeys(named))

    def statement(self) -> list[str]:
        if self.seen() in {";", ","}:
            self.take()
            return []
        setting = self.keyword() if self.keyword() in _SETTINGS else ""
        if setting and (self.dot or self.tokens[self.at + 1 : self.at + 2] == ["["]):
            self.take()
            attributes = self.attributes()
            self.defaults |= attributes if setting == "edge" else {}
            return []
        chain, marks = [self.operand()], []
        if self.seen() == "=":  # a setting of the whole text
            self.take(), self.take()
            return []
        while self.seen() in {"->", "<-", "--", "<->"}:
            marks.append(self.take())
            chain.append(self.operand())
        own = self.attributes()
        named = [name for names in chain for name in names]
        self.nodes.update(dict.fromkeys(named))
        for mark, (left, right) in zip(marks, pairwise(chain), strict=True):
            mark = self.drawn(mark, self.defaults | own) if self.dot else mark
            for a in left:
                for b in right:
                    self.join(a, b, mark)
        return named

    def drawn(self, mark: str, attributes: dict[str, str]) -> str:
        """Return the mark that DOT's attributes make of an edge: on which ends there are heads, and of what kind."""
        if mark not in {"->", "--"}:
            raise ParameterError("an edge of DOT is a -> b or a -- b, with dir=back for the other way")
        way = attributes.get("dir", "forward" if mark == "->" else "none")
        ends = attributes.get("arrowtail", "normal"), attributes.get("arrowhead", "normal")
        if way not in {"forward", "back", "both", "none"} or not {*ends} <= {"normal", "none"}:
            raise ParameterError("an edge of DOT has dir forward, back, both or none, and heads normal or none")
        left = way in {"back", "both"} and ends[0] == "normal"
        right = way in {"forward", "both"} and ends[1] == "normal"
        return {(False, False): "--", (False, True): "->", (True, False): "<-", (True, True): "<->"}[left, right]

    def join(self, a: str, b: str, mark: str) -> None:
        if mark == "<->":
            raise ParameterError("an edge with two heads is not allowed in a CPDAG")
        arc = None if mark == "--" else (a, b) if mark == "->" else (b, a)
        if self.joined.setdefault(frozenset((a, b)), arc) != arc:
            raise ParameterError("a graph joins two nodes by at most one edge")

    def operand(self) -> list[str]:
        if self.keyword() == "subgraph":
            self.take()
            if self.seen() != "{":
                self.name()
        elif self.seen() != "{":
            name = self.name()
            while self.dot and self.seen() == ":":  # the port of a node, where its edge ends
                self.take(), self.name()
            return [name]
        if self.seen() != "{":
            raise ParameterError("a subgraph must be in braces")
        return self.body()

    def name(self) -> str:
        known, token = self.keyword(), self.take()
        if token.startswith('"'):
            return re.sub(r"\\(.)", r"\1", token[1:-1])
        if (self.dot and known) or token == "subgraph" or not re.match(r"[\w.+]", token):
            raise ParameterError("a graph's text holds names, edges and attributes in brackets alone")
        return token

    def attributes(self) -> dict[str, str]:
        attributes: dict[str, str] = {}
        while self.seen() == "[":
            self.take()
            tokens = []
            while self.seen() not in {"", "]"}:
                tokens.append(self.take())
            if self.take() != "]" or (self.dot and {"<", "+"} & {*tokens}):
                raise ParameterError("attributes must be in brackets, as [key=value]: no markup, no sum of texts")
            plain = [token.strip('"') for token in tokens]
            attributes |= {a: b for a, mark, b in zip(plain, tokens[1:], plain[2:], strict=False) if mark == "="}
        return attributes
