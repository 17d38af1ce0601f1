"""The command in a process of its own: its exit code and streams as a shell has them, without the time of imports.

A server that has imported the command, and has no threads, forks it.  What hangs on Python's own start and end is
tested with a process that is started, in ``tests/cli``.
"""

import multiprocessing
import os
import resource
import sys
import traceback
import warnings
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

from dpcausal.cli import main

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.processes", "dpcausal.study.study", "dpcausal.discovery.api", "scipy.stats"])


def called(
    folder: Path, *words: object, stdout: str = "", environ: dict[str, str] | None = None, most_bytes: int | None = None
) -> CompletedProcess[str]:
    """Run ``dpcausal`` with these words in a folder, its standard output kept or written to a file; no file may have
    more than ``most_bytes``."""
    arguments = [str(word) for word in words]
    with TemporaryDirectory() as kept:
        streams = stdout or f"{kept}/out", f"{kept}/err"
        child = SERVER.Process(
            target=_run, args=(str(folder), arguments, streams, {**os.environ, **(environ or {})}, most_bytes)
        )
        child.start()
        child.join()
        texts = ["" if file == stdout else Path(file).read_text(encoding="utf-8") for file in streams]
    return CompletedProcess(arguments, child.exitcode or 0, *texts)


def _run(
    folder: str, words: list[str], streams: tuple[str, str], environ: dict[str, str], most_bytes: int | None
) -> None:
    """End the process as Python does, but for what its server has open."""
    for target, path in enumerate(streams, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), target)
    sys.stdout, sys.stderr = (os.fdopen(target, "w", encoding="utf-8", closefd=False) for target in (1, 2))
    warnings.resetwarnings()
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)
    sys.argv = ["dpcausal", *words]
    if most_bytes is not None:
        sys.dont_write_bytecode = True  # Python would leave truncated files of the packages that it compiles
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except OSError:
        code = 120
    finally:
        os._exit(code)
