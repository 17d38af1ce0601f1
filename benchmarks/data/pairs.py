"""Cause-effect pairs whose truth is known."""

import csv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.data import found, text
from dpcausal.direction.scores.anm import Column, Interval


@dataclass(frozen=True)
class Pair:
    """Two columns, of which ``cause`` is the cause of ``effect``, and the ranges that count as public.

    ``weight`` is below 1 where several pairs of a collection come from one source.
    """

    cause: Column
    effect: Column
    range_cause: Interval
    range_effect: Interval
    weight: float = 1.0
    name: str = ""


def _pair(cause: Column, effect: Column, weight: float, name: str) -> Pair:
    """Return a real pair; the smallest and largest value of the sample count as public bounds, as in the papers."""
    ranges = (float(cause.min()), float(cause.max())), (float(effect.min()), float(effect.max()))
    return Pair(cause, effect, *ranges, weight, name)


def _columns(archive: zipfile.ZipFile, name: str) -> tuple[Column, Column]:
    with archive.open(name) as lines:
        values = np.loadtxt(lines)
    return values[:, 0].copy(), values[:, 1].copy()


def tuebingen(count: int) -> Iterator[Pair]:
    """Yield the largest pairs of the Tübingen collection that have one cause and one effect column.

    *Source*: Mooij et al. (2016), JMLR 17(32).
    """
    with zipfile.ZipFile(found("tuebingen", "tuebingen_pairs.zip")) as archive:
        lines = text("tuebingen", "pairs_meta.csv").splitlines()
        known = [row for row in csv.DictReader(lines) if row["ncol"] == "2"]
        known.sort(key=lambda row: -int(row["n"]))
        for row in known[:count]:
            first, second = _columns(archive, f"{row['pair']}.txt")
            pair = (first, second) if row["direction_from_meta"] == "->" else (second, first)
            yield _pair(*pair, float(row["weight"]), row["pair"])


def simulated() -> Iterator[Pair]:
    """Yield the 100 pairs "SIM", n = 1000.

    *Source*: Mooij et al. (2016), JMLR 17(32), section 5.2.
    """
    with zipfile.ZipFile(found("simulated_pairs", "SIM.zip")) as archive:
        for line in archive.read("SIM/pairmeta.txt").decode().splitlines():
            if not line.strip():
                continue
            number, cause = line.split()[:2]
            first, second = _columns(archive, f"SIM/pair{number}.txt")
            pair = (first, second) if cause == "1" else (second, first)
            yield _pair(*pair, 1.0, f"SIM {number}")
