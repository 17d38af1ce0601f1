"""A ledger in PostgreSQL, on a real server: the same lines and rules as a file, for several machines at once."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, LedgerDamagedError, LedgerError, MissingDependencyError, ParameterError
from dpcausal.privacy.storage import store
from dpcausal.privacy.storage.postgres import Address, Lines
from tests.commands import command
from tests.privacy.kill_loops import STEP, kill, kill_loop, mount, race, release_then_spend, spend_then_release, start
from tests.privacy.postgres import NEEDED, Server, programs, server
from tests.processes import called
from tests.study.made import ASKED, write
from tests.voices import together

pytestmark = pytest.mark.skipif(programs() is None, reason=f"needs {NEEDED}")


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    with server(str(programs())) as running:
        yield running


@pytest.fixture
def place(database: Server) -> str:
    """The address of a ledger of budget 1 with four spends of 0.125, the second with its answer."""
    place = database.new()
    with dpc.Ledger.create(place, budget=dpc.PureDP(1)) as ledger:
        for number in range(1, 5):
            ledger.charge(dpc.PureDP(0.125), task=f"call {number}", once={"seed": 7})
        ledger.store(2, {"cause": "é", "margin": -1.5})
    return place


def test_its_rows_are_the_lines_of_a_ledger_file(database: Server, place: str, tmp_path: Path) -> None:
    ledger, path = dpc.Ledger.open(place), tmp_path / "copy.ledger"
    name = dpc.Ledger.open(place).path
    rows = database.execute(
        "SELECT start, line FROM dpcausal_ledger WHERE ledger LIKE %s ORDER BY start", f"ledger {database.made} é"
    )
    content = b"".join(line.encode() + b"\n" for _, line in rows)
    assert [start for start, _ in rows] == [content.index(line.encode()) for _, line in rows]
    path.write_bytes(content)
    copy = dpc.Ledger.open(path)
    assert (copy.head, copy.entries(), copy.answer(2)) == (ledger.head, ledger.entries(), ledger.answer(2))
    assert (ledger.durable, ledger.private, ledger.remaining.epsilon) == (True, True, 0.5)
    assert "owner" not in str(name) and "remaining" in repr(ledger)


def test_two_machines_spend_one_budget_by_the_command(database: Server, tmp_path: Path) -> None:
    """Each has its own folder, data and witnesses, and shares nothing but the server."""
    place, rows = database.new(), "\n".join(f"{row % 2},{row % 2}" for row in range(400))
    codes = []
    for number, machine in enumerate(("one", "two", "one")):
        (folder := tmp_path / machine).mkdir(exist_ok=True)
        (folder / "data.csv").write_text(f"a,b\n{rows}\n")
        (folder / "schema.toml").write_text("[a]\nlevels = [0, 1]\n[b]\nlevels = [0, 1]\n")

        def run(*words: str, folder: Path = folder) -> int:
            state = {"DPCAUSAL_WITNESS": str(folder / "state")}
            return called(folder, *words, environ=state).returncode

        if number == 0:
            codes.append(run("ledger", "create", place, "--epsilon", "1"))
        asked = "ci-test", "data.csv", "a", "b", "--schema", "schema.toml", "--epsilon", "0.4"
        codes.append(run(*asked, "--ledger", place))
    assert codes == [0, 0, 0, 3]
    assert dpc.Ledger.open(place).verify().entries == 2


def test_a_study_keeps_its_ledger_in_a_database(database: Server, tmp_path: Path) -> None:
    path = write(tmp_path, f"[[question]]\n{ASKED[0]}\nepsilon = 0.5\n", n=400)
    text = path.read_text().replace("s.ledger", database.new())
    path.write_text(text)
    study = dpc.Study.open(path)
    assert command("plan", study.path).exit_code == 0
    assert command("run", study.path).exit_code == 2  # no ledger yet
    assert command("run", study.path, "--new-ledger").exit_code == 0
    assert [one.state for one in study.plan().questions] == ["answered"]
    assert study.report().exists()
    path.write_text(text.replace("owner@", "owner:secret@"))
    with pytest.raises(ParameterError, match="password"):
        dpc.Study.open(path)


def test_rows_are_added_and_never_changed(database: Server, place: str) -> None:
    import psycopg

    for change in ("DELETE FROM", "TRUNCATE"):
        with pytest.raises(psycopg.errors.RaiseException):
            database.execute(f"{change} dpcausal_ledger")
    with pytest.raises(psycopg.errors.RaiseException):
        database.execute("UPDATE dpcausal_ledger SET line = ''")
    assert dpc.Ledger.open(place).verify().ok


ROWS, HERE = "dpcausal_ledger", "WHERE ledger = %s"
CHANGES = {
    "its last row deleted": f"DELETE FROM {ROWS} {HERE} AND line LIKE '%%answer%%'",
    "a row deleted": f"DELETE FROM {ROWS} {HERE} AND line LIKE '%%call 2%%'",
    "its first row deleted": f"DELETE FROM {ROWS} {HERE} AND start = 0",
    "all rows deleted": f"DELETE FROM {ROWS} {HERE}",
    "renamed": f"UPDATE {ROWS} SET ledger = 'elsewhere' {HERE}",
    "a word changed": f"UPDATE {ROWS} SET line = replace(line, 'call 3', 'call 8') {HERE}",
    "a row of another text": f"UPDATE {ROWS} SET line = 'é' {HERE} AND line LIKE '%%call 4%%'",
    "rows exchanged": f"UPDATE {ROWS} SET start = 9999 {HERE} AND line LIKE '%%call 2%%'",
    "a row twice": f"INSERT INTO {ROWS} SELECT ledger, 9999, line FROM {ROWS} {HERE} AND line LIKE '%%call 4%%'",
    "a row that is empty": f"INSERT INTO {ROWS} SELECT ledger, 9999, '' FROM {ROWS} {HERE} AND start = 0",
}  # fmt: skip


@pytest.mark.parametrize("way", CHANGES)
def test_rows_that_an_administrator_changed_are_refused_with_code_4(database: Server, place: str, way: str) -> None:
    name, query = f"ledger {database.made} é", CHANGES[way]
    live = dpc.Ledger.open(place)
    head, before = live.head, live.entries()[-1].hash
    database.execute("ALTER TABLE dpcausal_ledger DISABLE TRIGGER append_only")
    database.execute(query, *[name] * query.count(HERE))
    database.execute("ALTER TABLE dpcausal_ledger ENABLE TRIGGER append_only")
    for words in (["verify"], ["show"]):
        assert command("ledger", *words, place).exit_code == 4
    if way == "its last row deleted":  # as a database that was restored from a backup
        for noted, code in ((before, 0), (head, 4)):
            unwitnessed = "--witness", "/dev/null/none", "ledger", "verify", place
            assert command(*unwitnessed, "--fingerprint", noted).exit_code == code
    if way in ("all rows deleted", "renamed"):
        assert command("ledger", "create", place, "--epsilon", "1").exit_code == 4
    if way in ("its last row deleted", "all rows deleted", "renamed"):  # a live ledger reads on from its last line
        with pytest.raises(LedgerError):
            live.charge(STEP, task="t")


def test_racing_processes_are_granted_the_budget_exactly(database: Server) -> None:
    place = database.new()
    dpc.Ledger.create(place, budget=dpc.PureDP(0.03)).close()
    grants = race(place, [STEP], processes=4, attempts=12)
    with dpc.Ledger.open(place) as ledger:
        assert (sum(grants), ledger.remaining.epsilon, ledger.verify().entries) == (30, 0, 30)


def test_without_the_lock_the_primary_key_lets_no_two_lines_follow_one(
    database: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = database.new()
    dpc.Ledger.create(place, budget=dpc.PureDP(0.02)).close()
    monkeypatch.setattr(Lines, "lock", lambda *_, **__: None)
    monkeypatch.setattr(store, "one_step_at_a_time", store.nullcontext())
    granted, refused = list[int](), list[str]()

    def work() -> None:
        with dpc.Ledger.open(place, witness="/dev/null/none") as ledger:  # its lock would be one of this machine
            for _ in range(10):
                try:
                    granted.append(ledger.charge(STEP, task="t").number)
                except (LedgerError, BudgetExceededError) as error:
                    refused.append(type(error).__name__)

    together(*[work] * 4)
    assert sorted(granted) == list(range(1, len(granted) + 1)) and "LedgerError" in refused
    assert dpc.Ledger.open(place).verify().entries == len(granted) <= 20


@pytest.mark.parametrize("workers", [1, 3])
def test_a_killed_process_never_leaves_a_release_without_its_spend(database: Server, workers: int) -> None:
    toll = kill_loop(database, spend_then_release, 12, workers=workers, seed=workers, longest_pause=0.03)
    print(toll)
    assert toll.clean and toll.kills == 12 * workers


def test_the_kill_loop_catches_a_process_that_releases_before_it_spends(database: Server) -> None:
    assert kill_loop(database, release_then_spend, 6, seed=5).under_recorded >= 5


def test_a_server_that_dies_loses_no_spend_and_grants_none_meanwhile(database: Server, place: str) -> None:
    ledger = dpc.Ledger.open(place)
    ledger.charge(STEP, task="before")
    database.stop()
    try:
        with pytest.raises(LedgerError, match="nothing was granted"):
            ledger.charge(STEP, task="meanwhile")
        assert command("ledger", "verify", place).exit_code == 2
    finally:
        database.start()
    assert ledger.charge(STEP, task="after").number == 6
    assert ledger.verify().ok


def test_a_full_disk_grants_nothing_that_is_not_recorded(database: Server) -> None:
    import psycopg

    small = database.folder / "small"
    small.mkdir()
    if not mount("-t", "tmpfs", "-o", "size=8m", "tmpfs", small):
        pytest.skip("a disk of its own cannot be mounted here")
    place, granted = database.new(), 0
    try:
        shutil.chown(small, "postgres")
        with psycopg.connect(database.address("").partition("?")[0], autocommit=True) as owner:
            owner.execute(f"CREATE TABLESPACE small LOCATION '{small}'")
            dpc.Ledger.create(place, budget=dpc.PureDP(1)).close()
            owner.execute("ALTER TABLE dpcausal_ledger SET TABLESPACE small")
        free = os.statvfs(small)
        (small / "filler").write_bytes(bytes(free.f_bavail * free.f_bsize - 40_000))
        ledger = dpc.Ledger.open(place)
        with pytest.raises(LedgerError, match=r"could not extend.*nothing was granted"):
            while granted < 400:
                ledger.charge(STEP, task="x" * 200)
                granted += 1
        with pytest.raises(LedgerError):
            ledger.charge(STEP, task="x" * 200)
        database.execute("ALTER TABLE dpcausal_ledger SET TABLESPACE pg_default")  # the disk is larger now
        assert (ledger.verify().ok, ledger.verify().entries) == (True, granted)
        assert ledger.charge(STEP, task="after").number == granted + 1
    finally:
        database.execute("ALTER TABLE dpcausal_ledger SET TABLESPACE pg_default")
        subprocess.run(["umount", "--lazy", str(small)], check=True)


def test_others_that_hold_the_lock_are_waited_for_and_then_refused(
    database: Server, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setattr(store, "BUSY_SECONDS", 0.2)
    ledger, lock = dpc.Ledger.open(place), f"dpcausal ledger {database.made} é"
    with psycopg.connect(database.address("").partition("?")[0]) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [lock])
        for call in (lambda: ledger.charge(STEP, task="t"), lambda: ledger.remaining):
            with pytest.raises(LedgerError, match="busy"):
                call()
    assert ledger.charge(STEP, task="t").number == 5


def test_a_client_that_stops_in_the_middle_of_a_spend_holds_no_other_up(
    database: Server, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.2)
    ledger, other = dpc.Ledger.open(place), start(lambda: stopped_in_a_spend(place))
    os.waitpid(other, os.WUNTRACED)
    monkeypatch.setattr(store, "BUSY_SECONDS", 5.0)
    assert ledger.charge(STEP, task="t").number == 5
    kill(other)


def stopped_in_a_spend(place: str) -> None:
    Lines.write = lambda *_: os.kill(os.getpid(), signal.SIGSTOP)  # type: ignore[assignment]
    dpc.Ledger.open(place, witness="/dev/null/none").charge(STEP, task="t")


def test_an_analyst_needs_to_read_and_insert_and_an_auditor_to_read(database: Server, place: str) -> None:
    for user, rights in (("analyst", "SELECT, INSERT"), ("auditor", "SELECT")):
        database.execute(f"CREATE ROLE {user} LOGIN")
        database.execute(f"GRANT {rights} ON dpcausal_ledger TO {user}")
    own = {user: place.replace("owner@", f"{user}@") for user in ("analyst", "auditor")}
    assert dpc.Ledger.open(own["analyst"]).charge(STEP, task="t").number == 5
    with dpc.Ledger.open(own["auditor"], read_only=True) as ledger:
        assert ledger.verify().entries == 5
    with pytest.raises(LedgerError, match="permission denied"):
        dpc.Ledger.open(own["auditor"]).charge(STEP, task="t")


def test_users_with_schemas_of_their_own_spend_one_budget(database: Server) -> None:
    for user in ("anna", "bert"):
        database.execute(f"CREATE ROLE {user} LOGIN SUPERUSER")
        database.execute(f"CREATE SCHEMA {user} AUTHORIZATION {user}")
    first, second = (dpc.Ledger.open_or_create(database.address("shared", user), budget=dpc.PureDP(1))
                     for user in ("anna", "bert"))  # fmt: skip
    first.charge(dpc.PureDP(0.75), task="t")
    with pytest.raises(BudgetExceededError):
        second.charge(dpc.PureDP(0.5), task="t")
    database.execute("CREATE TABLE anna.dpcausal_ledger (ledger text, start bigint, line text)")
    assert dpc.Ledger.open(database.address("shared", "anna")).remaining.epsilon == 0.25


def test_a_ledger_in_a_schema_that_is_named_is_another_one_and_says_so(database: Server) -> None:
    database.execute('CREATE SCHEMA "Own Place"')
    place = database.address("apart") + "&schema=Own%20Place"
    ledger = dpc.Ledger.create(place, budget=dpc.PureDP(1))
    assert str(ledger.path).endswith("/postgres?schema=Own+Place&ledger=apart")
    with pytest.raises(LedgerError, match="none of this name"):
        dpc.Ledger.open(database.address("apart"))
    assert database.execute('SELECT count(*) FROM "Own Place".dpcausal_ledger') == [(1,)]


@pytest.mark.parametrize(
    "user", ["a:hunter%2", "a:hunter2/x", "a:[hunter2", "a:12?hunter2", "a:1#hunter2", "a:1@hunter2", "a:1 hunter2"]
)
def test_an_address_that_is_misread_is_refused_without_its_password(user: str) -> None:
    with pytest.raises(ParameterError) as refused:
        dpc.Ledger.open(f"postgresql://{user}@127.0.0.1:1/postgres?ledger=x")
    assert refused.value.rule == "ledger-address" and "hunter" not in str(refused.value)


def test_an_address_keeps_its_slashes_and_shows_all_that_names_the_database() -> None:
    local = Address.of("postgresql:///trials?ledger=2026&dbname=b&password=hunter+2")
    assert local.database == "postgresql:///trials?dbname=b&password=hunter+2"
    assert str(local) == "postgresql:///trials?dbname=b&ledger=2026"


def test_an_address_that_the_client_cannot_read_is_not_quoted() -> None:
    with pytest.raises(LedgerError, match="nothing was granted") as refused:
        dpc.Ledger.open("postgresql://127.0.0.1:1/postgres?ledger=x&hunter2=1")
    assert "hunter" not in str(refused.value)


@pytest.mark.parametrize("address", ["postgresql://localhost/db", "postgres://localhost/db?ledger=", "postgresql://"])
def test_an_address_needs_the_name_of_a_ledger(address: str) -> None:
    for call in (dpc.Ledger.open, lambda path: dpc.Ledger.create(path, budget=STEP)):
        with pytest.raises(ParameterError, match="ledger=name"):
            call(address)


def test_what_is_not_there_says_how_to_make_it(database: Server) -> None:
    with pytest.raises(LedgerError, match="dpcausal ledger create"):
        dpc.Ledger.open(database.new())
    with pytest.raises(LedgerError, match=r"refused.*nothing was granted"):
        dpc.Ledger.open("postgresql://owner@127.0.0.1:1/postgres?ledger=x")
    with pytest.raises(LedgerError, match="already"):
        for _ in range(2):
            dpc.Ledger.create(database.address("twice"), budget=STEP)
    assert dpc.Ledger.open_or_create(database.address("twice"), budget=STEP).verify().ok


def test_the_missing_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match=r"dpcausal\[postgres\]"):
        dpc.Ledger.open("postgresql://localhost/db?ledger=x")


def test_a_password_is_in_no_text(database: Server) -> None:
    place = database.address("secretive").replace("owner@", "owner:hunter2@") + "&password=hunter3"
    with dpc.Ledger.create(place, budget=dpc.PureDP(1)) as ledger:
        texts = [repr(ledger), str(ledger.path), str(ledger.verify())]
    with pytest.raises(LedgerDamagedError) as damaged:
        dpc.Ledger.open(place, "0" * 64)
    assert not any("hunter" in text for text in [*texts, str(damaged.value)])
