"""The demonstration: a question with a known answer, on real health data that comes with statsmodels.

The RAND Health Insurance Experiment assigned families to insurance plans at random, so the share of the bill that
they paid themselves can have caused their number of doctor visits, and not the other way round.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from dpcausal.data.schema import Bounded, Schema
from dpcausal.data.table import Table
from dpcausal.direction.ask import direction
from dpcausal.direction.result import Direction
from dpcausal.errors import MissingDependencyError
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import Amount, PureDP

SCHEMA = Schema(
    {
        "coinsurance": Bounded(0, math.log(101)),  # log(1 + per cent of the bill), 0 to 100 per cent
        "visits": Bounded(0, 52),  # outpatient visits in a year; more than one a week counts as 52
    }
)
"""Public bounds, from what the columns mean and not from their values."""

BUDGET = PureDP(2)


def person_years() -> Any:
    """Return the experiment's 20,190 person-years of 5,912 persons as a pandas frame, with ``coinsurance``, ``visits``.

    From the raw file that statsmodels carries: its own loader drops the persons, ``zper``.  Other columns are as there.
    """
    try:
        import pandas
        from statsmodels.datasets import randhie
    except ImportError:
        raise MissingDependencyError("statsmodels", "demo") from None
    raw = pandas.read_csv(Path(randhie.__file__).parent / "src" / "randhie.csv")
    return raw.assign(coinsurance=np.log1p(raw["coins"].to_numpy())).rename(columns={"mdvis": "visits"})


def run(epsilon: Amount) -> tuple[Direction, Ledger]:
    """Ask which of coinsurance and visits is the cause, protecting every person, from a budget of ε = 2.

    Parameters
    ----------
    epsilon : number
        ε of this answer, at most 2.

    Returns
    -------
    Direction, Ledger
    """
    ledger = Ledger.in_memory(BUDGET)
    table = Table(person_years(), SCHEMA, ledger, person="zper")
    return direction(table, "coinsurance", "visits", loss=PureDP(epsilon)), ledger
