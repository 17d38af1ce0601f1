"""What the library's errors call by Python's words, in those of a study file."""

from __future__ import annotations

import re

from dpcausal.direction.methods import METHODS as DIRECTIONS
from dpcausal.discovery.methods import METHODS as GRAPHS
from dpcausal.effects.estimators import METHODS as EFFECTS
from dpcausal.independence.methods import METHODS as TESTS
from dpcausal.synthetic_control.methods import METHODS as CONTROLS

KINDS = (DIRECTIONS, GRAPHS, EFFECTS, TESTS, CONTROLS)
NAMES = {kind.__name__: name for kinds in KINDS for name, kind in kinds.items()}

NUMBER, VALUE = r"([\d.e+-]+)", r"(True|False|None|'[^']*'|-?[\d.]+(?:e-?\d+)?|\[[^\]]*\])"
SPELLING = {
    "make the table with": "write at the head of the file", r"or an object of dpcausal\.methods": "or a table of one",
    rf"(?:loss=)?ApproxDP\(epsilon, {NUMBER}\)": r"delta = \1 beside epsilon", r"ZCDP\(rho\)": "rho",
    rf"(?:loss=)?(?:dpc\.)?PureDP\({NUMBER}\)": r"epsilon = \1", rf"(?:loss=)?(?:dpc\.)?ZCDP\({NUMBER}\)": r"rho = \1",
    rf"(?:loss=)?(?:dpc\.)?ApproxDP\({NUMBER}, {NUMBER}\)": r"epsilon = \1, delta = \2",
    r"\bApproxDP\b": "epsilon with delta", r"\bPureDP\b": "epsilon", r"\bZCDP\b": "rho",
    r"Levels\((\[[^\]]*\]), (\w+='[^']*')\)": r"levels = \1, \2", r"\bBounded\b": "bounded", r"\bLevels\b": "levels",
    r"\brefresh=True\b": "dpcausal run --refresh with its name", r"\b([a-z_]+)=(?=[ ,.;:)])": r"\1",
}  # fmt: skip


def as_toml_wording(message: str) -> str:
    """Return an error's words with arguments as a study file writes them.

    Examples
    --------
    >>> as_toml_wording("blocks= belongs to the method: method=dpc.methods.Gcm(blocks=40)")
    'blocks belongs to the method: method = { name = "gcm", blocks = 40 }'
    >>> as_toml_wording("ApproxDP(0.5, 1e-06) is too much: above it say accept_large_epsilon=True")
    'epsilon = 0.5, delta = 1e-06 is too much: above it say accept_large_epsilon = true'
    >>> as_toml_wording("declare Levels([...], other='never'), or take missing='drop'")
    'declare levels = [...], other = "never", or take missing = "drop"'
    """
    told = re.sub(r"method=dpc\.\w+\.(\w+)\((.*?)\)", _method, message)
    for python, toml in SPELLING.items():
        told = re.sub(python, toml, told)
    return re.sub(rf"\b([a-z_]+)={VALUE}", lambda found: f"{found[1]} = {_value(found[2])}", told)


def _method(found: re.Match[str]) -> str:
    name = NAMES.get(found[1], found[1])
    return "method = { " + ", ".join([f'name = "{name}"', *([found[2]] if found[2] else [])]) + " }"


def _value(text: str) -> str:
    return {"True": "true", "False": "false"}.get(text, text.replace("'", '"'))
