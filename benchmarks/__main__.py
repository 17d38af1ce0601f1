"""Run benchmarks, each in a process of its own.

    python -m benchmarks                     all but audits and pictures, one after the other
    python -m benchmarks efficiency          one; what follows the name is passed on to it
    python -m benchmarks --list              what there is
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCHMARKS = (
    "verdicts", "verdict_attacks",
    "house", "validation", "textbook", "plans",
    "efficiency", "iqr_release", "direction_speed", "direction_all", "hsic_speed", "ledger_speed",
    "engines", "engines_order", "engines_spark", "igci",
    "paper1_tables", "training_privacy",
    "effects", "effects_readings", "effects_literature", "effects_real", "effects_shapes", "effects_tails",
    "effects_fresh", "effects_slope", "effects_bends", "effects_bends_boosted", "effects_blocks",
    "effects_rare", "effects_parts", "effects_coin", "shown",
    "effects_did", "effects_cutoff", "rows",
    "discovery", "discovery_level", "discovery_scale", "discovery_wide", "discovery_mixed", "discovery_support",
    "discovery_fresh",
    "independence", "independence_level", "independence_peers", "sample_cost", "independence_bounds",
    "independence_speed", "independence_rows", "independence_data", "independence_figures", "independence_unseen",
    "block_floor", "pair_floor",
    "synthetic_control",
    "synthetic_control_intervals", "synthetic_control_fresh", "synthetic_control_real",
    "synthetic_control_speed", "paper4_figures",
)  # fmt: skip
AUDITS = tuple(sorted(path.stem for path in HERE.glob("audit_*.py")))
"""Longer runs, of guarantees rather than of speed: by name only."""
PICTURES = tuple(sorted(path.stem for path in HERE.glob("draw_*.py")))
"""What draws a picture of the docs: by name only."""


def about(name: str) -> str:
    """Return the first line of a benchmark's docstring."""
    text = ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8"))) or ""
    return text.split("\n", 1)[0]


def run(name: str, arguments: list[str]) -> int:
    """Run one benchmark in a fresh process and return its exit code."""
    print(f"== {name}: {about(name)}\n", flush=True)
    code = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *arguments], cwd=HERE.parent, check=False)
    print(flush=True)
    return code.returncode


def main(arguments: list[str]) -> int:
    """Return 0 if every benchmark that ran met its targets."""
    names = BENCHMARKS + AUDITS + PICTURES
    if arguments and arguments[0] in names:
        return run(arguments[0], arguments[1:])
    if arguments:
        print("\n".join(f"{name:<18}{about(name)}" for name in names))
        return 0 if arguments == ["--list"] else 2
    return max(run(name, []) for name in BENCHMARKS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
