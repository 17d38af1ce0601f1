"""Which data a table or panel was made of, so that a cached answer goes to the data that it was made from.

The ledger is shared, so nothing private may be in it: a hash of records, of their number of bytes or of a column
could be compared with guesses at one record.  So data are known by what they say of no record:

| made of | known by | where |
|---|---|---|
| files | number and time of writing of each; of a database its table too | the ledger, beside the answer |
| a cluster's table | its address | the ledger, beside the answer |
| a frame in memory | the object itself, or each array of a mapping | this process alone |

A file that was written to, replaced, swapped under a link or copied is other data, even if it holds the same records.
A frame of an earlier process cannot be distinguished from another frame: then the name alone identifies the data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from weakref import ref

import narwhals.stable.v2 as nw

from dpcausal.data.files.formats import DataFile
from dpcausal.data.source import Source, guarded_read
from dpcausal.data.sources.arrays import ACCEPTED
from dpcausal.data.sources.fingerprint import DATABASE, Stamp, absolute
from dpcausal.data.sources.frame import frame_source
from dpcausal.errors import ParameterError


@dataclass(frozen=True, eq=False, repr=False)
class Origin:
    """What data are known by: the stamp of files or a cluster's table, and for a ``DataFile`` its unusual format. Of a
    frame in memory: its object, or each array by name, each a call that returns it while it lives."""

    stamp: Stamp | None = None
    form: str = ""
    parts: dict[str, Callable[[], Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: Any) -> Origin:
        """Return what a frame, mapping or path is known by; nothing is read."""
        if isinstance(frame, (str, os.PathLike)):
            options = frame.options if isinstance(frame, DataFile) else {}
            form = "\n".join(f"{name} {value}" for name, value in options.items())
            return cls(Stamp.of(absolute(os.fspath(frame))), form)
        if isinstance(frame, Mapping):
            return cls(parts={str(name): _held(part) for name, part in frame.items()})
        return cls(parts={"": _held(nw.to_native(frame, pass_through=True))})

    @property
    def mark(self) -> str:
        """What a ledger may hold of it, 64 hexadecimal digits; empty of a frame in memory."""
        if self.stamp is None:
            return ""
        # Neither the size, which tells of records, nor the device, whose number may change when a machine starts.
        files = [f"{inode} {written}" for _, _, inode, _, written in self.stamp.state]
        database = DATABASE.fullmatch(self.stamp.path)  # a file of many tables
        table = [] if database is None else [database["table"]]
        form = [self.form] if self.form else []  # another reading of a file is other data
        return sha256("\n".join([*(files or [self.stamp.path]), *table, *form]).encode()).hexdigest()

    def is_other(self, earlier: Origin) -> bool:
        """Return whether this frame in memory is another object than an earlier one; of mappings, any common array."""
        common = self.parts.keys() & earlier.parts.keys()
        return not common or any(self.parts[name]() is not earlier.parts[name]() for name in common)


def source_of(frame: object) -> Source:
    """Return the source behind a frame: ``source`` of the module here named like its package, else one of narwhals."""
    native: Any = nw.to_native(frame, pass_through=True)
    module = f"{__package__}.{type(native).__module__.partition('.')[0]}"
    engine = getattr(import_module(module), "source", None) if find_spec(module) else None
    if engine is None:
        return frame_source(frame)
    with suppress(TypeError):
        opened: Source = engine(native)
        return opened
    raise ParameterError(f"{ACCEPTED}, got {type(frame).__name__}")


def opened(frame: Any) -> tuple[Source, Origin]:
    if isinstance(frame, (str, os.PathLike)):
        from dpcausal.data.files.opening import file_source

        return file_source(frame), Origin.of(frame)
    if isinstance(frame, Mapping) and type(frame) is not dict:  # one that reads its arrays as they are asked for
        given = frame
        frame = guarded_read(lambda: {name: given[name] for name in given}, "the mapping of arrays cannot be read")
    return source_of(frame), Origin.of(frame)


def _held(part: Any) -> Callable[[], Any]:
    try:
        return ref(part)
    except TypeError:  # held on to instead
        return lambda: part
