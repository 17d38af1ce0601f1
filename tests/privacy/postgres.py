"""A PostgreSQL server in a folder of its own, for tests and audits of ledgers in a database."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any

NEEDED = "the programs of a PostgreSQL server (initdb, pg_ctl) and psycopg"


def programs() -> str | None:
    """Return the folder of the server's programs, ``None`` where they or the client are missing."""
    try:
        import psycopg  # noqa: F401

        if os.geteuid() == 0:
            pwd.getpwnam("postgres")  # the server refuses root
    except (ImportError, KeyError):
        return None
    folders = [os.path.dirname(shutil.which("initdb") or ""), *sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    return next((folder for folder in folders if folder and os.path.exists(f"{folder}/pg_ctl")), None)


class Server:
    """A running server; ``new`` gives the address of a ledger that is not yet there."""

    def __init__(self, programs: str, folder: Path) -> None:
        self.programs, self.folder, self.made = programs, folder, 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run("initdb", "--pgdata", folder / "data", "--username", "owner", "--auth", "trust", "--encoding", "UTF8",
                  "--locale", "C", "--no-sync")  # fmt: skip

    def _run(self, program: str, *words: object) -> None:
        user: dict[str, Any] = {"user": "postgres"} if os.geteuid() == 0 else {}
        command = [f"{self.programs}/{program}", *map(str, words)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **user)

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=localhost -c fsync=off"
        self._run("pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log", "-o", options, "-w", "start")

    def stop(self) -> None:
        """End it as a power failure would."""
        self._run("pg_ctl", "-D", self.folder / "data", "--mode", "immediate", "-w", "stop")

    def address(self, ledger: str, user: str = "owner") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/postgres?ledger={ledger}"

    def new(self) -> str:
        self.made += 1
        return self.address(f"ledger {self.made} é".replace(" ", "%20"))

    def execute(self, query: str, *values: object) -> list[Any]:
        import psycopg

        with psycopg.connect(f"postgresql://owner@127.0.0.1:{self.port}/postgres") as connection:
            cursor = connection.execute(query, values)
            return cursor.fetchall() if cursor.description else []

    def settle(self) -> None:
        """Wait until all clients have gone."""
        while self.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'") != [(1,)]:
            time.sleep(0.002)


@contextmanager
def server(programs: str) -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    made = Server(programs, folder)
    made.start()
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder)
