"""Which units are treated: a list of names, or a public rule about the names, which all panels of a ledger share.

A rule looks at a unit's name alone, and names are public: no record decides who is a donor.  What it is true of is
treated in every panel, a donor in none, so no donor of one panel is published as the target of another.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpcausal.data.panels.periods import unit_in_frame, unit_name
from dpcausal.data.subgroups.predicate import literal, parse_predicates
from dpcausal.errors import ParameterError
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.sensitivity import Unit

TARGETS, MADE_OF, VALUES = "targets of panels", "panels are made of", "value of a target"
"""What a ledger that protects units has declared once: with each unit a target in turn, none would be protected.  Claim
``public-targets``.  The first two stand before any value of a target is read, for a plan as for a question."""

RULE = 'treated must be a list of units, or a rule about their names as "unit >= 6000 and unit in [6001, 6003]"'

_NUMBER = re.compile(r"[+-]?\d{1,15}(\.\d{1,15})?")


def checked_treated(treated: object, targets: Sequence[Any], unit: str = "unit") -> tuple[Any, ...] | str:
    """Return the units that are treated, the targets among them: these alone where none are named, or a rule. A rule
    calls them by the column's name or ``unit``, and is given back in one form: two ways to write it are one."""
    if isinstance(treated, str) and treated:
        rule = " and ".join(sorted({_as_text(part) for part in _rule_parts(treated, unit)}))
        if not all(map(_rule_as_function(rule), map(unit_name, targets))):
            raise ParameterError("treated must be a rule that is true of each target")
        return rule
    if isinstance(treated, bytes) or not isinstance(treated, Sequence):
        raise ParameterError(RULE)
    if not treated:
        return tuple(targets)
    names = [unit_name(one) for one in treated]
    if None in names or len(set(names)) < len(names) or not {unit_name(one) for one in targets} <= set(names):
        raise ParameterError("treated must name different units, each of the targets among them")
    return tuple(treated)


def treated_record(treated: tuple[Any, ...] | str) -> list[Any] | str:
    if isinstance(treated, str):
        return treated
    return sorted((unit_name(name) for name in treated), key=lambda name: (str(name), repr(name)))


def declare(ledger: Ledger, once: Mapping[str, Any], unit: str) -> None:
    if ledger.private:
        ledger.declare(once, unit=Unit.DONOR, unit_column=unit)


def membership(treated: tuple[Any, ...] | str, as_text: bool) -> Callable[[Any], bool]:
    if isinstance(treated, str):
        return _rule_as_function(treated)
    return {unit_in_frame(one, as_text) for one in treated}.__contains__


def _rule_parts(rule: str, unit: str) -> list[tuple[str, Any]]:
    try:
        clauses = parse_predicates(rule)
    except ParameterError:
        raise ParameterError(RULE) from None
    parts = [(key, value) for _, bounds in clauses for key, value in bounds.items()]
    listed = [value if key == "among" else [value] for key, value in parts]
    known = all(isinstance(one, (list, tuple)) and one and all(map(_is_comparable, one)) for one in listed)
    if not known or not {name for name, _ in clauses} <= {unit, "unit"}:
        raise ParameterError(RULE)
    return parts


def _is_comparable(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, (int, float)) and not isinstance(value, bool)
                                      and abs(value) < 1e15)  # fmt: skip


def _as_text(part: tuple[str, Any]) -> str:
    key, value = part
    if key == "among":
        listed = sorted(set(value), key=lambda one: (isinstance(one, str), one))
        return f"unit in [{', '.join(map(literal, listed))}]"
    return f"unit {'>=' if key == 'at_least' else '<='} {literal(value)}"


def _rule_as_function(rule: str) -> Callable[[Any], bool]:
    """Return the rule as a function of a name; numbers are compared with names that are or say plain numbers."""
    parts = _rule_parts(rule, "unit")

    def comparable(name: Any, value: Any) -> Any:
        if isinstance(value, str):
            return name if isinstance(name, str) else None
        if isinstance(name, str):
            return float(name) if _NUMBER.fullmatch(name) else None
        return name

    def one(name: Any, key: str, value: Any) -> bool:
        if key == "among":
            return any(comparable(name, listed) == listed for listed in value)
        own = comparable(name, value)
        return own is not None and bool(own >= value if key == "at_least" else own <= value)

    return lambda name: name is not None and all(one(name, key, value) for key, value in parts)
