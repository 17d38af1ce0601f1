"""A column of released moments that is a product of two others: what it is, to be reported, kept and made again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpcausal.codec import storable
from dpcausal.releases.saved import Form

Reals = npt.NDArray[np.float64]
Two = tuple[float, float]


@storable("Product")
@dataclass(frozen=True)
class Product:
    """((x − m) / r) · ((w − l) / s), cut to [−1, 1], of two columns of the same record, or of one with itself.

    Attributes
    ----------
    name : str
    of : two str
        The columns; of one with more than two levels ``"site = south"``, 1 or 0.
    middles, reaches : two float
        m and l, r and s, in the columns' units: read off what was released before.
    """

    name: str
    of: tuple[str, str]
    middles: Two
    reaches: Two

    def __call__(self, columns: Mapping[str, Reals]) -> Reals:
        """Return it of records, from their columns."""
        one, other = (
            (columns[name] - middle) / reach
            for name, middle, reach in zip(self.of, self.middles, self.reaches, strict=True)
        )
        return np.clip(one * other, -1.0, 1.0)

    def __str__(self) -> str:
        one, other = (
            f"({name} - {middle:.4g}) / {reach:.4g}"
            for name, middle, reach in zip(self.of, self.middles, self.reaches, strict=True)
        )
        return f"{self.name}: ({one})²" if self.of[0] == self.of[1] else f"{self.name}: ({one}) · ({other})"

    def payload(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        return {"name": self.name, "of": [*self.of], "middles": [*self.middles], "reaches": [*self.reaches]}

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...]) -> Self:
        """Return it from JSON's types."""
        of, middles, reaches = form.words("of"), form.array("middles"), form.array("reaches")
        if len(of) != 2 or not set(of) <= set(names) or middles.shape != (2,) or reaches.shape != (2,):
            raise form.refuse("of")
        if (reaches <= 0).any():
            raise form.refuse("reaches")
        pairs = ((float(one), float(other)) for one, other in (middles, reaches))
        return cls(form.word("name", names), (of[0], of[1]), *pairs)
