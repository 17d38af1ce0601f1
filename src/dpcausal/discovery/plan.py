"""What a discovery will cost and how it will run: fixed from public arguments before anything is spent or read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dpcausal.data.schema import Bounded, Levels
from dpcausal.data.table import Table
from dpcausal.data.tabulate import sizes_of
from dpcausal.discovery import contrasts, moments, reconciled
from dpcausal.discovery.foresight import cut_note, pair_noise, too_small
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.reconciled import share_of_test
from dpcausal.discovery.search import LATER_ALPHA, Settings, default_settings
from dpcausal.errors import InfeasibleError, LossError, ParameterError, SchemaError
from dpcausal.mechanisms.smooth_sensitivity import smoothness
from dpcausal.privacy.call import check_consent, check_large, pure_part
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, PureDP, affordable_zcdp

STATISTICS = ("table", "parities", "moments")
SYSTEMS = ("priv-pc", "svt-pc", "em-pc", "gaussian-pc", "reconciled")
METHODS = ("auto", *STATISTICS, *SYSTEMS, "ci-test")

MOST_AUTO_CELLS = 1024
"""Cells up to which ``auto`` takes one noisy table."""

MOST_CELLS = 2**22
"""Cells of the largest table that is released at all."""

MOST_COLUMNS = 200
LARGEST_ORDER = 8
LEAST_EPSILON = Fraction(1, 10**9)
LARGEST_BOUND, LEAST_WIDTH = 1e100, 1e-100


@dataclass(frozen=True)
class Plan:
    """A call after its public arguments were checked.

    Attributes
    ----------
    names : tuple of str
        Columns of the graph.
    sizes : tuple of int
        Codes of each column.
    method, calibration : str
    spent : Loss
        What the ledger is asked for.
    gaussian : ZCDP or NoPrivacy or None
        What Gaussian releases may use of it.
    settings : Settings
    caveats : tuple of str
        What was changed of what was asked, and what public numbers foretell, in words.
    unproven : bool
    test : str
        The method of ``ci_test`` for ``"ci-test"``, ``"g"`` or ``"chi2"`` for ``"reconciled"``, empty for others.
    test_proofs : tuple of str
        Its claims.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    method: str
    calibration: str
    spent: Loss
    gaussian: ZCDP | NoPrivacy | None
    settings: Settings
    caveats: tuple[str, ...]
    unproven: bool
    test: str
    test_proofs: tuple[str, ...]

    @property
    def proofs(self) -> tuple[str, ...]:
        """The claims that the release rests on."""
        if isinstance(self.spent, NoPrivacy) or self.unproven:
            return ()
        if self.method == "table":
            return ("contingency-table", "gaussian" if self.gaussian is not None else "geometric")
        by_method = {
            "parities": contrasts.PROOFS,
            "moments": moments.PROOFS,
            "priv-pc": ("conditional-kendall-steps", "sparse-vector", "geometric"),
            "svt-pc": ("conditional-kendall-steps", "sparse-vector"),
            "em-pc": ("conditional-kendall-steps", "noisy-max"),
            "gaussian-pc": ("conditional-kendall-steps", "gaussian"),
            "reconciled": reconciled.PROOFS,
        }
        return by_method.get(self.method, self.test_proofs)


def checked(
    table: Table, loss: Loss | None, method: str, columns: Iterable[str] | None, knowledge: Knowledge | None,
    alpha: float | None, max_order: int | None, search: str, test: str | None, calibration: str, accept_unproven: bool,
    accept_large_epsilon: bool,
) -> Plan:  # fmt: skip
    """Check every public argument and return the plan; nothing is read or spent.  Arguments as in ``discover``."""
    if loss is None:
        raise LossError("say what the call may cost: loss=PureDP(...), ApproxDP(...) or ZCDP(...); there is no default")
    check_large(loss, accept_large_epsilon)
    names = _names(table, columns)
    if table.n < 2:
        raise ParameterError(f"a discovery needs at least 2 rows, the table has {table.n}")
    _one_of("method", method, METHODS)
    _one_of("calibration", calibration, ("corrected", "published"))
    for name in names:
        _check_column(table, name)
    sizes = sizes_of(table, names)
    chosen = _chosen(table, method, names, sizes, loss)
    if calibration == "published" and chosen not in SYSTEMS:
        raise ParameterError(f"calibration='published' goes with one of {', '.join(SYSTEMS)}")
    _check_fits(table, chosen, names, sizes)
    spent, gaussian, note = _paid(chosen, loss, calibration)
    unproven = calibration == "published" and not isinstance(loss, NoPrivacy)
    if unproven:
        check_consent(accept_unproven, chosen)
    if calibration == "published" and max_order is None:
        max_order = min(len(names) - 2, LARGEST_ORDER)  # as far as the paper's own search goes
    settings = settings_of(chosen, names, knowledge, alpha, max_order, search)
    named = _test_of(chosen, test)
    proofs = _proofs_of_test(table, named, names, spent, settings) if chosen == "ci-test" else ()
    if chosen == "reconciled" and calibration == "corrected" and isinstance(spent, ApproxDP):
        first = share_of_test(spent, 0, settings.max_order, len(names) * (len(names) - 1) // 2)
        if smoothness(first).beta < reconciled.LEAST_BETA:
            raise LossError(f"{loss} is too little for the medians of blocks: each test would have {first}")
    noise = None if calibration == "published" else pair_noise(chosen, sizes, table.n, spent, gaussian, settings)
    small = "" if noise is None else too_small(chosen, sizes, table.n, noise, settings.alpha)
    cut = "" if chosen in ("moments", "ci-test") else cut_note(table, names)
    caveats = tuple(words for words in (note, cut, small) if words)
    return Plan(names, sizes, chosen, calibration, spent, gaussian, settings, caveats, unproven, named, proofs)


def settings_of(
    method: str, names: tuple[str, ...], knowledge: Knowledge | None, alpha: float | None, max_order: int | None,
    search: str,
) -> Settings:  # fmt: skip
    """Check how released statistics are to be searched."""
    known = Knowledge() if knowledge is None else knowledge
    if not isinstance(known, Knowledge):
        raise ParameterError("knowledge must be a dpcausal Knowledge")
    known.check_names(names)
    _one_of("search", search, ("auto", "score", "pc"))
    default_search, default_alpha, default_order = default_settings(method, len(names))
    if search == "score" and default_search != "score":
        raise ParameterError("search='score' needs method='table' and at most 14 columns")
    chosen = default_search if search == "auto" else search
    if chosen == "pc" and default_search == "score":
        default_alpha, default_order = 0.01, 3
    level = default_alpha if alpha is None else alpha
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        raise ParameterError("alpha must be a number above 0 and below 1")
    order = default_order if max_order is None else max_order
    if isinstance(order, bool) or not isinstance(order, int) or not 0 <= order <= LARGEST_ORDER:
        raise ParameterError(f"max_order must be a whole number from 0 to {LARGEST_ORDER}")
    later = LATER_ALPHA if method == "parities" and alpha is None else None
    return Settings(chosen, float(level), order, known, later)


def _test_of(method: str, test: str | None) -> str:
    """Resolve the test inside a method."""
    if method == "reconciled":
        chosen = "g" if test is None else test
        _one_of("test", chosen, ("g", "chi2"))
        return chosen
    if test is not None and method != "ci-test":
        raise ParameterError("test goes with method='ci-test' or 'reconciled'")
    return ("gcm" if test is None else test) if method == "ci-test" else ""


def _proofs_of_test(
    table: Table, test: str, names: tuple[str, ...], spent: Loss, settings: Settings
) -> tuple[str, ...]:
    """Rehearse the first test with a pair's share of the loss, so that what cannot run is refused before the spend."""
    from dpcausal.discovery.by_ci_tests import planned

    if isinstance(spent, NoPrivacy):
        planned(table, test, (names[0], names[1], ()), spent, settings.alpha)
        return ()
    if not isinstance(spent, PureDP):
        raise LossError("method 'ci-test' is paid for in PureDP")
    pairs = len(names) * (len(names) - 1) // 2
    part, whole = contrasts.shares_of(settings.max_order)[0]
    each = PureDP(spent.exact_epsilon * part / whole).part(Fraction(1, pairs))
    plan = planned(table, test, (names[0], names[1], ()), each, settings.alpha)
    if not isinstance(plan.spent, PureDP):
        raise LossError(f"test {test!r} is not paid for in PureDP")
    return plan.claims


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if not (isinstance(value, str) and value in allowed):
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}")


def _names(table: Table, columns: Iterable[str] | None) -> tuple[str, ...]:
    if columns is None:
        names = table.schema.names
    elif isinstance(columns, str) or not isinstance(columns, Iterable):
        raise ParameterError("columns must be a list of column names")
    else:
        names = tuple(columns)
        for name in names:
            table.schema.column(name)
    if len(set(names)) != len(names) or not 2 <= len(names) <= MOST_COLUMNS:
        raise ParameterError(f"a discovery needs 2 to {MOST_COLUMNS} different columns, got {len(names)}")
    return names


def _check_column(table: Table, name: str) -> None:
    one = table.schema.column(name)
    wide = isinstance(one, Bounded) and (max(-one.lower, one.upper) > LARGEST_BOUND or one.width < LEAST_WIDTH)
    if wide:
        raise SchemaError(
            f"column {name!r}: a discovery needs bounds within ±{LARGEST_BOUND:g} and at least {LEAST_WIDTH:g} apart; "
            "declare it in another unit"
        )


def _is_gaussian(loss: Loss) -> bool:
    return isinstance(loss, (ZCDP, NoPrivacy)) or (isinstance(loss, ApproxDP) and loss.exact_delta > 0)


def _numeric(table: Table, names: tuple[str, ...]) -> bool:
    declared = [table.schema.column(name) for name in names]
    return all(isinstance(one, Bounded) or (isinstance(one, Levels) and len(one) == 2) for one in declared)


def _chosen(table: Table, method: str, names: tuple[str, ...], sizes: tuple[int, ...], loss: Loss) -> str:
    """Resolve ``auto`` by schema, size and kind of loss, all public."""
    if method != "auto":
        return method
    continuous = all(isinstance(table.schema.column(name), Bounded) for name in names)
    cells = math.prod(sizes)
    if continuous and _is_gaussian(loss):
        return "moments"
    if cells <= MOST_AUTO_CELLS:
        return "table"
    if _is_gaussian(loss):
        return "parities"
    raise LossError(
        f"{len(names)} columns make a table of {cells:.3g} cells, above {MOST_AUTO_CELLS}, and parities need Gaussian "
        "noise: give loss=ApproxDP(epsilon, 1e-6) or ZCDP(rho), or name fewer columns"
    )


def _check_fits(table: Table, method: str, names: tuple[str, ...], sizes: tuple[int, ...]) -> None:
    cells = math.prod(sizes)
    if method == "moments" and not _numeric(table, names):
        raise SchemaError("moments need Bounded columns or columns of two levels: use method='parities' or 'table'")
    if method == "reconciled":
        cells *= reconciled.default_blocks(table.n)
    if method in ("table", *SYSTEMS) and cells > MOST_CELLS:
        raise InfeasibleError(
            f"a table of {len(names)} columns has {cells:.3g} cells, each with its own noise, above {MOST_CELLS}: use "
            "method='parities' (or 'moments') with ApproxDP or ZCDP, or name fewer columns"
        )


def _paid(method: str, loss: Loss, calibration: str) -> tuple[Loss, ZCDP | NoPrivacy | None, str]:
    """Return what the ledger is asked for, what Gaussian releases may use of it, and a note."""
    if isinstance(loss, NoPrivacy):
        return loss, loss, ""
    if method in ("parities", "moments", "gaussian-pc") and calibration == "corrected":
        if not isinstance(loss, (ZCDP, ApproxDP)):
            raise LossError(f"{method} adds Gaussian noise: give loss=ApproxDP(epsilon, 1e-6) or ZCDP(rho)")
        return loss, affordable_zcdp(loss), ""
    if method == "table" and isinstance(loss, ZCDP):
        return loss, loss, ""
    if method == "reconciled" and calibration == "corrected":
        if not (isinstance(loss, ApproxDP) and loss.exact_delta > 0):
            raise LossError("reconciled is paid for in ApproxDP with delta above 0")
        return loss, None, ""
    spent, note = pure_part(loss, f"method {method!r}")
    if isinstance(spent, PureDP) and spent.exact_epsilon < LEAST_EPSILON:
        raise LossError("a discovery needs epsilon of at least 1e-9: no answer would be left in the noise")
    return spent, None, note
