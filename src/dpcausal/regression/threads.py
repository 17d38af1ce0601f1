"""One thread of linear algebra: faster for the small systems here, and the same bits on every machine's cores.

Threads of BLAS spin while they wait.  On matrices of a few hundred rows, with other processes on the same cores,
that was measured to slow an eigendecomposition down forty times.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1)
def _controller() -> Any:
    # Only libraries that are loaded already are found, so SciPy's own BLAS must be.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS runs on the calling thread only.

    Examples
    --------
    >>> with one_thread():
    ...     pass
    """
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit
