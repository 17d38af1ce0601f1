"""Print reports with the system's Chromium: two A4 pages to sign, then the appendix where it is open."""

import subprocess
import sys
import tempfile
from pathlib import Path

CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]


def pages(report: Path) -> list[str]:
    """Return the text of each printed page; all of them are A4."""
    with tempfile.TemporaryDirectory() as folder:
        pdf = Path(folder) / "report.pdf"
        words = [*CHROMIUM, f"--print-to-pdf={pdf}", report.absolute().as_uri()]
        subprocess.run(words, check=True, capture_output=True)
        described = subprocess.run(["pdfinfo", pdf], check=True, capture_output=True, text=True).stdout
        assert "A4" in described, described
        text = subprocess.run(["pdftotext", "-layout", pdf, "-"], check=True, capture_output=True, text=True).stdout
    return text.rstrip("\f\n").split("\f")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        first, second = pages(Path(name))
        assert "Findings" in first and "approval" in second, name
        with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
            file.write(Path(name).read_text("utf-8").replace("<details>", "<details open>"))
            file.flush()
            assert pages(Path(file.name))[2].lstrip().startswith("Appendix"), name
        print(f"{name}: two pages, and an appendix where it is open")
