"""``synthetic_control``: the counterfactual of a treated unit, from control units, with differential privacy."""

from __future__ import annotations

from typing import Any

from dpcausal.core import validate as public
from dpcausal.core.run import Task, public_task
from dpcausal.data.panels.panel import Panel
from dpcausal.privacy.loss import Loss
from dpcausal.synthetic_control.method import SyntheticMethod
from dpcausal.synthetic_control.methods import METHODS, choose_method
from dpcausal.synthetic_control.question import OneTreated, Treated
from dpcausal.synthetic_control.result import SyntheticControl


@public_task
def synthetic_control(
    panel: Panel,
    *,
    loss: Loss,
    target: Any = None,
    start: Any = None,
    method: str | SyntheticMethod = "auto",
    coverage: float = 0.9,
    inference: bool = True,
    force: bool = False,
    accept_unproven: bool = False,
    accept_large_epsilon: bool = False,
    refresh: bool = False,
    **misplaced: Any,
) -> Task[SyntheticControl]:
    """Release what a target's outcome would have been without its treatment.

    Parameters
    ----------
    panel : Panel
        Its ledger pays.
    loss : Loss
        The most that the call may cost; no default.  ``PureDP``, ``ApproxDP`` or ``ZCDP``; with ``NoPrivacy()`` and
        a ledger without privacy the exact answer.
    target : name, optional
        Which of the panel's targets; needed if it has several.
    start : time, optional
        A placebo in time: what the answer would have been had the treatment begun at this earlier time, from the
        periods before it truly did.  Paid like any question; ``SyntheticControl.in_time`` is free where it answers.
    method : str or method
        A short name, or an object of ``dpcausal.methods`` with its options, as ``Matched(cut=2.0)``.  ``"auto"``: by n,
        T and the budget ``"factor"`` (many donors; ZCDP or ApproxDP) or ``"matched"``; ``"simplex"`` without
        privacy.  The papers' systems are objects of ``dpcausal.papers``.
    coverage : float
        Nominal coverage of the interval, 0.5 to 0.9999.
    inference : bool
        False: neither interval nor placebo test, the whole budget for the path.
    force : bool
        Run although public numbers show that the donors would add little but noise.
    accept_unproven, accept_large_epsilon : bool
        Consent to a method without a proof; to ε above 20.
    refresh : bool
        Of a table with a name: run again at a new privacy cost instead of returning the cached result.

    Returns
    -------
    SyntheticControl
        With ``counterfactual``, ``effect``, ``att``, ``interval``, ``pvalue``, ``donor_free_forecast``.

    Raises
    ------
    ParameterError, LossError, UnprovenError
        From public arguments, before anything is spent.
    InfeasibleError
        Public numbers alone show that the answer would be noise; ``force=True`` runs it.
    BudgetExceededError
        The ledger refuses; nothing was spent or read.
    LedgerError
        The same, because an earlier call on this ledger was about a panel with other targets.

    Notes
    -----
    *Guarantee*: the loss, when one donor's whole series is replaced (claims matched-sums, or row-radius, clipped-sum
    and direction-products; mixing-scores, ratio-count).  The target's own series is not protected, so the first call
    settles for a ledger which units are targets: tried with each unit in turn, a panel would publish every donor.
    *Source*: the task and the perturbed ridge are of Rho, Cummings & Misra (2023); ``matched`` and ``factor`` are this
    library's.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> made = dpc.simulate.factor_panel(1000, effect=0.3, seed=1)
    >>> panel = dpc.Panel.from_arrays(made.donors, made.target, start=made.start, bounds=made.bounds,
    ...                               ledger=dpc.Ledger.in_memory(dpc.PureDP(1), unit="unit"))
    >>> with dpc.simulated_noise(4):
    ...     answer = dpc.synthetic_control(panel, loss=dpc.PureDP(1))
    >>> answer.method, answer.interval[0] < 0.3 < answer.interval[1], answer.guarantee.loss
    ('matched', True, PureDP(1))
    """
    public.reject_misplaced_options(misplaced, method, METHODS, synthetic_control)
    question = OneTreated.of(panel, target, coverage, inference, force, start)
    return question, choose_method(method, question.panel, loss)


@public_task
def synthetic_controls(
    panel: Panel,
    *,
    loss: Loss,
    start: Any = None,
    method: str | SyntheticMethod = "auto",
    coverage: float = 0.9,
    inference: bool = True,
    force: bool = False,
    accept_large_epsilon: bool = False,
    refresh: bool = False,
    **misplaced: Any,
) -> Task[tuple[SyntheticControl, ...]]:
    """Release a synthetic control for each of the panel's targets, whenever each was treated, under one budget.

    The factor model is released once and serves all; placebos, and every release of the other methods, share the
    budget equally.  ``average_effect`` puts the answers together.  Parameters, errors and guarantee as for
    ``synthetic_control``; the guarantee of each result is that of the whole call.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcausal as dpc
    >>> made = dpc.simulate.factor_panel(2000, seed=1)
    >>> targets = {"early": made.target, "late": made.target[::1]}
    >>> panel = dpc.Panel.from_arrays(made.donors, targets, start={"early": 10, "late": 11}, bounds=made.bounds,
    ...                               ledger=dpc.Ledger.in_memory(dpc.PureDP(2), unit="unit"))
    >>> with dpc.simulated_noise(4):
    ...     answers = dpc.synthetic_controls(panel, loss=dpc.PureDP(2))
    >>> [(answer.target, len(answer.effect)) for answer in answers]
    [('early', 3), ('late', 2)]
    """
    public.reject_misplaced_options(misplaced, method, METHODS, synthetic_controls)
    question = Treated.of(panel, None, coverage, inference, force, start)
    way = choose_method(method, question.panel, loss)
    return question, way
