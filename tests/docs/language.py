"""Counts of private idiom by file; ``python -m tests.docs.language`` records them.

The record is a ratchet: ``test_language.py`` fails where a file has more than is recorded.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_name("language.json")
IDIOM = re.compile(
    r"\b(told|foretell\w*|foretold|heard|unheard|handed|by lot|lots? (?:say|drew)|for nothing|put back|whose a row|"
    r"mended|would do|speaks? of|kept answers?|anew|lacks?|dealt|coins|bears? out|unasked|torn|of so many|nats?|"
    r"made[- ]up|far out|what (?:the )?lines? leaves?|not shown|leans?|stands? (?:above|in|for)|the house|"
    r"once [a-z]+ is known|causes? both|guests?|rests? on|settled|tells?|lines leave|"
    r"(?:as|what|which) was said)\b|[×x] \.?\d|(?<![\d\w:])\.\d+\b(?!\.)",
    re.IGNORECASE,
)


def sentences(text: str) -> list[list[str]]:
    """Return the words of each sentence outside code, tables, headings and comments."""
    text = re.sub(r"```.*?```|<!--.*?-->", " ", text, flags=re.DOTALL)
    text = re.sub(r"^[|#].*$|`[^`]*`|\]\([^)]*\)", " ", text, flags=re.MULTILINE)
    parts = re.split(r'(?<=[.!?])[*_)"]*\s+|\n\n+|\n(?=[*-] |\d+[.] )', text)
    return [part.split() for part in parts if len(part.split()) > 3]


def strings(path: Path) -> Iterator[str]:
    """Yield every string of four words or more: docstrings, messages, captions, help."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) >= 4:
            yield node.value


def idioms(text: str) -> int:
    return len(IDIOM.findall(" ".join(" ".join(words) for words in sentences(text))))


def counts() -> dict[str, int]:
    """Return what is above nothing, by file."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    table = {page: idioms(page.read_text(encoding="utf-8")) for page in pages}
    table |= {path: sum(len(IDIOM.findall(text)) for text in strings(path)) for path in (ROOT / "src").rglob("*.py")}
    return {str(path.relative_to(ROOT)): count for path, count in sorted(table.items()) if count}


if __name__ == "__main__":
    RECORD.write_text(json.dumps(counts(), indent=1) + "\n", encoding="utf-8")
    print(sum(counts().values()))
