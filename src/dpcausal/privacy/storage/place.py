"""Where a ledger is: which store a path or an address names, and whether there is one."""

import os
from pathlib import Path

from dpcausal.errors import ParameterError
from dpcausal.privacy.storage.postgres import Address, PostgresStore
from dpcausal.privacy.storage.store import LedgerStore
from dpcausal.privacy.storage.witness import check_lost, folder_of


def place_of(path: str | os.PathLike[str]) -> Path | Address:
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str) or "\0" in os.fspath(path):
        raise ParameterError("the path of a ledger must be text or a path")
    return Address.of(str(path)) if Address.fits(path) else Path(os.path.abspath(path))


def ledger_exists(path: str | os.PathLike[str]) -> bool:
    place = place_of(path)
    return store_at(place).exists(place)


def refuse_lost(path: str | os.PathLike[str], witness: str | os.PathLike[str] | None = None) -> None:
    """Raise a LedgerDamagedError where a witness saw a ledger and there is none."""
    if not ledger_exists(path):
        place = place_of(path)
        check_lost(folder_of(witness), place if isinstance(place, Path) else str(place))


def store_at(place: Path | Address) -> type[LedgerStore]:
    return PostgresStore if isinstance(place, Address) else LedgerStore
