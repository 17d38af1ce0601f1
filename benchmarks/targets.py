"""The last lines of a benchmark: which of its targets it met."""

from __future__ import annotations


def report(targets: dict[str, bool]) -> int:
    """Print a line for each target and return the exit code: 0 if all are met."""
    print()
    for target, met in targets.items():
        print(f"{'met   ' if met else 'MISSED'}  {target}")
    return 0 if all(targets.values()) else 1
