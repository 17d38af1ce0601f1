"""What ran: frozen records of releases, apart from what they cost."""

from __future__ import annotations

from dataclasses import dataclass

from dpcausal.privacy.loss import ZCDP, Loss


@dataclass(frozen=True)
class Event:
    """One release: what it claims to cost, and how its noise was set; all public and fixed before the draw.

    ``label`` is the query's public name, ``scale`` 0 for an exact answer; ``zcdp`` a guarantee that the same release
    also has and that is better than the ε²/2 of its ε.
    """

    mechanism: str
    label: str
    loss: Loss
    sensitivity: float
    norm: str
    scale: float
    proof: str
    zcdp: ZCDP | None = None

    def to_dict(self) -> dict[str, str | float | None]:
        """Return the record as plain values."""
        return {
            "mechanism": self.mechanism,
            "label": self.label,
            "loss": str(self.loss),
            "zcdp": None if self.zcdp is None else str(self.zcdp),
            "sensitivity": self.sensitivity,
            "norm": self.norm,
            "scale": self.scale,
            "proof": self.proof,
        }
