"""Texts go to files whole or not at all: what stands there is never half replaced, nor lost to a full disk."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from dpcausal.errors import ParameterError


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, and on the disk; a ParameterError where it is, or cannot be written."""
    with _as_study_errors(path):
        try:
            _write_to_disk(path, text)
        except FileExistsError:
            raise
        except OSError:
            with suppress(OSError):
                path.unlink()
            raise


def replace_files(texts: Mapping[Path, str]) -> None:
    """Write files in place of those that are there: all are on the disk beside them before the first is replaced."""
    parts: dict[Path, Path] = {}
    try:
        for path, text in texts.items():
            with _as_study_errors(path):
                place = Path(os.path.realpath(path))
                parts[place] = part = place.with_name(f".{place.name[:200]}.{os.getpid()}")
                part.unlink(missing_ok=True)
                _write_to_disk(part, text)
        for place, part in parts.items():
            with _as_study_errors(place):
                part.replace(place)
    finally:
        for part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)


@contextmanager
def one_at_a_time(path: Path, waits: Callable[[], None]) -> Iterator[None]:
    """Hold a file for this run; another one waits, once it has said so.  A run that was killed holds nothing."""
    import fcntl  # as the ledger needs it

    with ExitStack() as held:
        with suppress(FileNotFoundError, PermissionError):
            file = held.enter_context(open(path, "rb"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waits()
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError:  # a disk without locks, where no ledger can be either
                pass
        yield


def _write_to_disk(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _as_study_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise ParameterError(f"{str(path)!r} is there already: name another file") from None
    except FileNotFoundError:
        raise ParameterError(f"{str(path)!r} is not in a folder that exists") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no such place"
        raise ParameterError(f"{str(path)!r} cannot be written ({why}); what stood there is unchanged") from None
