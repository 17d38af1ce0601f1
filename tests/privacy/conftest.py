"""A quick directory for ledgers."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory in memory where there is one: a kill loses nothing that the kernel holds, and commits are fast."""
    made = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    yield made
    shutil.rmtree(made)
