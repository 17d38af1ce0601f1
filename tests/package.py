"""``make package``: wheel and sdist are built, checked, and each works, typed, where nothing else is installed.

The wheel is installed with its dependencies in a fresh environment; the sdist afterwards over it, built from its own
files.  From an empty folder the import, the command, a question with noise, its proofs and the types' marker are tried.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

TRIED = """
import importlib.resources as files, pathlib
import dpcausal as dpc
assert pathlib.Path(dpc.__file__).is_relative_to(pathlib.Path(r"{folder}")), dpc.__file__
assert files.files("dpcausal").joinpath("py.typed").is_file()
data = dpc.simulate.smooth_design(2000, effect=1.0, seed=1)
table = dpc.Table(data.columns, data.schema, dpc.Ledger.create("study.ledger", budget=dpc.PureDP(1)))
found = dpc.ci_test(table, "x", "y", given=["z1"], loss=dpc.PureDP(0.5))
assert found.guarantee.private and dpc.Ledger.open("study.ledger").remaining.epsilon == 0.5
assert all(dpc.explain(name) for name in found.guarantee.proofs)
"""


def run(*words: str | Path, folder: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([str(word) for word in words], cwd=folder, env=clean, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        run(sys.executable, "-m", "build", ROOT, "--outdir", folder / "dist", folder=folder)
        (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
        run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, folder=folder)
        inside = set(zipfile.ZipFile(wheel).namelist())
        kept = [path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*") if path.suffix in {".py", ".md"}]
        wanted = {path.as_posix() for path in kept}
        if wanted - inside or "dpcausal/py.typed" not in inside:
            sys.exit(f"the wheel lacks {sorted(wanted - inside)}")
        with tarfile.open(sdist) as packed:
            if not any(name.endswith("/docs/start/quickstart.md") for name in packed.getnames()):
                sys.exit("the sdist lacks the documents")
        venv.create(folder / "clean", with_pip=True)
        python = folder / "clean" / "bin" / "python"
        for what, how in ((wheel, []), (sdist, ["--force-reinstall", "--no-deps"])):
            extra = "[cli]" if what == wheel else ""
            run(python, "-m", "pip", "install", "-q", *how, f"{what}{extra}", folder=folder)
            (empty := folder / f"tried {what.suffix}").mkdir()
            run(python, "-c", TRIED.format(folder=folder / "clean"), folder=empty)
            said = run(python.parent / "dpcausal", "--version", folder=empty)
            print(f"{what.name}: installs, imports, answers, {said.strip()}")


if __name__ == "__main__":
    main()
