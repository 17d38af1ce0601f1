"""One thread of linear algebra: faster for the small systems here, and the same bits on every machine's cores.

Threads of BLAS spin while they wait.  On matrices of a few hundred rows, with other processes on the same cores,
that was measured to slow an eigendecomposition down forty times.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

_changing = threading.Lock()
_inside: set[object] = set()
_limits: list[Any] = []
"""The number of threads belongs to the process: the first to come in sets it, the last to leave puts it back."""


def _renew() -> None:
    global _changing
    _changing = threading.Lock()  # whoever held it, or was inside, is not in a forked child
    _inside.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@lru_cache(maxsize=1)
def _controller() -> Any:
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
                _limits.append(_controller().limit(limits=1, user_api="blas"))
        yield
    finally:
        with _changing:
            _inside.discard(here)
            if not _inside and _limits:
                _limits.pop().restore_original_limits()
