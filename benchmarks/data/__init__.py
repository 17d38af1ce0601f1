"""Real data, read from ``../shared/data`` beside the repository or from ``$DPCAUSAL_DATA``; not part of the project."""

import gzip
import os
from pathlib import Path

DATA = Path(os.environ.get("DPCAUSAL_DATA", Path(__file__).resolve().parents[2] / ".." / "shared" / "data"))


class DataAbsentError(Exception):
    """The folder of real data is not there."""


def found(*parts: str) -> Path:
    """The path of a file of the folder."""
    path = DATA.joinpath(*parts)
    if not path.is_file():
        raise DataAbsentError(f"{path} is absent: set DPCAUSAL_DATA to the folder of real data")
    return path


def text(*parts: str) -> str:
    """The text of a file of the folder, unpacked if it ends in .gz."""
    path = found(*parts)
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8-sig", "replace")
