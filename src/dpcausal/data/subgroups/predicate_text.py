"""The text of a subgroup, as ``--where`` and a study file have it: read by a grammar of its own, never run.

::

    text       = comparison {"and" comparison}
    comparison = column (">=" | "<=" | "==") value  |  column "in" "[" value {"," value} "]"
    column     = a letter or underscore, then letters, digits, underscores  |  `any text`  |  "any text"
    value      = number  |  'any text'  |  "any text"  |  true  |  false

A quote inside a text of its kind is doubled.  Nothing else is replaced, and no character is folded into another: a
column is the one that is declared by exactly these code points.
"""

from __future__ import annotations

import re
from typing import Any

from dpcausal.errors import ParameterError

RULE = (
    "a subgroup is written as \"age >= 20 and sex == 'f' and site in ['a', 'b']\", with >=, <=, ==, in, and; a name "
    "that is no plain word stands in backticks, as `blood pressure`"
)

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)*`|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")"
    r"|(?P<number>[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,3})?)(?![\w.])"
    r"|(?P<word>[^\W\d]\w*)|(?P<sign>>=|<=|==|[\[\](),]))",
)
_CLOSING = {"[": "]", "(": ")"}
_SIGNS = {">=": "at_least", "<=": "at_most", "==": "among"}
_TRUTHS = {"true": True, "True": True, "false": False, "False": False}


def parse_predicates(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the predicates of a text, each a column's name with the arguments of ``Table.where``.

    >>> parse_predicates("age >= 20 and sex == 'f'")
    [('age', {'at_least': 20}), ('sex', {'among': ['f']})]
    >>> parse_predicates("`blood pressure` <= 140 and \\"it's\\" in [0, 1]")
    [('blood pressure', {'at_most': 140}), ("it's", {'among': [0, 1]})]
    """
    reader = _Reader(text)
    clauses = [reader.clause()]
    while reader.accept("and"):
        clauses.append(reader.clause())
    if not reader.ended:
        raise reader.refusal()
    return clauses


def literal(value: str | int | float) -> str:
    """Return a value as the text of a predicate has it.

    >>> literal("it's"), literal(2.5)
    ("'it''s'", '2.5')
    """
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


class _Reader:
    """A text, and how far it was read."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text.rstrip(), 0

    @property
    def ended(self) -> bool:
        return self.at >= len(self.text)

    def refusal(self) -> ParameterError:
        rest = self.text[self.at :].strip()
        where = f"it cannot be read from {rest[:40]!r} on" if rest else "it ends too early"
        return ParameterError(f"{where}: {RULE}")

    def token(self, *kinds: str) -> str | None:
        """Return the next token and go on behind it, if it is of one of these kinds."""
        match = _TOKEN.match(self.text, self.at)
        if match is None or match.lastgroup not in kinds:
            return None
        self.at = match.end()
        return match[match.lastgroup or 0]

    def accept(self, *options: str) -> str | None:
        """Return the next word or sign and go on behind it, if it is one of these."""
        before = self.at
        token = self.token("word", "sign")
        if token not in options:
            self.at = before
            return None
        return token

    def clause(self) -> tuple[str, dict[str, Any]]:
        name = self.token("word", "quoted")
        if name is None or name[0] == "'":
            raise self.refusal()
        if name[0] in "`\"":
            name = _unquoted(name)
        sign = self.accept(*_SIGNS, "in")
        if sign is None:
            raise self.refusal()
        if sign == "in":
            return name, {"among": self.values()}
        value = self.value()
        return name, {_SIGNS[sign]: [value] if sign == "==" else value}

    def values(self) -> list[Any]:
        opening = self.accept("[", "(")
        if opening is None:
            raise self.refusal()
        values = [self.value()]
        while self.accept(","):
            values.append(self.value())
        if not self.accept(_CLOSING[opening]):
            raise self.refusal()
        return values

    def value(self) -> Any:
        token = self.token("quoted", "number", "word")
        if token is None or token[0] == "`":
            raise self.refusal()
        if token[0] in "'\"":
            return _unquoted(token)
        if token in _TRUTHS:
            return _TRUTHS[token]
        if token[0].isalpha() or token[0] == "_":
            raise self.refusal()
        return int(token) if re.fullmatch(r"[+-]?\d+", token) else float(token)


def _unquoted(text: str) -> str:
    return text[1:-1].replace(text[0] * 2, text[0])
