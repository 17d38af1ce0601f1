"""The saved form of a release, read with care: a text may come from anywhere, and must be whole or be refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dpcausal.errors import DpCausalError, ParameterError
from dpcausal.privacy.loss import LOSSES, Loss
from dpcausal.privacy.sensitivity import Relation, Unit
from dpcausal.result import Guarantee

Kind = TypeVar("Kind", str, int, bool, list[Any])

LARGEST = 2**63
FRACTION = re.compile("[0-9]{1,1000}(/[1-9][0-9]{0,999})?")


class Form:
    """One JSON object whose entries are read by name and kind; anything unexpected is refused."""

    def __init__(self, payload: object) -> None:
        if not isinstance(payload, dict):
            raise ParameterError("this is no release: an object is missing")
        self._entries = payload

    def refuse(self, name: str) -> ParameterError:
        return ParameterError(f"this is no release: {name!r} is missing or not as it must be")

    def has(self, name: str) -> bool:
        return self._entries.get(name) is not None

    def entry(self, name: str) -> Any:
        if name not in self._entries:
            raise self.refuse(name)
        return self._entries[name]

    def _of(self, kind: type[Kind], name: str, valid: Callable[[Kind], bool] = lambda value: True) -> Kind:
        value = self.entry(name)
        if type(value) is not kind or not valid(value):
            raise self.refuse(name)
        return value

    def part(self, name: str) -> Form:
        return Form(self.entry(name))

    def parts(self, name: str) -> list[Form]:
        return [Form(one) for one in self._of(list, name)]

    def text(self, name: str, allowed: tuple[str, ...] = ()) -> str:
        """Return a text, among those allowed if any are named."""
        return self._of(str, name, lambda text: not allowed or text in allowed)

    def texts(self, name: str, different: bool = False) -> tuple[str, ...]:
        listed = self._of(list, name, lambda listed: all(isinstance(one, str) for one in listed))
        if different and (not listed or len(set(listed)) < len(listed)):
            raise self.refuse(name)
        return tuple(listed)

    def lists(self, name: str, different: bool = False) -> tuple[tuple[str, ...], ...]:
        return tuple(Form({name: one}).texts(name, different) for one in self._of(list, name))

    def truth(self, name: str) -> bool:
        return self._of(bool, name)

    def whole(self, name: str, least: int) -> int:
        return self._of(int, name, lambda number: least <= number < LARGEST)

    def wholes(self, name: str, least: int, count: int) -> tuple[int, ...]:
        array = self.array(name, integral=True)
        if array.shape != (count,) or (array < least).any():
            raise self.refuse(name)
        return tuple(array.tolist())

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
        arrays = {name: self.array(name) for name in shapes}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise self.refuse(name)
        return arrays

    def amount(self, name: str) -> Fraction:
        """Return an exact fraction, written ``"1/10"``."""
        return Fraction(self._of(str, name, lambda text: FRACTION.fullmatch(text) is not None))


def guarantee_dict(guarantee: Guarantee) -> dict[str, Any]:
    loss = guarantee.loss
    amounts = {name: str(amount) for name, amount in loss.amounts.items()}
    return guarantee.to_dict() | {"loss": {"kind": type(loss).__name__, **amounts}}


def guarantee_from_json(form: Form) -> Guarantee:
    return Guarantee(
        loss=_loss_in(form.part("loss")),
        relation=Relation(form.text("relation", tuple(one.value for one in Relation))),
        unit=Unit(form.text("unit", tuple(one.value for one in Unit))),
        private=form.truth("private"),
        proofs=form.texts("proofs"),
        caveats=form.texts("caveats"),
        public=form.texts("public"),
        ledger_head=form.text("ledger_head"),
    )


def _loss_in(form: Form) -> Loss:
    kind = LOSSES[form.text("kind", tuple(LOSSES))]
    try:
        loss: Loss = kind(*(form.amount(field.name.removeprefix("exact_")) for field in fields(kind)))
        return loss
    except DpCausalError:
        raise form.refuse("loss") from None


def cut_written(cut: tuple[str, ...], key: str = "cut") -> dict[str, Any]:
    return {key: list(cut)} if cut else {}


def cut_in(form: Form, names: tuple[str, ...], key: str = "cut") -> tuple[str, ...]:
    cut = form.texts(key, different=True) if form.has(key) else ()
    if not set(cut) <= set(names):
        raise form.refuse(key)
    return cut


def cuts_written(cuts: Mapping[str, tuple[float, ...]]) -> dict[str, Any]:
    return {"cuts": {name: list(at) for name, at in cuts.items()}} if cuts else {}


def cuts_text(cuts: Mapping[str, tuple[float, ...]]) -> list[str]:
    listed = [f"{name} at {', '.join(f'{cut:.4g}' for cut in at)}" for name, at in cuts.items()]
    return [f"Cut at noisy quartiles: {'; '.join(listed)}."] if listed else []


def cuts_in(form: Form, names: tuple[str, ...]) -> dict[str, tuple[float, ...]]:
    if not form.has("cuts"):
        return {}
    part, cuts_by_name = form.part("cuts"), {}
    for name in (name for name in names if part.has(name)):
        cuts = part.array(name) if part.entry(name) else np.empty(0)
        if cuts.ndim != 1 or (np.diff(cuts) <= 0).any():
            raise form.refuse("cuts")
        cuts_by_name[name] = tuple(cuts.tolist())
    return cuts_by_name
