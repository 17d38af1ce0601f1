"""Every sensitivity names a claim; every claim is proved on one page and tied to a test."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from dpcausal.claims import claims, explain
from dpcausal.errors import ParameterError
from tests.sources import MODULES, SOURCE, tree

ROOT = Path(__file__).parent.parent
CLAIM = re.compile(r"^## ([a-z0-9]+(?:-[a-z0-9]+)*)$", re.MULTILINE)

# Variants as published whose claim is false: they run only with consent and have no proof page.
UNPROVEN = {
    "iqr-published-unproven", "objective-perturbation-published", "conditional-tau-published-unproven",
}  # fmt: skip


def named_in_code() -> set[str]:
    """Return every text in the sources that is used as a proof's name."""
    found = set()
    for path in MODULES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Sensitivity":
                values = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "proof")]
                texts = {value.value for value in values if isinstance(value, ast.Constant)}
                found |= {text for text in texts if isinstance(text, str)}
            if isinstance(node, ast.keyword) and node.arg == "proof" and isinstance(node.value, ast.Constant):
                found.add(str(node.value.value))
    return found


def marked_in_tests() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("*.py"):
        found |= set(re.findall(r"mark\.proves\(\s*\"([a-z0-9-]+)\"", path.read_text()))
    return found


def test_every_sensitivity_names_a_claim_with_a_page() -> None:
    assert named_in_code() - UNPROVEN <= set(claims())


def test_every_mark_names_a_claim() -> None:
    assert marked_in_tests() <= set(claims())


def test_a_claim_stands_on_one_page_only() -> None:
    names = [name for page in SOURCE.rglob("*.md") for name in CLAIM.findall(page.read_text())]
    assert not [name for name, count in Counter(names).items() if count > 1]


@pytest.mark.parametrize("name", sorted(claims()))
def test_every_claim_has_its_parts(name: str) -> None:
    text = explain(name)
    for part in ("**Claim.**", "**Proof.**", "**Source.**"):
        assert part in text


def test_an_unknown_claim_is_refused_with_those_near_it() -> None:
    with pytest.raises(ParameterError, match="did you mean 'laplace'"):
        explain("laplce")
    with pytest.raises(ParameterError, match=f"it is in .*; 'dpcausal explain' lists all {len(claims())}"):
        explain("gaussian noise")
    with pytest.raises(ParameterError, match=r"no claim of that name; 'dpcausal explain'"):
        explain("zzzz")


def test_proof_pages_lie_beside_code_of_the_same_name() -> None:
    for page in set(SOURCE.rglob("*.md")) - {SOURCE / "papers" / "README.md"}:
        assert page.with_suffix(".py").exists()
