"""Draw the picture of the page on synthetic controls: the path and the effect of a made-up panel, with real noise.

    python -m benchmarks draw_synthetic_control [FILE]

FILE is ``docs/img/synthetic_control.png`` by default.  The data are made up, from a fixed seed; the noise is fresh.
"""

from __future__ import annotations

import sys
from pathlib import Path

import dpcausal as dpc

TARGET = Path(__file__).resolve().parents[1] / "docs" / "img" / "synthetic_control.png"


def main(target: Path) -> int:
    """Write the picture and return 0."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = dpc.simulate.factor_panel(2000, before=20, after=6, effect=0.4, seed=4)
    loss = dpc.ApproxDP(1, 1e-6)
    panel = dpc.Panel.from_arrays(
        made.donors, {"state 0": made.target}, start=1989, times=list(range(1969, 1995)), bounds=made.bounds,
        ledger=dpc.Ledger.in_memory(loss, unit="unit"),
    )  # fmt: skip
    answer = dpc.synthetic_control(panel, loss=loss)
    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    answer.plot(left)
    answer.plot(right, what="gap")
    figure.savefig(target, dpi=110)
    print(answer.summary())
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET))
