"""Real panels: wide tables, a row for each unit."""

import csv
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.data import text
from benchmarks.designs import ledger_of


@dataclass(frozen=True)
class RealPanel:
    """Units, periods, values (units, periods), public bounds, the treated unit and its first treated period."""

    units: tuple[str, ...]
    times: tuple[int, ...]
    values: np.ndarray
    bounds: dpc.Bounded
    target: str
    start: int

    def of(self, target: str, loss: Any, start: int | None = None) -> dpc.Panel:
        """Return the panel with one unit as its target, and a ledger of exactly the loss."""
        place = self.units.index(target)
        return dpc.Panel.from_arrays(
            np.delete(self.values, place, axis=0), {target: self.values[place]}, start=start or self.start,
            bounds=self.bounds, ledger=ledger_of(loss, unit="unit"), times=self.times,
        )  # fmt: skip


def _long(name: str, unit: str, time: str, outcome: str, bounds: dpc.Bounded, target: str, start: int,
          skip: str = "") -> RealPanel:  # fmt: skip
    cells: dict[str, dict[int, float]] = {}
    for row in csv.DictReader(text("panels", name).splitlines()):
        if row[unit] != skip:
            cells.setdefault(row[unit], {})[int(float(row[time]))] = float(row[outcome] or "nan")
    times = tuple(sorted({moment for series in cells.values() for moment in series}))
    values = np.array([[series.get(moment, np.nan) for moment in times] for series in cells.values()])
    return RealPanel(tuple(cells), times, values, bounds, next(u for u in cells if target in u), start)


def california() -> RealPanel:
    """Cigarette packs per head and year, 39 states; Abadie, Diamond & Hainmueller (2010)."""
    return _long("prop99_adh39.csv", "state", "year", "cigsale", dpc.Bounded(40, 300), "California", 1989)


def basque(start: int = 1970) -> RealPanel:
    """GDP per head of Spanish regions; Abadie & Gardeazabal (2003)."""
    return _long("basque.csv", "regionname", "year", "gdpcap", dpc.Bounded(0, 15), "Basque", start, "Spain (Espana)")


def germany() -> RealPanel:
    """GDP per head of 17 countries; Abadie, Diamond & Hainmueller (2015)."""
    return _long("german_reunification.csv", "country", "year", "gdp", dpc.Bounded(0, 40_000), "West Germany", 1990)


def counties() -> RealPanel:
    """Unemployment rates of US counties, 2007 to 2018; the last three years are held out."""
    rows = list(csv.reader(text("panels", "usda_county_unemployment.csv.gz").splitlines()))
    head = next(place for place, row in enumerate(rows) if "Unemployment_rate_2007" in row)
    names = [(place, int(name[-4:])) for place, name in enumerate(rows[head])
             if re.fullmatch(r"Unemployment_rate_20\d\d", name)]  # fmt: skip
    units, values = [], []
    for row in rows[head + 1 :]:
        try:
            series = [float(row[place].replace(",", "")) for place, _ in names]
        except (ValueError, IndexError):
            continue
        if not row[0].strip().endswith("000"):  # states and the country
            units.append(row[0].strip())
            values.append(series)
    times = tuple(year for _, year in names)
    return RealPanel(tuple(units), times, np.array(values), dpc.Bounded(0, 30), units[0], 2016)
