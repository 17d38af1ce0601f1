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

_turn = threading.RLock()
"""The number of BLAS's threads belongs to the process: of two calls the one that ends first would put it back, and
the other's blocks would change their last bits half way."""


def _renew() -> None:
    global _turn
    _turn = threading.RLock()  # whoever held it is not in a forked child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@lru_cache(maxsize=1)
def _controller() -> Any:
    # Only libraries that are loaded already are found, so SciPy's own BLAS must be.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS run on the calling thread only, and one thread of this process at a time inside.

    A thread may enter again; it must not wait inside for another thread that enters.

    Examples
    --------
    >>> with one_thread():
    ...     pass
    """
    with _turn, _controller().limit(limits=1, user_api="blas"):
        yield
