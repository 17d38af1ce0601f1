"""``make docs``: lay out the pages as they lie in the repository, run their blocks, and let Sphinx build the site.

What a block prints, the value that it ends with and the pictures that it draws are put below it.  The site loads
nothing from elsewhere.  A block that fails, and a warning of Sphinx, end the build.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE, SITE = ROOT / "build" / "pages", ROOT / "build" / "site"
sys.path.insert(0, str(ROOT))
os.environ.setdefault("MPLBACKEND", "agg")

import evidence  # noqa: E402
import reference  # noqa: E402

from tests.docs.pages import DOCS, Block, run_page  # noqa: E402

SHOWN = 40
"""Lines of what a block printed; the rest is counted."""


def main() -> int:
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE / "docs", ignore=shutil.ignore_patterns("site"))
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CITATION.cff"):
        shutil.copy(ROOT / name, SOURCE / name)
    for proof in (ROOT / "src").rglob("*.md"):
        (SOURCE / proof.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(proof, SOURCE / proof.relative_to(ROOT))
    for page in (Path(__file__).with_name("conf.py"), *Path(__file__).parent.glob("*.md")):
        shutil.copy(page, SOURCE)
    shutil.copytree(Path(__file__).with_name("_templates"), SOURCE / "_templates")
    began = time.perf_counter()
    for page in DOCS:
        Executed(page).write()
    print(f"{len(DOCS)} pages ran in {time.perf_counter() - began:.0f} s")
    reference.write_all(SOURCE / "api")
    evidence.write_pages(SOURCE / "evidence")
    from sphinx.cmd.build import main as sphinx

    return sphinx(["--fail-on-warning", "--keep-going", "-q", "-E", "-b", "html", str(SOURCE), str(SITE)])


def listed(page: Path) -> list[str]:
    """Return hidden lists of the pages that an index links to, so that they are below it in the menu."""
    text = page.read_text(encoding="utf-8")
    groups = re.findall(r"^\* \*\*(.+?)\*\*:(.*?)(?=^\* |\n\n|\Z)", text, re.MULTILINE | re.DOTALL) or [("", text)]
    lines = []
    for caption, part in groups:
        lines += ["", "```{toctree}", ":hidden:", ":maxdepth: 1", *([f":caption: {caption}"] if caption else []), ""]
        lines += [*re.findall(r"\]\(([\w-]+)\.md\)", part), "```"]
    return lines


class Executed:
    """A page, and what its blocks showed, by the line that each begins on."""

    def __init__(self, page: Path) -> None:
        self.page, self.copy = page, SOURCE / page.relative_to(ROOT)
        self.said = io.StringIO()
        self.shown: dict[int, str] = {}
        self.figures: list[Any] = []
        self.pictures = 0

    def write(self) -> None:
        before = Path.cwd()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(self.said):
            os.chdir(folder)
            try:
                run_page(self.page, after=self.keep, show=self.show)
            finally:
                os.chdir(before)
        lines, inside = self.page.read_text(encoding="utf-8").splitlines(), 0
        out = []
        for number, line in enumerate(lines, start=1):
            fence = line.startswith("```")
            if not inside and line.startswith("```{evidence}"):
                out += evidence.rendered(line.removeprefix("```{evidence}").strip())
                inside = -1
            elif not inside and line.startswith("```{"):
                out.append(line)
                inside = -2
            elif fence and inside < 0:
                out += [line] if inside == -2 else []
                inside = 0
            elif inside < 0:
                out += [line] if inside == -2 else []
            elif fence and not inside:
                inside = number + 1
                language, _, rest = line.partition(" ")
                # What stands behind the language names a file, or who runs the block.
                label = rest if language == "```toml" else ""
                out += [f"```{{code-block}} {language[3:] or 'text'}"]
                out += [f":caption: {label}"] if label else []
                out += [""]
            elif fence:
                out += [line, self.shown.get(inside, "")]
                inside = 0
            else:
                out.append(line)
        out += listed(self.page) if self.page.name == "index.md" else []
        self.copy.write_text("\n".join(out) + "\n", encoding="utf-8")

    def keep(self, block: Block) -> None:
        text = self.said.getvalue().rstrip()
        self.said.seek(0)
        self.said.truncate()
        parts = []
        if text:
            lines = text.splitlines()
            more = [f"... {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else []
            head = ["", "`````{code-block} text", ":class: printed", ""]
            parts.append("\n".join([*head, *lines[:SHOWN], *more, "`````", ""]))
        parts += self.drawn()
        self.shown[block.line] = "\n".join(parts)

    def show(self, value: object) -> None:
        """Print what a block ends with, or keep it as a picture."""
        if hasattr(value, "get_title") and hasattr(value, "figure"):
            self.figures.append(value.figure)
        elif value is not None and not type(value).__module__.startswith("matplotlib"):
            print(value if type(value).__module__.startswith("pandas") else repr(value))

    def drawn(self) -> list[str]:
        """Save the pictures of a block under the page's name, and return how the page shows them."""
        if "matplotlib.pyplot" in sys.modules:
            import matplotlib.pyplot as plt

            self.figures += [plt.figure(number) for number in plt.get_fignums()]
        parts = []
        for figure in dict.fromkeys(self.figures):
            self.pictures += 1
            name = f"{self.page.stem}-{self.pictures}.png"
            (SOURCE / "docs" / "drawn").mkdir(exist_ok=True)
            figure.savefig(SOURCE / "docs" / "drawn" / name, dpi=110, bbox_inches="tight")
            title = next((axes.get_title() for axes in figure.axes if axes.get_title()), "What the block above draws")
            parts.append(f"\n![{title.splitlines()[0]}](/docs/drawn/{name})\n")
        self.figures = []
        if "matplotlib.pyplot" in sys.modules:
            plt.close("all")
        return parts


if __name__ == "__main__":
    sys.exit(main())
