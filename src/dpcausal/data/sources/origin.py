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
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from weakref import ref

import narwhals.stable.v2 as nw

from dpcausal.data.source import Source, withheld
from dpcausal.data.sources.engines import source_of
from dpcausal.data.sources.fingerprint import DATABASE, Stamp, absolute
from dpcausal.data.sources.text_file import TextFile


@dataclass(frozen=True, eq=False, repr=False)
class Origin:
    """What data are known by.

    Attributes
    ----------
    stamp : Stamp or None
        Of files, or a cluster's table; ``None`` of a frame in memory.
    form : str
        Of a ``TextFile``: how its format differs from the usual one.
    parts : dict
        Of a frame in memory: its object, or each array by name, each a call that returns it while it lives.
    """

    stamp: Stamp | None = None
    form: str = ""
    parts: dict[str, Callable[[], Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: Any) -> Origin:
        """Return what a frame, mapping or path is known by; nothing is read."""
        if isinstance(frame, (str, os.PathLike)):
            form = "\n".join(frame.options.values()) if isinstance(frame, TextFile) else ""
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


def opened(frame: Any) -> tuple[Source, Origin]:
    """Return the source behind a frame or path, and which data it is."""
    if isinstance(frame, (str, os.PathLike)):
        from dpcausal.data.sources.files import file_source

        return file_source(frame), Origin.of(frame)
    if isinstance(frame, Mapping) and type(frame) is not dict:  # one that reads its arrays as they are asked for
        given = frame
        frame = withheld(lambda: {name: given[name] for name in given}, "the mapping of arrays cannot be read")
    return source_of(frame), Origin.of(frame)


def _held(part: Any) -> Callable[[], Any]:
    try:
        return ref(part)
    except TypeError:  # held on to instead
        return lambda: part
