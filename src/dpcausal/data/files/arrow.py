"""Files of typed columns, read by pyarrow, only the asked columns: Parquet, and Arrow IPC, also called Feather."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from dpcausal.data.source import BATCH, Collected, Declared, Source, guarded_read
from dpcausal.data.sources.frame import frame_source
from dpcausal.errors import SchemaError


def opened_parquet(path: Path) -> Any:
    from pyarrow.parquet import ParquetFile

    return ParquetFile(path)


class IpcFile:
    """An Arrow IPC file with what is asked of a ``ParquetFile``."""

    def __init__(self, path: Path) -> None:
        from pyarrow import OSFile

        self._file = OSFile(str(path))
        self.schema_arrow = self._reader(()).schema

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _reader(self, columns: Sequence[str]) -> Any:
        from pyarrow import ipc

        places = [self.schema_arrow.get_field_index(name) for name in columns]
        return ipc.open_file(self._file, options=ipc.IpcReadOptions(included_fields=places))

    @property
    def metadata(self) -> Any:
        return self.read(self.schema_arrow.names[:1])

    def read(self, columns: Sequence[str]) -> Any:
        return self._reader(columns).read_all()

    def iter_batches(self, size: int, columns: Sequence[str]) -> Iterator[Any]:
        reader = self._reader(columns)
        for place in range(reader.num_record_batches):
            batch = reader.get_batch(place)
            for start in range(0, batch.num_rows, size):
                yield batch.slice(start, size)


class ArrowSource(Source):
    """Files of one Arrow schema, one after the other; row counts come from their footers."""

    computed = True

    def __init__(self, path: str, files: Sequence[Path], opened: Callable[[Path], Any], what: str) -> None:
        from pyarrow import ArrowInvalid, ArrowTypeError, unify_schemas

        self.backend = "parquet" if what == "Parquet" else "arrow"
        self._files, self._opened, self._unread = files, opened, f"file {path!r} cannot be read as {what}"
        schemas = guarded_read(lambda: list(self._each(lambda file: file.schema_arrow)), self._unread)
        typed = [frame_source(schema.empty_table()) for schema in schemas]
        self._typed, self.names = typed[0], typed[0].names
        try:  # files may keep the same values in types of other widths
            unify_schemas(schemas, promote_options="permissive")
            same = all(one.names == self.names for one in typed)
        except (ArrowInvalid, ArrowTypeError):
            same = False
        if not same or any(one.declared(name) != self.declared(name) for one in typed[1:] for name in self.names):
            raise SchemaError(f"the files of {path!r} must have the same columns, of the same types")

    def _each(self, part: Callable[[Any], Any]) -> Iterator[Any]:
        for path in self._files:
            with self._opened(path) as file:
                yield part(file)

    def declared(self, name: str) -> Declared:
        return self._typed.declared(name)

    def count(self) -> int:
        return int(guarded_read(lambda: sum(self._each(lambda file: file.metadata.num_rows)), self._unread))

    def evaluate(self, names: Sequence[str]) -> None:
        guarded_read(lambda: deque(self.stream(names), maxlen=0), self._unread)

    def collect(self, names: Sequence[str]) -> Collected:
        from pyarrow import concat_tables

        def table() -> Any:
            # Asking for "a.b" also brings a field b nested under a; the second selection drops it.
            tables = self._each(lambda file: file.read(columns=list(names)).select(list(names)))
            return concat_tables(tables, promote_options="permissive")

        return frame_source(guarded_read(table, self._unread)).collect(names)

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        from pyarrow import Table

        for batches in self._each(lambda file: file.iter_batches(BATCH, columns=list(names))):
            for batch in batches:
                yield frame_source(Table.from_batches([batch]).select(list(names))).collect(names)
