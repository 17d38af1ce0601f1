"""The script without the packages of its extra: one line that names the extra, and no traceback."""

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from dpcausal.errors import MissingDependencyError

HIDDEN = "import sys; sys.modules[{package!r}] = None; sys.argv = ['dpcausal', '--version']; "


def called(program: str, package: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HIDDEN.format(package=package) + program], capture_output=True, text=True
    )


def script() -> str:
    """Return what the installed script does."""
    (point,) = entry_points(group="console_scripts", name="dpcausal")
    return f"from {point.module} import {point.attr}; sys.exit({point.attr}())"


MODULE = "import runpy; runpy.run_module('dpcausal.cli', run_name='__main__', alter_sys=True)"


@pytest.mark.parametrize("package", ["typer", "rich"])
@pytest.mark.parametrize("program", [script(), MODULE], ids=["script", "module"])
def test_without_its_extra_the_command_names_it_and_ends_with_2(program: str, package: str) -> None:
    refused = called(program, package)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"dpcausal: {package} is needed for this: pip install 'dpcausal[cli]'\n"


@pytest.mark.parametrize("program", [script(), MODULE], ids=["script", "module"])
def test_with_its_extra_the_same_programs_run(program: str) -> None:
    answered = called(program, "no_such_package")
    assert (answered.returncode, answered.stderr) == (0, "") and answered.stdout.startswith("dpcausal ")


def test_in_python_the_missing_extra_is_an_error_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    import dpcausal.cli

    assert dpcausal.cli.app.info.help
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(MissingDependencyError, match=r"dpcausal\[cli\]"):
        _ = dpcausal.cli.app
    with pytest.raises(AttributeError, match="nothing"):
        _ = dpcausal.cli.nothing


def test_help_comes_without_numpy() -> None:
    program = (
        "import sys; sys.argv = ['dpcausal', '--help']\n"
        "try:\n    import dpcausal.cli; dpcausal.cli.main()\n"
        "except SystemExit:\n    sys.exit(int('numpy' in sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert told.returncode == 0 and "discover" in told.stdout
