"""The saved form of a release, read with care: a text may come from anywhere, and must be whole or be refused."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.errors import DpCausalError, ParameterError
from dpcausal.privacy.loss import LOSSES, Loss
from dpcausal.privacy.sensitivity import Relation, Unit
from dpcausal.result import Guarantee

LARGEST = 2**63
FRACTION = re.compile("[0-9]{1,1000}(/[1-9][0-9]{0,999})?")


class Form:
    """One JSON object whose entries are read by name and kind; anything unexpected is refused."""

    def __init__(self, payload: object) -> None:
        if not isinstance(payload, dict):
            raise ParameterError("this is no release: an object is missing")
        self._told = payload

    def refuse(self, name: str) -> ParameterError:
        """Return the error for an entry that is not as it must be."""
        return ParameterError(f"this is no release: {name!r} is missing or not as it must be")

    def entry(self, name: str) -> Any:
        if name not in self._told:
            raise self.refuse(name)
        return self._told[name]

    def part(self, name: str) -> Form:
        """Return an object inside."""
        return Form(self.entry(name))

    def parts(self, name: str) -> list[Form]:
        """Return a list of objects."""
        return [Form(one) for one in self._entries(name)]

    def _entries(self, name: str) -> list[Any]:
        listed = self.entry(name)
        if not isinstance(listed, list):
            raise self.refuse(name)
        return listed

    def word(self, name: str, allowed: tuple[str, ...] = ()) -> str:
        """Return a text, among those allowed if any are named."""
        value = self.entry(name)
        if not isinstance(value, str) or (allowed and value not in allowed):
            raise self.refuse(name)
        return value

    def words(self, name: str, different: bool = False) -> tuple[str, ...]:
        """Return a list of texts."""
        listed = self.entry(name)
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise self.refuse(name)
        if different and (not listed or len(set(listed)) < len(listed)):
            raise self.refuse(name)
        return tuple(listed)

    def lists(self, name: str, different: bool = False) -> tuple[tuple[str, ...], ...]:
        """Return a list of lists of texts."""
        return tuple(Form({name: one}).words(name, different) for one in self._entries(name))

    def truth(self, name: str) -> bool:
        value = self.entry(name)
        if not isinstance(value, bool):
            raise self.refuse(name)
        return value

    def whole(self, name: str, least: int) -> int:
        """Return a whole number of at least so much."""
        value = self.entry(name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < LARGEST:
            raise self.refuse(name)
        return value

    def wholes(self, name: str, least: int, count: int) -> tuple[int, ...]:
        """Return so many whole numbers."""
        array = self.array(name, integral=True)
        if array.shape != (count,) or (array < least).any():
            raise self.refuse(name)
        return tuple(array.tolist())

    def has(self, name: str) -> bool:
        """Return whether there is such an entry: a release of an older version may not have it."""
        return self._told.get(name) is not None

    def size(self, name: str) -> float:
        """Return a finite number of at least 0."""
        value = self.entry(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            raise self.refuse(name)
        return float(value)

    def array(self, name: str, integral: bool = False) -> npt.NDArray[Any]:
        """Return finite numbers in equal rows: int64, or float64."""
        try:
            array = np.array(self.entry(name))
        except ValueError:
            raise self.refuse(name) from None
        if not array.size or array.dtype.kind not in ("i" if integral else "if"):
            raise self.refuse(name)
        converted: npt.NDArray[Any] = array.astype(np.int64 if integral else np.float64)
        if not np.isfinite(converted).all():
            raise self.refuse(name)
        return converted

    def arrays(self, shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
        """Return arrays of these shapes."""
        arrays = {name: self.array(name) for name in shapes}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise self.refuse(name)
        return arrays

    def amount(self, name: str) -> Fraction:
        """Return an exact fraction, written ``"1/10"``."""
        text = self.word(name)
        if not FRACTION.fullmatch(text):
            raise self.refuse(name)
        return Fraction(text)


def written(guarantee: Guarantee) -> dict[str, Any]:
    """Return a guarantee as JSON's types, its loss exact."""
    return guarantee.to_dict() | {"loss": _loss_written(guarantee.loss)}


def guarantee_from_json(form: Form) -> Guarantee:
    """Return the guarantee that ``written`` wrote."""
    return Guarantee(
        loss=_loss_in(form.part("loss")),
        relation=Relation(form.word("relation", tuple(one.value for one in Relation))),
        unit=Unit(form.word("unit", tuple(one.value for one in Unit))),
        private=form.truth("private"),
        proofs=form.words("proofs"),
        caveats=form.words("caveats"),
        public=form.words("public"),
        ledger_head=form.word("ledger_head"),
    )


def _loss_written(loss: Loss) -> dict[str, str]:
    return {"kind": type(loss).__name__, **{name: str(amount) for name, amount in loss.amounts.items()}}


def _loss_in(form: Form) -> Loss:
    kind = LOSSES[form.word("kind", tuple(LOSSES))]
    try:
        loss: Loss = kind(*(form.amount(field.name.removeprefix("exact_")) for field in fields(kind)))
        return loss
    except DpCausalError:
        raise form.refuse("loss") from None


def cut_written(cut: tuple[str, ...]) -> dict[str, Any]:
    """Return which columns were cut into parts, as it is written: nothing of none."""
    return {"cut": list(cut)} if cut else {}


def cut_in(form: Form, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return which columns were cut into parts."""
    cut = form.words("cut", different=True) if form.has("cut") else ()
    if not set(cut) <= set(names):
        raise form.refuse("cut")
    return cut
