"""Code of others on private rows, a regressor or a model of x: what it may say, draw and break off.

What stays beyond this: files and processes that it makes by itself, random streams that are neither numpy's nor
Python's, what it remembers from one block to the next, and what ``privacy/sandbox.py`` says it does not reach.
"""

import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar, cast

from dpcausal.errors import ParameterError
from dpcausal.privacy.noise import PublicGenerator, own_streams
from dpcausal.privacy.sandbox import alone, isolated_or_default

Result = TypeVar("Result")
QUIET: dict[str, int | None] = {"verbose": False, "n_jobs": 1, "memory": None}
"""What an estimator prints, the processes it starts and the files it keeps would show rows or carry them away."""


def uses_external_code(regression: object, model_x: object = None) -> bool:
    """Return whether what runs inside blocks is mostly code that the caller gave: a regressor, a sampler."""
    a_regressor = regression is not None and not isinstance(regression, str)
    return a_regressor or getattr(model_x, "sample", None) is not None


def external_code(action: Callable[[], Result], seed: int) -> Result:
    """Return ``action()``, which runs external code with output suppressed, in this thread, with its own public seed.
    What it raises is raised: it is for the caller to contain."""

    def visit() -> Result:
        from joblib import parallel_config

        # Whatever joblib was told elsewhere: rows go to no other process.
        with _unchanged_settings(), own_streams(seed), parallel_config(backend="threading", n_jobs=1):
            return action()

    return alone(visit)


def try_external_code(action: Callable[[], Result], who: str, rule: str = "") -> Result:
    """Return ``action()``, which runs external code on simulated rows."""
    kind = ""

    def watched() -> Result | None:
        nonlocal kind
        try:
            return action()
        except BaseException as error:
            kind = type(error).__name__
            raise

    result = external_code(lambda: isolated_or_default(watched, None), 0)
    if kind:
        raise ParameterError(f"{who} fails on simulated rows with {kind}{rule}")
    return result  # type: ignore[return-value]


def is_estimator(value: object) -> bool:
    return not isinstance(value, type) and all(
        callable(getattr(value, name, None)) for name in ("fit", "get_params", "set_params")
    )


def quiet_copy(estimator: Any) -> Any:
    """Return an unfitted copy that prints nothing, starts nothing and keeps nothing."""
    from sklearn.base import clone

    copy = clone(estimator)
    for part in _estimator_parts(copy):
        part.set_params(**{name: QUIET[name] for name in part.get_params(deep=False) if name in QUIET})
        # Callbacks are kept by reference, and are handed the rows.
        getattr(part, "__dict__", {}).pop("_skl_callbacks", None)
    return copy


def with_seed(estimator: Any, generator: PublicGenerator) -> Any:
    """Return an unfitted copy whose random seed is this block's own. A shared stream would carry rows to the next
    block."""
    from sklearn.base import clone

    model = clone(estimator)
    seeds = {name: int(generator.integers(2**31)) for name in model.get_params(deep=True)
             if name.split("__")[-1] == "random_state"}  # fmt: skip
    return model.set_params(**seeds)


def _estimator_parts(estimator: Any) -> list[Any]:
    estimators, left = [], [estimator]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, (list, tuple, set)):
            left += value
        elif hasattr(value, "get_params") and hasattr(value, "set_params") and not isinstance(value, type):
            estimators.append(value)
            left += value.get_params(deep=False).values()
    return estimators


@contextmanager
def _unchanged_settings() -> Iterator[None]:
    """Undo what external code sets for the whole process without restoring it. Filters of warnings, the level of
    logs."""
    filters = warnings.filters
    before, level = list(filters), logging.root.manager.disable
    try:
        yield
    finally:
        if warnings.filters is filters:  # or else another thread has put its own there, or taken it away
            cast(Any, filters)[:] = before
        logging.disable(level)


_changing = threading.Lock()
_inside: set[object] = set()
_limits: list[Any] = []
"""The number of threads belongs to the process: the first to come in sets it, the last to leave puts it back."""


def _renew_controller() -> None:
    global _changing
    _changing = threading.Lock()  # whoever held it, or was inside, is not in a forked child
    _inside.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_controller)


@lru_cache(maxsize=1)
def _thread_controller() -> Any:
    # Only libraries that are loaded already are found, so SciPy's own BLAS must be.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Return a context in which BLAS runs on the calling thread only."""
    here = object()
    try:
        with _changing:
            _inside.add(here)
            if not _limits:
                _limits.append(_thread_controller().limit(limits=1, user_api="blas"))
        yield
    finally:
        with _changing:
            _inside.discard(here)
            if not _inside and _limits:
                _limits.pop().restore_original_limits()
