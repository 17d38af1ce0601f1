"""``effect``: how much a treatment changes an outcome, under a privacy budget."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpcausal.core import validate as public
from dpcausal.core.run import Task, public_task
from dpcausal.data.table import Table
from dpcausal.effects.estimators import METHODS, method_of
from dpcausal.effects.question import EffectMethod, EffectQuestion
from dpcausal.effects.result import Effect
from dpcausal.privacy.loss import Loss


@public_task
def effect(
    table: Table,
    *,
    treatment: str,
    outcome: str,
    adjust: Iterable[str],
    loss: Loss,
    estimand: str = "ate",
    groups: str | None = None,
    cluster: str | None = None,
    treated: object = None,
    control: object = None,
    event: object = None,
    coverage: float = 0.95,
    method: str | EffectMethod = "auto",
    accept_large_epsilon: bool = False,
    refresh: bool = False,
    **misplaced: Any,
) -> Task[Effect]:
    """Release how much a treatment changes an outcome, with an interval that counts sampling and noise.

    Parameters
    ----------
    table : Table
        At least 20 rows; the table's ledger records the cost.  ``effect.release.effect(...)`` re-uses the release free.
    treatment : str
        A column of levels; ``Bounded(0, 1)`` counts as the levels 0 and 1.
    outcome : str
        A bounded column, or one of two levels.
    adjust : list of str
        The confounders; empty in a randomised trial.  What is not in the table cannot be adjusted for: see
        ``e_value`` and ``robustness_value``.
    loss : Loss
        The most that the call may cost; no default.
    estimand : str
        ``"ate"``, everybody's mean effect, or ``"att"``, that of the treated.
    groups : str, optional
        A column of levels; the effect is also estimated for each, and adjusted for it.
    cluster : str, optional
        A column of texts or whole numbers that names each row's clinic, village or household: the interval is then for
        independent clusters instead of rows, and ``clusters`` says about how many there are.  It need not be in the
        schema.  The loss still protects a row, or person.  For everybody's mean effect.
    treated, control : level, optional
        The levels to compare; of two levels the second is the treated one.
    event : level, optional
        Of an outcome of two levels the one whose frequency is compared; by default the last.
    coverage : float
        Of the intervals, from 0.5 to 0.999.
    method : str or method
        A short name, or an object of ``dpcausal.methods``.

        * ``"stratified"`` (``Stratified``): noisy sums by treatment and strata.  ``PureDP`` or ``ZCDP``.
        * ``"boosted-aipw"`` (``BoostedAipw``): a doubly robust score with boosted models, for numbers that are adjusted
          for and may act through curves, steps and pairs.  ``ApproxDP`` or ``ZCDP``.
        * ``"aipw"`` (``Aipw``): a doubly robust score from lines, for fewer rows or effects by group.  ``ApproxDP`` or
          ``ZCDP``.
        * ``"partially-linear"`` (``PartiallyLinear``): one slope from noisy moments, for many columns or few rows.
          ``ApproxDP`` or ``ZCDP``.
        * ``"auto"``: if a bounded column without ``cuts`` is adjusted for and the loss allows Gaussian noise, the first
          of ``"boosted-aipw"``, ``"aipw"`` and ``"partially-linear"`` that is not refused, else ``"stratified"``.
    accept_large_epsilon : bool
        Consent to ε above 20.
    refresh : bool
        Of a table with a name: run again at a new privacy cost instead of returning the cached result.

    Returns
    -------
    Effect
        With ``estimate``, ``interval`` (``None`` with the reason), ``by_group``, ``balance``, ``release``.

    Raises
    ------
    ParameterError, SchemaError, LossError, InfeasibleError
        From public arguments, before anything is spent; too few rows for the loss: it says what would be enough.
    BudgetExceededError
        The ledger refuses; nothing was spent or read.

    Notes
    -----
    *Guarantee*: the loss, under replace-one for every row, or person; claims corner-counts, ellipse-moments,
    group-layers.  That the effect is causal needs that ``adjust`` holds every common cause; privacy does not need it.
    *Source*: this library.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcausal as dpc
    >>> from dpcausal.privacy.noise import generator_from_seed
    >>> rng = generator_from_seed(1)
    >>> z = rng.integers(0, 2, 20_000)
    >>> a = (rng.random(20_000) < 0.3 + 0.4 * z).astype(int)
    >>> y = (rng.random(20_000) < 0.2 + 0.1 * a + 0.4 * z).astype(int)
    >>> schema = dpc.Schema({name: dpc.Levels([0, 1]) for name in "azy"})
    >>> table = dpc.Table({"a": a, "z": z, "y": y}, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    >>> found = dpc.effect(table, treatment="a", outcome="y", adjust=["z"], loss=dpc.PureDP(1))
    >>> abs(found.estimate - 0.1) < 0.05
    True
    """
    question = EffectQuestion.of(
        table, treatment, outcome, adjust, groups, estimand, treated, control, coverage, event, cluster
    )
    way = method_of(method, question, loss)
    public.reject_misplaced_options(misplaced, way, METHODS, effect)
    return question, way
