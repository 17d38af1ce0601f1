"""How much each row of the registry costs: what another test already spends is not spent again.

Eight thousand neighbour pairs a claim are looked at in the whole suite, at least.  Where a test that is marked for one
claim calls ``check_claim``, which asserts that many, or a search of that many, the registry looks at as many as its row
needs to reach its share of the bound; elsewhere at all of them.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

from dpcausal.audit import Falsification, falsify
from tests.registry.rows import SensitivityRow

PAIRS = 8_000
ROUNDS = 4
TESTS = Path(__file__).resolve().parents[1]


@lru_cache(maxsize=1)
def searched_elsewhere() -> frozenset[str]:
    """Return the claims for which a test that is marked with that claim alone looks at 8,000 pairs or more."""
    found = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                marks = [ast.unparse(mark) for mark in node.decorator_list]
                claims = [mark.split("(", 1)[1][1:-2] for mark in marks if mark.startswith("pytest.mark.proves(")]
                if len(claims) == 1 and any(_looks_at_all(call) for call in ast.walk(node)):
                    found.add(claims[0])
    return frozenset(found)


def _looks_at_all(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return False
    asked = [keyword.value for keyword in node.keywords if keyword.arg == "evaluations"]
    pairs = asked[0].value if asked and isinstance(asked[0], ast.Constant) else 0
    return node.func.id == "check_claim" or (node.func.id in ("search", "falsify") and pairs >= PAIRS)


def searched(row: SensitivityRow) -> list[Falsification]:
    """Return the searches of a row, each from another seed: all pairs, or as many as reach its share of the bound."""
    norm = row.sensitivity(max(row.sizes)).norm
    found: list[Falsification] = []
    for seed in range(3, 3 + ROUNDS):
        one = falsify(
            row.statistic, lambda m: row.sensitivity(m).bound, sizes=row.sizes, norm=norm, evaluations=PAIRS // ROUNDS,
            seed=seed, **row.domain,
        )  # fmt: skip
        found.append(one)
        if one.ratio >= row.reached and row.claim in searched_elsewhere():
            break
    return found
