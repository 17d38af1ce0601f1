"""The source behind any frame: an engine's own, or that of a frame in memory or lazy."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import narwhals as nw

from dpcausal.data.source import Source
from dpcausal.data.sources.arrays import ACCEPTED
from dpcausal.data.sources.frame import frame_source
from dpcausal.errors import ParameterError

_ENGINES = {"pyspark": "dpcausal.data.sources.spark", "dask": "dpcausal.data.sources.dask"}
"""Those that have a source of their own, by the package of the frame's type."""


def source_of(frame: object) -> Source:
    """Return the source behind a frame."""
    native: Any = nw.to_native(frame, pass_through=True)
    engine = _ENGINES.get(type(native).__module__.partition(".")[0])
    if engine is None:
        return frame_source(frame)
    try:
        opened: Source = import_module(engine).source(native)
        return opened
    except TypeError:
        pass  # an error that is raised here would have that one for its context
    raise ParameterError(f"{ACCEPTED}, got {type(frame).__name__}")
