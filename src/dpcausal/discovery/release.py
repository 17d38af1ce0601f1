"""What a discovery released, with its guarantee: asking it again costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from dpcausal.discovery.contrasts import NoisyContrasts
from dpcausal.discovery.moments import NoisyMoments
from dpcausal.discovery.tables import NoisyTable
from dpcausal.report import Guarantee

Statistic: TypeAlias = NoisyTable | NoisyContrasts | NoisyMoments


@dataclass(frozen=True, eq=False)
class Release:
    """Released statistics that graphs are found from.

    Attributes
    ----------
    statistic : NoisyTable, NoisyContrasts or NoisyMoments
        The noisy numbers.
    guarantee : Guarantee
        What they cost and whom they protect; whatever is computed from them costs nothing more.
    """

    statistic: Statistic
    guarantee: Guarantee

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.statistic.names

    @property
    def method(self) -> str:
        """``"table"``, ``"parities"`` or ``"moments"``."""
        return self.statistic.method

    @property
    def n(self) -> int:
        """Rows, public."""
        return self.statistic.n

    def to_dict(self) -> dict[str, Any]:
        """Return the released numbers and the guarantee as JSON's types."""
        return {**self.statistic.to_dict(), "guarantee": self.guarantee.to_dict()}
