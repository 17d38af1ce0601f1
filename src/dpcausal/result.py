"""What a result is: a frozen record of released and public values that can say what it guarantees."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from html import escape
from typing import Any, ClassVar

import numpy as np

from dpcausal.codec import storable
from dpcausal.errors import Advice, MissingDependencyError, Setting
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import SYMBOLS, Loss
from dpcausal.privacy.sensitivity import Relation, Unit


@storable("Guarantee")
@dataclass(frozen=True)
class Guarantee:
    """What a result cost and whom it protects.

    Attributes
    ----------
    loss : Loss
        What the call cost, fixed before the data was read.
    relation : Relation
        The neighbouring data sets that the guarantee applies to.
    unit : Unit
        Whose record is protected.
    private : bool
        False for simulated noise, unproven variants and ledgers without privacy.
    proofs : tuple of str
        The claims that the guarantee relies on; ``dpcausal explain <claim>`` prints one.
    caveats : tuple of str
        What is not covered, in words.
    public : tuple of str
        What the guarantee takes as public.
    ledger_head : str
        Head of the ledger's hash chain after the spend; empty without a ledger.
    cached : str
        Of a cached result: which spend paid for it, and when.  Asking again cost nothing.
    """

    loss: Loss
    relation: Relation
    unit: Unit
    private: bool
    proofs: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    ledger_head: str = field(default="", compare=False)  # it tells the time
    cached: str = field(default="", compare=False)

    @classmethod
    def of(
        cls,
        allotment: CallBudget,
        *,
        proofs: tuple[str, ...],
        caveats: tuple[str, ...] = (),
        public: tuple[str, ...] = (),
    ) -> Guarantee:
        """Return the guarantee of what was allotted to a call."""
        return cls(
            loss=allotment.loss,
            relation=allotment.relation,
            unit=allotment.unit,
            private=allotment.private,
            proofs=proofs,
            caveats=allotment.caveats + caveats,
            public=public,
            ledger_head=allotment.ledger_head,
        )

    @property
    def records(self) -> str:
        """What the records are, in a word."""
        return "persons" if self.unit in (Unit.PERSON, Unit.LISTED_PERSON) else "rows"

    @property
    def subgroup(self) -> str:
        """Which records the question is about; empty for all."""
        prefix = "the subgroup: "
        return " and ".join(text.removeprefix(prefix) for text in self.public if text.startswith(prefix))

    def to_dict(self) -> dict[str, Any]:
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}

    def line(self) -> str:
        """Return the cost, and whom it protects, in one line."""
        if self.loss.exact:
            return "Privacy: none. This is the exact result."
        if not self.private:
            return f"Privacy: none (stated loss {self.loss})."
        whom = {
            Unit.ROW: "per row", Unit.PERSON: "per person (all rows)", Unit.LISTED_PERSON: "per person (all rows)",
            Unit.DONOR: "per control unit (whole series)", Unit.TEST_ROW: "per row of the test half",
            Unit.TRAINING_ROW: "per row of the training half",
        }.get(self.unit, self.unit.value)  # fmt: skip
        free = " Saved result: nothing was spent." if self.cached else ""
        return f"Privacy: {self.loss}, {whom}.{free}"

    def lines(self) -> list[str]:
        """Return the guarantee in sentences, one a line."""
        if self.loss.exact:
            head = "Guarantee: NONE. This is the exact answer."
        elif not self.private:
            head = f"Guarantee: NONE (stated loss {self.loss})."
        else:
            head = f"Guarantee: {self.loss}, {self.relation.value}, unit: {self.unit.value}."
        again = [f"  Cached result, nothing was spent: {self.cached}."] if self.cached else []
        lines = [head, *again, *(f"  ! {caveat}" for caveat in self.caveats)]
        if self.public:
            lines.append(f"  Public: {', '.join(self.public)}.")
        if self.proofs:
            lines.append(f"  Proofs: {', '.join(self.proofs)}.")
        if self.ledger_head:
            lines.append(f"  Ledger head: {self.ledger_head}")
        return lines


def plain(value: Any) -> Any:
    """Return a value as JSON's types: enums by value, losses by kind, arrays and sets as lists, records by field."""
    if isinstance(value, Loss):
        return {"kind": type(value).__name__, **plain(value.amounts)}
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(entry) for entry in value), key=repr)
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def short_amount(amount: float) -> str:
    """Return an amount with two decimals, or with all of its digits where it has more.

    >>> short_amount(0.5), short_amount(2), short_amount(1 / 3)
    ('0.50', '2.00', '0.3333')
    """
    return f"{amount:.2f}" if round(amount, 2) == amount else f"{amount:.4g}"


def short_loss(loss: Loss) -> str:
    """Return the amount that a loss is mostly counted in, as ``ε = 0.50``.

    >>> from dpcausal.privacy.loss import ZCDP, ApproxDP
    >>> short_loss(ApproxDP(1.5, 1e-6)), short_loss(ZCDP(0.1))
    ('ε = 1.50', 'ρ = 0.10')
    """
    return (
        "no privacy"
        if loss.exact
        else next(f"{SYMBOLS[name]} = {short_amount(float(amount))}" for name, amount in loss.amounts.items())
    )


def decimals_of(interval: tuple[float, float] | None) -> int | None:
    """Return the decimals that show half the width of an interval with two digits; ``None`` where it has no width.

    >>> decimals_of((0.4, 1.25)), decimals_of((-14.84, 8.14)), decimals_of(None)
    (2, 0, None)
    """
    half = 0.0 if interval is None else (interval[1] - interval[0]) / 2
    return max(0, 1 - math.floor(math.log10(half))) if 0 < half < math.inf else None


def number_text(value: float, decimals: int | None = None) -> str:
    """Return a number; unless decimals are given with two, of small ones with two digits, of large ones with none.

    >>> number_text(0.834), number_text(0.0123), number_text(1234.5), number_text(0), number_text(-0.004, 2)
    ('0.83', '0.012', '1,234', '0.00', '0.00')
    """
    size = abs(value)
    if decimals is not None:
        text = f"{size:,.{decimals}f}"
    else:
        text = f"{size:,.0f}" if size >= 1000 else f"{size:.2f}" if size >= 0.1 or size == 0 else f"{size:.2g}"
    return f"−{text}" if value < 0 and text.strip("0.") else text


def signed_text(value: float | None, interval: tuple[float, float] | None = None) -> str:
    """Return a difference with its sign, with as many decimals as its interval.

    >>> signed_text(0.834), signed_text(-12.3), signed_text(-3.35, (-14.84, 8.14))
    ('+0.83', '−12.30', '−3')
    """
    if value is None:
        return "no result"
    text = number_text(value, decimals_of(interval))
    return text if text.startswith("−") else f"+{text}"


def percent_text(share: float) -> str:
    """Return a share as ``64 %``."""
    return f"{100 * share:.0f} %"


def ci_text(interval: tuple[float, float] | None, coverage: float) -> str:
    """Return a confidence interval as ``95 % CI 0.40 to 1.25``, or that there is none."""
    return "no confidence interval" if interval is None else f"{100 * coverage:g} % CI {interval_text(interval)}"


def interval_text(interval: tuple[float, float] | None) -> str:
    """Return an interval as ``0.40 to 1.25``, both ends with as many decimals; empty where there is none.

    >>> interval_text((-0.028, 1.12))
    '−0.03 to 1.12'
    """
    decimals = decimals_of(interval)
    return "" if interval is None else f"{number_text(interval[0], decimals)} to {number_text(interval[1], decimals)}"


def p_text(pvalue: float | None) -> str:
    """Return a p-value.

    >>> p_text(0.0312), p_text(1e-9)
    ('p = 0.031', 'p < 0.001')
    """
    if pvalue is None:
        return "no p-value"
    return "p < 0.001" if pvalue < 0.001 else f"p = {pvalue:.2g}"


MEANS = {
    "nats": "a difference of log-likelihoods: 1 is odds of 2.7 to 1, 5 are 150 to 1",
    "powers of ten": "how often ten goes between a p-value and its level",
    "signal to noise": "how many times the released numbers exceed their noise",
    "E-value": "the risk ratio that an unmeasured cause needs with treatment and outcome to explain the effect away",
    "robustness value": "the share of what is left of both that an unmeasured cause must explain to do the same",
    "Ledger head": "identifies all spends up to now: noted, it shows whether an older ledger was restored",
}
"""Words of answers that not everybody knows."""


def explain_terms(text: str) -> list[str]:
    """Return what the words of a text mean, for those that not everybody knows.

    Examples
    --------
    >>> explain_terms("a -> b (margin 3 nats)")
    ['Nats: a difference of log-likelihoods: 1 is odds of 2.7 to 1, 5 are 150 to 1.']
    """
    return [f"{term[0].upper()}{term[1:]}: {meaning}." for term, meaning in MEANS.items() if term in text]


def data_frame(rows: list[dict[str, Any]], columns: list[str] | None = None) -> Any:
    """Return rows as a pandas data frame; a MissingDependencyError if pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise MissingDependencyError("pandas", "pandas") from None
    return pandas.DataFrame(rows, columns=columns)


def flat_row(entries: dict[str, Any]) -> dict[str, Any]:
    """Return entries as those of one row: a list as so many columns, the ends of an interval by their names."""
    row: dict[str, Any] = {}
    for name, value in entries.items():
        if name in ("interval", "band", "bounds"):
            row |= {f"{name}_low": value[0] if value else None, f"{name}_high": value[1] if value else None}
        elif name in ("risk_ratio", "odds_ratio"):
            low, high = (value and value["interval"]) or (None, None)
            row |= {name: value and value["estimate"], f"{name}_low": low, f"{name}_high": high}
        elif isinstance(value, (list, tuple)) and all(not isinstance(part, (list, dict)) for part in value):
            row |= {f"{name}_{place}": part for place, part in enumerate(value, start=1)}
        elif not isinstance(value, (list, tuple, dict)):
            row[name] = value
    return row


MOST_WARNINGS, DETAILS = 3, Advice(Setting("details"))

IMPUTED = Advice(
    Setting("missing", "impute"), " counts a missing value as the midpoint of its bounds, or as the first level: where "
    "more than a few are missing, estimates, intervals and p-values can be wrong",
)  # fmt: skip
"""The caveat of answers with imputed values, which is a warning, too."""


class TextResult:
    """Base of results: text for a reader or a notebook, and JSON."""

    def summary(self) -> str:
        """Return it in sentences."""
        raise TypeError(f"{type(self).__name__} has no summary")

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return all but the released numbers as JSON's types; those are ``release.to_dict()``."""
        parts = [field.name for field in fields(self) if field.name != "release"]  # type: ignore[arg-type]
        return {name: plain(getattr(self, name)) for name in parts}

    def to_json(self, *, indent: int | None = None) -> str:
        """Return ``to_dict`` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)


class Result(TextResult):
    """Base of all results: frozen, picklable, printable, holding released and public values only.

    A subclass is a frozen dataclass with a field ``guarantee`` and the methods ``headline`` and ``plot``.
    """

    guarantee: Guarantee

    named: ClassVar[tuple[str, ...]] = ()
    """The columns of a frame without a row."""

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        cls.__repr__ = Result.__repr__  # type: ignore[method-assign]  # a dataclass would print all fields

    def __repr__(self) -> str:
        """Return the result in one line."""
        return f"<{type(self).__name__} {self.brief()}; {self.guarantee.loss}>"

    def brief(self) -> str:
        """Return the conclusion without its numbers, or with the most important one."""
        return self.headline()[0].rstrip(".:")

    def headline(self) -> list[str]:
        """Return the conclusion in a sentence, and the numbers below it, one line each."""
        raise TypeError(f"{type(self).__name__} has no headline")

    def warnings(self) -> list[str]:
        """Return what released numbers say against the result, the most important first, and what to do."""
        return []

    def technical(self) -> list[str]:
        """Return how the result was computed, one line each."""
        return []

    def summary(self) -> str:
        """Return the conclusion, its numbers, at most three warnings and the privacy cost; not private comes first."""
        warnings = self._all_warnings()
        more = f" ({len(warnings) - MOST_WARNINGS} more: {DETAILS})" if len(warnings) > MOST_WARNINGS else ""
        lines = [*self.headline(), *(f"warning: {one}" for one in warnings[:MOST_WARNINGS])]
        lines[-1] += more
        limits = len(self.guarantee.caveats)
        pointer = [f"Assumptions and limits ({limits}): see {DETAILS}"] if limits else []
        return "\n".join([*self._unprotected(), *lines, *pointer, self.guarantee.line()])

    def details(self) -> str:
        """Return the whole result as text: the summary, all warnings, settings, assumptions, proofs, fingerprint."""
        lines = [*self._unprotected(), *self.headline(), *(f"warning: {one}" for one in self._all_warnings())]
        lines += [*self.technical(), *self.guarantee.lines()]
        return "\n".join([*lines, *(f"  {text}" for text in explain_terms("\n".join(lines)))])

    def _all_warnings(self) -> list[str]:
        return [*self.warnings(), *(one for one in self.guarantee.caveats if one == IMPUTED)]

    def _unprotected(self) -> list[str]:
        caveats = "; ".join(self.guarantee.caveats) or "no guarantee"
        return [] if self.guarantee.private else [f"NOT PRIVATE: {caveats}"]

    def stamp(self) -> str:
        """Return what a picture must say of the guarantee: empty where every row is protected."""
        if not self.guarantee.private:
            return "NOT PRIVATE"
        halves = {Unit.TEST_ROW: "PROTECTS THE TEST HALF ONLY", Unit.TRAINING_ROW: "PROTECTS THE TRAINING HALF ONLY"}
        return halves.get(self.guarantee.unit, "")

    def rows(self) -> list[dict[str, Any]]:
        """Return its parts, one a row of ``to_frame``: its scalars, unless it has groups, periods, edges or tests."""
        return [flat_row({name: value for name, value in self.to_dict().items() if name != "guarantee"})]

    def to_frame(self) -> Any:
        """Return a tidy pandas data frame, a row for each part, the guarantee's loss and unit beside each."""
        under = {"loss": repr(self.guarantee.loss), "unit": self.guarantee.unit.value,
                 "private": self.guarantee.private, "caveats": "; ".join(self.guarantee.caveats)}  # fmt: skip
        rows = [row | {name: value for name, value in under.items() if name not in row} for row in self.rows()]
        return data_frame(rows, None if rows else [*self.named, *under])

    def plot(self, ax: Any = None) -> Any:
        """Draw the released values on a matplotlib axes and return it."""
        raise TypeError(f"{type(self).__name__} has no picture")
