"""Public data sets for examples: read from packages that carry them, nothing is downloaded."""

from pathlib import Path
from typing import Any

import numpy as np

from dpcausal.errors import MissingDependencyError


def load_rand() -> Any:
    """Return the RAND Health Insurance Experiment: 20,190 person-years of 5,912 persons, 1974 to 1982.

    Families were assigned to insurance plans at random within six sites.

    Returns
    -------
    pandas.DataFrame
        The raw columns of the file that statsmodels carries, and

        * ``zper``: the person,
        * ``visits``: visits to doctors in the year,
        * ``free``: ``"yes"`` where care was free, ``"no"`` where the family paid a share of the bill,
        * ``coinsurance``: log(1 + per cent of the bill that the family paid),
        * ``age``: in years, ``female``: 0 or 1, ``site``: 1 to 6, ``year``: of the experiment.

    Raises
    ------
    MissingDependencyError
        statsmodels and pandas are needed: ``pip install 'dpcausal[demo]'``.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> frame = dpc.datasets.load_rand()
    >>> len(frame), frame["zper"].nunique()
    (20190, 5912)
    """
    try:
        import pandas
        from statsmodels.datasets import randhie
    except ImportError:
        raise MissingDependencyError("statsmodels", "demo") from None
    # The loader of statsmodels drops the persons; its raw file has them.
    raw = pandas.read_csv(Path(randhie.__file__).parent / "src" / "randhie.csv")
    frame = raw.rename(columns={"mdvis": "visits", "xage": "age"})
    return frame.assign(coinsurance=np.log1p(raw["coins"].to_numpy()), free=np.where(raw["coins"] == 0, "yes", "no"))
