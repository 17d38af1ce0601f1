"""On which line of a TOML file a key stands: for messages, since the parser does not tell."""

from __future__ import annotations

import re
import tomllib
from collections import Counter

Place = tuple[str | int, ...]

HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'))*)\s*=")


def lines_of(text: str) -> dict[Place, int]:
    """Return the line of each table and key, by its path; arrays of tables are counted.

    Examples
    --------
    >>> lines_of('title = "t"\\n[[question]]\\nname = "a"\\n')
    {('title',): 1, ('question', 0): 2, ('question', 0, 'name'): 3}
    """
    found: dict[Place, int] = {}
    arrays: Counter[Place] = Counter()
    table: Place = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header, key = HEADER.match(line), KEY.match(line)
        if key is not None:
            found.setdefault((*table, *_names(key[1])), number)
        elif header is not None and _names(header[2]):
            table = _names(header[2])
            if header[1] == "[[":
                arrays[table] += 1
                table = (*table, arrays[table] - 1)
            found.setdefault(table, number)
    return found


def line_of(place: Place, lines: dict[Place, int]) -> int | None:
    """Return the line of a key, or of the nearest table around it."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place)


def _names(dotted: str) -> Place:
    try:
        told = tomllib.loads(f"{dotted} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    names: list[str | int] = []
    while isinstance(told, dict):
        ((name, told),) = told.items()
        names.append(name)
    return tuple(names)
