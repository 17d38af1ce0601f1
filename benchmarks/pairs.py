"""Cause-effect pairs whose truth is known, read from the folder of real data beside the repository.

The folder is ``../shared/data`` relative to the repository, or ``$DPCAUSAL_DATA``; it is not part of the project.
"""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpcausal.direction.scores.anm import Column, Interval

DATA = Path(os.environ.get("DPCAUSAL_DATA", Path(__file__).resolve().parents[1] / ".." / "shared" / "data"))


class DataAbsentError(Exception):
    """The folder of real data is not there."""


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


def _zip(name: str) -> zipfile.ZipFile:
    path = DATA / name
    if not path.is_file():
        raise DataAbsentError(f"{path} is absent: set DPCAUSAL_DATA to the folder of real data")
    return zipfile.ZipFile(path)


def _columns(archive: zipfile.ZipFile, name: str) -> tuple[Column, Column]:
    with archive.open(name) as lines:
        values = np.loadtxt(lines)
    return values[:, 0].copy(), values[:, 1].copy()


def tuebingen(count: int) -> Iterator[Pair]:
    """Yield the largest pairs of the Tübingen collection that have one cause and one effect column.

    *Source*: Mooij et al. (2016), JMLR 17(32).
    """
    with _zip("tuebingen/tuebingen_pairs.zip") as archive:
        with (DATA / "tuebingen" / "pairs_meta.csv").open(newline="") as lines:
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
    with _zip("simulated_pairs/SIM.zip") as archive:
        for line in archive.read("SIM/pairmeta.txt").decode().splitlines():
            if not line.strip():
                continue
            number, cause = line.split()[:2]
            first, second = _columns(archive, f"SIM/pair{number}.txt")
            pair = (first, second) if cause == "1" else (second, first)
            yield _pair(*pair, 1.0, f"SIM {number}")
