"""The claims that guarantees rely on: read from the proof pages that lie beside the code."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from dpcausal.errors import ParameterError, nearest, with_signature_errors


@dataclass(frozen=True)
class Claim:
    """One claim: its name, the page it stands on (``"statistics/rank.md"``), and its text."""

    name: str
    page: str
    text: str


@lru_cache(maxsize=1)
def claims() -> dict[str, Claim]:
    """Return all claims by name; a name stands on one page only."""
    by_name: dict[str, Claim] = {}
    room = Path(__file__).parent
    for page in sorted(room.rglob("*.md")):
        for part in re.split(r"^(?=## )", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            name = part.splitlines()[0].removeprefix("## ").strip()
            if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
                by_name[name] = Claim(name, page.relative_to(room).as_posix(), part.strip())
    return by_name


@with_signature_errors
def explain(claim: str) -> str:
    """Return the text of a claim: what is claimed, what it assumes, the proof, the source.

    Parameters
    ----------
    claim : str
        A name from ``guarantee.proofs``.

    Raises
    ------
    ParameterError
        There is no such claim; the message names those near it.

    Examples
    --------
    >>> print(explain("laplace").splitlines()[0])
    ## laplace
    """
    known = claims()
    if not isinstance(claim, str) or claim not in known:
        raise ParameterError(
            f"no claim of that name{_matching_claims(claim, known)}; 'dpcausal explain' lists all {len(known)}"
        )
    return known[claim].text


def _matching_claims(name: object, known: dict[str, Claim]) -> str:
    if not isinstance(name, str) or not 1 < len(name) < 200:
        return ""
    pattern = re.compile(rf"(?<![a-z0-9]){re.escape(name.casefold())}(?![a-z0-9])")
    named = [one for one in known if pattern.search(one)]
    matching = named or [one for one, claim in known.items() if pattern.search(claim.text.casefold())]
    return f"; it is in {', '.join(sorted(matching)[:8])}" if matching else nearest(name, known)
