"""A ledger in PostgreSQL, for several machines: the same lines, by the same rules, as the rows of one table.

A row has the ledger's name, the byte at which its line would start in a file, and the line.  Each step is a connection
and a transaction of its own, so threads and forks share none.  A spend waits for an advisory lock of its ledger, reads
what came since, adds its line and commits; the primary key refuses a second line at the same place whatever the lock
does.  *Read committed* is the level on purpose: the snapshot of a serializable transaction would be taken before the
lock is granted.  A trigger refuses to change or delete rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

from dpcausal.errors import LedgerDamagedError, LedgerError, MissingDependencyError, ParameterError
from dpcausal.privacy.storage import store
from dpcausal.privacy.storage.store import LedgerStore
from dpcausal.privacy.storage.witness import check_new

SCHEMES = ("postgresql://", "postgres://")
TABLE = """
CREATE TABLE dpcausal_ledger (ledger text, start bigint, line text NOT NULL, PRIMARY KEY (ledger, start));
CREATE FUNCTION dpcausal_ledger_rows() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'rows of dpcausal_ledger are added, never changed'; END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON dpcausal_ledger
    FOR EACH STATEMENT EXECUTE FUNCTION dpcausal_ledger_rows();
"""
SETTINGS = """
SELECT set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true),
    set_config('synchronous_commit', 'on', true), set_config('search_path', quote_ident(%s) || ', pg_temp', true)
"""
"""Without a path of its own each user's would be searched: two would spend one budget from two tables."""
PUBLIC = "public"
_PLACE = ("host", "hostaddr", "port", "dbname", "service")
_MISREAD, _HOST = re.compile(r"%(?![0-9A-Fa-f]{2})|\s"), re.compile(r"(\[[^\[\]@]*\]|[^:\[\]@]*)(:\d*)?")


@dataclass(frozen=True)
class Address:
    """The database, schema and name of a ledger; as text without user, password and settings.

    Examples
    --------
    >>> str(Address.of("postgresql://anna:secret@db.example.org/trials?sslmode=require&ledger=2026"))
    'postgresql://db.example.org/trials?ledger=2026'
    """

    database: str
    ledger: str
    schema: str = PUBLIC

    @staticmethod
    def fits(path: object) -> bool:
        return isinstance(path, str) and path.startswith(SCHEMES)

    @classmethod
    def of(cls, text: str) -> Address:
        try:
            parts = urlsplit(text)
            user, _, hosts = parts.netloc.rpartition("@")
            rest = parts.path + ("" if user else parts.query)
            readable = all(map(_HOST.fullmatch, hosts.split(","))) and not _MISREAD.search(text)
            readable = readable and "@" not in user + rest and not parts.fragment
        except ValueError:  # it has the text
            readable = False
        if not readable:
            raise ParameterError(
                "the address of a ledger in a database cannot be read", argument="path", rule="ledger-address",
                hint="write /, @, :, %, #, [, ] and blanks in a user or password as %2F, %40, %3A, %25, %23, %5B, %5D "
                "and %20; or leave the password out and keep it in ~/.pgpass",
            )  # fmt: skip
        settings = dict(parse_qsl(parts.query))
        ledger, schema = settings.pop("ledger", ""), settings.pop("schema", PUBLIC)
        if not ledger.isprintable() or not ledger:
            raise ParameterError(
                "the address of a ledger in a database needs a name", argument="path", rule="ledger-name",
                hint="write it as postgresql://host/database?ledger=name",
            )  # fmt: skip
        # As it was written: libpq takes a plus for itself, and needs the slashes where no host is named.
        query = "&".join(one for one in parts.query.split("&") if one.split("=")[0] not in ("ledger", "schema"))
        return cls(f"postgresql://{parts.netloc}{parts.path}{query and '?' + query}", ledger, schema)

    def has_password(self) -> bool:
        parts = urlsplit(self.database)
        return parts.password is not None or "password" in dict(parse_qsl(parts.query))

    def __str__(self) -> str:
        parts = urlsplit(self.database)
        settings = {name: value for name, value in parse_qsl(parts.query) if name in _PLACE}
        host = parts.netloc.rpartition("@")[2]
        settings |= {} if self.schema == PUBLIC else {"schema": self.schema}
        return f"postgresql://{host}{parts.path}?{urlencode(settings | {'ledger': self.ledger}, safe='/')}"


class Lines:
    """The lines of one ledger within a transaction, which are read and written as a file's."""

    def __init__(self, connection: Any, place: Address) -> None:
        self._connection, self._run, self._place, self._offset = connection, connection.execute, place, 0

    def lock(self, what: str, *, shared: bool = False) -> None:
        kind = "_shared" if shared else ""
        self._run(f"SELECT pg_advisory_xact_lock{kind}(hashtextextended(%s, 0))", [f"dpcausal {what}"])

    def has_table(self) -> bool:
        query = "SELECT to_regclass(quote_ident(%s) || '.dpcausal_ledger') IS NOT NULL"
        return bool(self._run(query, [self._place.schema]).fetchone()[0])

    def make_table(self) -> None:
        if not self.has_table():
            self.lock("")
            if not self.has_table():
                self._run(TABLE)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END:
            query = "SELECT max(start + octet_length(line) + 1) FROM dpcausal_ledger WHERE ledger = %s"
            offset = self._run(query, [self._place.ledger]).fetchone()[0] or 0
        self._offset = offset
        return offset

    def read(self) -> bytes:
        query = "SELECT line FROM dpcausal_ledger WHERE ledger = %s AND start >= %s ORDER BY start"
        rows = self._run(query, [self._place.ledger, self._offset]).fetchall()
        if not rows and self._offset == 0:
            raise _no_ledger(self._place)
        return b"".join(line.encode() + b"\n" for (line,) in rows)

    def write(self, text: bytes) -> None:
        row = [self._place.ledger, self._offset, text.decode().removesuffix("\n")]
        self._run("INSERT INTO dpcausal_ledger VALUES (%s, %s, %s)", row)
        self._connection.commit()

    def truncate(self, _size: int) -> None:
        self._connection.rollback()


class PostgresStore(LedgerStore):
    """The lines of one ledger in a database.  Every fault of it is a ``LedgerError``; none is granted a spend."""

    @staticmethod
    def _path_and_name(place: Any) -> tuple[Path | str | None, str]:
        return str(place), str(place)

    @staticmethod
    def exists(place: Address) -> bool:
        with _lines_of(place, read_only=True) as lines:
            return lines.has_table() and lines.seek(0, os.SEEK_END) > 0

    @classmethod
    def create(cls, place: Address, first: bytes, witnesses: Path | None) -> LedgerStore:
        if not cls.exists(place):
            check_new(witnesses, str(place))
        with _lines_of(place) as lines:
            lines.make_table()
            lines.lock(place.ledger)
            if lines.seek(0, os.SEEK_END):
                raise LedgerError(f"ledger {place}: there is one of this name already: Ledger.open, or open_or_create")
            lines.write(first)
        return cls(place, witnesses=witnesses)

    @contextmanager
    def _step(self, *, writing: bool = False) -> Iterator[IO[bytes]]:
        with store.one_step_at_a_time, _lines_of(self._place, read_only=not writing) as lines:
            self._pid = os.getpid()
            lines.lock(self._place.ledger, shared=not writing)  # no line is added between the lines and their witness
            yield cast(IO[bytes], lines)

    def _commit(self, file: IO[bytes], text: bytes) -> None:
        file.write(text)  # where ``append`` found the end: what others added since has that place


def _no_ledger(place: Address) -> LedgerError:
    return LedgerError(f"ledger {place}: the database has none of this name; 'dpcausal ledger create' makes one")


@contextmanager
def _lines_of(place: Address, *, read_only: bool = False) -> Iterator[Lines]:
    try:
        import psycopg
    except ImportError:
        raise MissingDependencyError("psycopg", "postgres") from None
    wait = round(1000 * store.BUSY_SECONDS)
    try:
        with psycopg.connect(place.database, client_encoding="UTF8", connect_timeout=30) as connection:
            connection.isolation_level, connection.read_only = psycopg.IsolationLevel.READ_COMMITTED, read_only
            # A client that was stopped holds the lock no longer than that; one may also wait for its witness.
            connection.execute(SETTINGS, [str(wait), str(2 * wait), place.schema])
            yield Lines(connection, place)
    except LedgerDamagedError as error:
        raise LedgerDamagedError(f"ledger {place}: {error}; nothing can be spent from it") from None
    except psycopg.errors.LockNotAvailable:
        raise LedgerError(f"ledger {place}: others kept it busy for too long; nothing was granted") from None
    except psycopg.errors.UndefinedTable:
        raise _no_ledger(place) from None
    except psycopg.Error as error:
        # What comes of no server may quote the address.
        is_own = isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None
        rule = "its address cannot be read" if is_own else (str(error) or type(error).__name__).splitlines()[0]
        raise LedgerError(f"ledger {place}: the database refused: {rule}; nothing was granted") from None
