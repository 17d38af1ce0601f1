"""Claims about rows, searched over whole persons: each of two rows and an id, of which one record is made by hash.

A replaced person has other rows and, where ids are private, another id, and so another place among the others.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from dpcausal.audit.falsifier import STARTS, Falsification, falsify
from dpcausal.data.persons import Persons
from dpcausal.data.sources.origin import source_of
from dpcausal.mechanisms.blocks import block_order
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Unit
from dpcausal.statistics.neighbour_pairs import PairSums, pair_sums, signed_sensitivity, untied_sensitivity
from tests.registry.index import SENSITIVITIES
from tests.registry.rows import Rows, SensitivityRow


def records(persons: Rows, private: bool) -> tuple[Rows, Any]:
    """Return one row a person, of the first half of the columns or of the second, and the keys of their ids, which the
    last column makes."""
    m, columns = len(persons), persons.shape[1] // 2
    ids = np.array([f"{place} {end if private else ''}" for place, end in enumerate(persons[:, -1])], dtype=object)
    found = Persons.of(source_of({"id": np.repeat(ids, 2)}).collect(["id"]), "id", False)
    rows, kept = found.chosen(np.ones(2 * m, dtype=bool))
    assert kept.all() and found.n == m
    return persons[:, : 2 * columns].reshape(2 * m, columns)[rows], found.keys


CLAIMS = {
    "block-votes", "block-bits", "block-sum", "block-window", "conditional-kendall", "contingency-table",
    "column-histograms", "contrasts", "second-moments", "scale-histograms", "ellipse-moments", "corner-counts",
    "resample-product-sum", "permuted-root-hsic", "noisy-rank", "rank-scores", "neighbour-pairs", "untied-pairs",
    "stratum-covariance", "stratum-variance", "stratum-spread",
}  # fmt: skip
"""What answers for persons rest on."""


def keyed(rows: Rows, keys: Any) -> PairSums:
    """Return the sums over neighbours with ties broken by the keys of ids, as ``Neighbours`` does."""
    x, y, z, cells, kept = rows.T
    order = block_order(len(rows), generator_from_seed(1), keys)
    return pair_sums(x, y, z, np.rint(cells).astype(np.int64), order, kept > 0.25, (len(rows) - 3) // 29)


KEYED: dict[str, tuple[Any, Any]] = {
    "neighbour-pairs": (lambda rows, keys: keyed(rows, keys).signed,
                        lambda m: signed_sensitivity((m - 3) // 29, Unit.PERSON)),
    "untied-pairs": (lambda rows, keys: keyed(rows, keys).untied,
                     lambda m: untied_sensitivity((m - 3) // 29, Unit.PERSON)),
}  # fmt: skip
"""Claims with a bound of their own for persons of private ids: their random numbers go by the id, not by the place."""


def rows_of_persons() -> list[SensitivityRow]:
    """Return the rows of claims that answers for persons rest on; the keyed ones as for private ids, too."""
    found = [row for row in SENSITIVITIES if row.claim in CLAIMS]
    assert {row.claim for row in found} == CLAIMS
    return found + [replace(row, sensitivity=KEYED[row.claim][1]) for row in found if row.claim in KEYED]


def over_persons(row: SensitivityRow, private: bool, *, evaluations: int, seed: int = 3) -> Falsification:
    """Return the search of a row over whole persons."""
    domain = dict(row.domain)
    columns = domain.pop("columns", 2)
    low, high = (
        np.broadcast_to(np.asarray(domain.pop(end, usual), dtype=float), (columns,))
        for end, usual in (("low", 0.0), ("high", 1.0))
    )  # fmt: skip

    def twice(start: Any) -> Any:
        def of(rng: Any, m: int, lows: Any, highs: Any) -> Rows:
            rows = start(rng, m, lows[:columns], highs[:columns])
            return np.hstack([rows, rows, rng.random((m, 1))])

        return of

    levels = domain.pop("levels", None)

    def statistic(persons: Rows) -> Any:
        rows, keys = records(persons, private)
        rows = _rounded(rows, levels)
        by_id = row.sensitivity(max(row.sizes)).unit is Unit.PERSON
        return KEYED[row.claim][0](rows, keys) if by_id else row.statistic(rows)

    return falsify(
        statistic, lambda m: row.sensitivity(m).bound,
        sizes=row.sizes, columns=2 * columns + 1, low=[*low, *low, 0.0], high=[*high, *high, 1.0],
        norm=row.sensitivity(max(row.sizes)).norm, evaluations=evaluations, seed=seed,
        starts={name: twice(start) for name, start in domain.pop("starts", STARTS).items()}, **domain,
    )  # fmt: skip


def _rounded(rows: Rows, levels: Any) -> Rows:
    if levels is None:
        return rows
    grid = np.sort(np.asarray(levels, dtype=float))
    return grid[np.abs(rows[..., None] - grid).argmin(axis=-1)]
