"""``ci_test``: is x still linked to y once z is known, under a privacy budget."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from dpcausal.asking import public
from dpcausal.asking.ask import ask, asks
from dpcausal.data.table import Table
from dpcausal.independence.methods import METHODS
from dpcausal.independence.question import Hypothesis, IndependenceTest
from dpcausal.independence.result import Independence
from dpcausal.privacy.loss import Loss


@asks
def ci_test(
    table: Table,
    x: str | Sequence[str],
    y: str | Sequence[str],
    *,
    given: Sequence[str],
    loss: Loss,
    method: str | IndependenceTest[Any] = "auto",
    alpha: float = 0.05,
    accept_unproven: bool = False,
    accept_large_epsilon: bool = False,
    again: bool = False,
    **misplaced: Any,
) -> partial[Independence]:
    """Test whether x is independent of y given z.

    Parameters
    ----------
    table : Table
        The table's ledger pays.
    x, y : str or list of str
        One column each, or several: then the largest of all covariances counts.  ``Bounded`` or ``Levels``.
    given : list of str
        The columns z; may be empty.
    loss : Loss
        The most that the call may cost; no default.  ``PureDP(ε)``; of an ``ApproxDP(ε, δ)`` the pure methods spend
        only ε.  ``NoPrivacy()`` with a ledger without privacy: the same test of all rows.
    method : str or method
        A short name, or an object of ``dpcausal.methods`` with its options, as ``Gcm(blocks=40)``.  ``"auto"``
        chooses by schema, n and ε, and the result says which and why: ``"neighbours"`` given one number,
        ``"strata-covariance"``, ``"counts"`` or ``"kendall"`` given levels only, ``"gcm"``, regressions in blocks,
        otherwise.  ``"gcm-weighted"`` has power where the covariance changes its sign with z; ``"crt"`` and ``"cpt"``
        resample or permute x by a law of x given z that you know; ``"crt-decision"`` and ``"hsic"`` release a decision
        only.  The papers' systems are objects of ``dpcausal.papers``.
    alpha : float
        Level, in (0, 1).
    accept_unproven, accept_large_epsilon : bool
        Consent to a method without a proof; to ε above 20.
    again : bool
        Of a table with a name: pay anew for what was asked before, instead of getting its kept answer free.

    Returns
    -------
    Independence
        With ``statistic``, ``pvalue``, ``decision``, ``alpha`` and ``guarantee``.

    Raises
    ------
    ParameterError, SchemaError, LossError, UnprovenError
        From public arguments, before anything is spent.
    BudgetExceededError
        The ledger refuses; nothing was spent or read.

    Notes
    -----
    *Guarantee*: ε-DP under replace-one for every row; the claims are in the result.
    The level holds where x and y have one law each within a window of neighbours or a stratum, for ``gcm`` where its
    regressions learn the conditional means, for ``crt`` where the model of x is right.
    *Source*: Shah & Peters (2020), Candès et al. (2018), Kalemaj, Kasiviswanathan & Ramdas (2024); neighbours, strata,
    blocks and their laws are this library's.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> data = dpc.simulate.smooth_design(3000, effect=0.5, seed=1)
    >>> table = dpc.Table(data.columns, data.schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    >>> with dpc.simulated_noise(2):
    ...     t = dpc.ci_test(table, "x", "y", given=["z1"], loss=dpc.PureDP(1))
    >>> t.decision, t.guarantee.loss, t.guarantee.private
    ('dependent', PureDP(1), False)
    """
    public.refuse_options(misplaced, method, METHODS, ci_test)
    return partial(
        ask, Hypothesis.of(table, x, y, given, alpha), public.chosen(method, IndependenceTest, METHODS), loss,
        accept_unproven=accept_unproven, accept_large_epsilon=accept_large_epsilon, again=again,
    )  # fmt: skip
