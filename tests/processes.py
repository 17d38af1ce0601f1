"""The command in a forked process: its exit code and streams as a shell has them, without the time that imports take.

What hangs on Python's own start and end is tested with a process that is started, in ``tests/cli``.
"""

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryFile
from typing import Any

from dpcausal.cli import main


def called(
    folder: Path, *words: object, stdout: Any = None, before: Callable[[], object] = lambda: None
) -> CompletedProcess[str]:
    """Run ``dpcausal`` with these words in a folder, its standard output kept or written to a file or descriptor."""
    arguments = [str(word) for word in words]
    with TemporaryFile() as printed, TemporaryFile() as complaints:
        output = printed if stdout is None else stdout
        streams = output if isinstance(output, int) else output.fileno(), complaints.fileno()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads, Python 3.12 and later
            child = os.fork()
        if child == 0:
            _end_with(lambda: _run(folder, arguments, streams, before))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (printed, complaints):
            file.seek(0)
            texts.append(file.read().decode())
    return CompletedProcess(arguments, code, *texts)


def _run(folder: Path, words: list[str], streams: tuple[int, int], before: Callable[[], object]) -> None:
    for target, stream in enumerate(streams, start=1):
        os.dup2(stream, target)
    sys.stdout, sys.stderr = (os.fdopen(target, "w", encoding="utf-8", closefd=False) for target in (1, 2))
    warnings.resetwarnings()
    os.chdir(folder)
    sys.argv = ["dpcausal", *words]
    before()
    main()


def _end_with(work: Callable[[], object]) -> None:
    """End the process as Python does, but for what other tests have open."""
    code = 0
    try:
        work()
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
