"""Code of others inside blocks, a regressor or a sampler: what it may say, and one call of it at a time.

What stays beyond this: files that it writes by itself, streams of coins that are neither numpy's nor Python's, writing
past Python's own output, and what it remembers from one block to the next.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from functools import lru_cache
from typing import Any

_one_at_a_time = threading.RLock()
"""Output, logging and the streams of coins belong to the process: two calls would put back each other's."""


def has_guests(regression: object, model_x: object = None) -> bool:
    """Return whether code that the caller gave runs inside blocks and may draw coins: a regressor, a sampler."""
    a_regressor = regression is not None and not isinstance(regression, str)
    return a_regressor or getattr(model_x, "sample", None) is not None


@contextmanager
def unheard() -> Iterator[None]:
    """Let nothing that is printed or logged inside be heard: it could tell of rows."""
    with _one_at_a_time, ExitStack() as stack:
        stack.enter_context(redirect_stdout(_nowhere()))
        stack.enter_context(redirect_stderr(_nowhere()))
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)
        yield


@lru_cache(maxsize=1)
def _nowhere() -> Any:
    # Open for as long as the process lives.
    return open(os.devnull, "w", encoding="utf-8")
