"""``ci_test``: is x still linked to y once z is known, under a privacy budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from dpcausal.data.schema import Bounded
from dpcausal.data.table import Table
from dpcausal.independence.columns import rows_of
from dpcausal.independence.model_x import ModelX
from dpcausal.independence.plan import checked
from dpcausal.independence.residuals import described
from dpcausal.independence.result import Independence
from dpcausal.independence.route import Plan, Released
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import Loss, NoPrivacy
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.noise import PublicGenerator, public_generator
from dpcausal.privacy.unheard import unheard
from dpcausal.report import Guarantee

PUBLIC = (
    "the number of rows", "column names, bounds and levels", "the order of the rows", "all arguments", "the seed",
)  # fmt: skip

Method = Literal[
    "gcm", "gcm-weighted", "gcm-scalar", "gcm-smooth", "gcm-published", "crt", "crt-decision", "crt-published", "cpt",
    "kendall", "spearman", "test-of-tests", "hsic",
]  # fmt: skip


def ci_test(
    table: Table,
    x: str | Sequence[str],
    y: str | Sequence[str],
    *,
    given: Sequence[str],
    loss: Loss,
    method: Method = "gcm",
    alpha: float = 0.05,
    model_x: ModelX | Literal["fit"] | None = None,
    blocks: int | None = None,
    regression: Any = None,
    resamples: int | None = None,
    penalty: float | None = None,
    width: float | None = None,
    calibration: Literal["corrected", "published"] | None = None,
    strata: int | None = None,
    workers: int | None = None,
    accept_unproven: bool = False,
    accept_large_epsilon: bool = False,
) -> Independence:
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
    method : str
        ``"gcm"`` (the default: covariance of residuals, in blocks), ``"gcm-weighted"`` (power where the covariance
        changes its sign with z), ``"crt"``, ``"cpt"`` (resampling and permuting x by a model of x given z, in blocks),
        ``"crt-decision"``, ``"hsic"`` (a decision only), and baselines: ``"gcm-scalar"``, ``"gcm-smooth"``,
        ``"gcm-published"``, ``"crt-published"``, ``"kendall"``, ``"spearman"``, ``"test-of-tests"``.
    alpha : float
        Level, in (0, 1).
    model_x : ModelX or "fit"
        For the crt and cpt methods: the law of x given z.  ``"fit"`` learns a normal law inside each block of
        ``crt``; the level is then approximate.
    blocks : int, optional
        Public number of blocks; by default a public rule of n and ε.
    regression : str or regressor
        Inside blocks: ``"additive"`` (default) or ``"isotropic"`` kernel ridge, or a scikit-learn regressor.
    resamples : int, optional
        Permuted or resampled copies.
    penalty, width : float, optional
        λ and the kernel's width of the global forms, in units of half the public range of a column.
    calibration : str, optional
        ``"published"``: the constants of the paper, for the published forms and the rank tests; that of ``"kendall"``
        is not valid and needs ``accept_unproven=True``.
    strata : int, optional
        For the rank tests: bins of each given number.
    workers : int, optional
        Threads over the blocks, with the library's own regressions.
    accept_unproven, accept_large_epsilon : bool
        Consent to a published variant without proof; to ε above 20.

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
    *Guarantee*: ε-DP under replace-one for every row (``"gcm-smooth"``: (ε, δ)-DP); the claims are in the result.
    The level holds where the regressions learn the conditional means, for ``crt`` where the model of x is right.
    *Source*: Shah & Peters (2020), Candès et al. (2018), Kalemaj, Kasiviswanathan & Ramdas (2024); the blocks, their
    ranks and their law are this library's.

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
    plan = checked(
        table, x, y, given, loss, method=method, alpha=alpha, accept_large_epsilon=accept_large_epsilon,
        model_x=model_x, blocks=blocks, regression=regression, resamples=resamples, penalty=penalty, width=width,
        calibration=calibration, strata=strata, workers=workers, accept_unproven=accept_unproven,
    )  # fmt: skip
    allotment = table.ledger.allot(
        plan.spent, task="ci_test", relation=Relation.REPLACE_ONE, detail=detail(plan), unproven=bool(plan.unproven)
    )
    return answer(table, plan, allotment)


def detail(plan: Plan) -> dict[str, Any]:
    """Return what the ledger's entry says of a plan: public arguments."""
    return {
        "columns": list(plan.names),
        "x": list(plan.x),
        "y": list(plan.y),
        "given": list(plan.given),
        "method": plan.method,
        "alpha": plan.alpha,
        "blocks": plan.blocks,
        "regression": described(plan.regression),
        "resamples": plan.resamples,
        "penalty": plan.penalty,
        "width": plan.width,
        "strata": plan.strata,
        "calibration": plan.calibration,
    }


def answer(table: Table, plan: Plan, allotment: Allotment) -> Independence:
    """Read the columns, release within an allotment, and return the result."""
    generator, seed = public_generator()
    released = run(table, plan, generator, allotment)
    rejected = released.rejected if released.pvalue is None else released.pvalue <= plan.alpha
    caveats = tuple(caveat for caveat in (plan.note, *plan.caveats) if caveat)
    return Independence(
        statistic=released.statistic,
        pvalue=released.pvalue,
        decision="dependent" if rejected else "not shown",
        alpha=plan.alpha,
        x=plan.x,
        y=plan.y,
        given=plan.given,
        method=plan.method,
        n=table.n,
        blocks=None if isinstance(plan.spent, NoPrivacy) else plan.blocks,
        regression=described(plan.regression),
        resamples=plan.resamples,
        penalty=plan.penalty,
        width=plan.width,
        strata=plan.strata if any(isinstance(plan.schema[name], Bounded) for name in plan.given) else None,
        calibration=plan.calibration,
        seed=seed,
        guarantee=Guarantee.of(
            allotment,
            proofs=() if isinstance(plan.spent, NoPrivacy) or plan.unproven else plan.route.proofs(plan),
            caveats=caveats,
            public=PUBLIC,
        ),
    )


def run(table: Table, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    """Read the columns and release: from here on nothing may fail or warn for a reason that lies in a value."""
    release = plan.route.exact if isinstance(plan.spent, NoPrivacy) and plan.route.exact else plan.route.release

    def released() -> Released:
        rows = rows_of(table.columns(plan.names), plan.schema, plan.x, plan.y, plan.given)
        return release(rows, plan, generator, allotment)

    return unheard(released)
