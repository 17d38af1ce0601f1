"""What users read stays plain: no file has more idiom, long sentences or words than is recorded."""

import json
from pathlib import Path

from tests.docs.language import RECORD, counts, of_page, sentences


def test_no_file_reads_worse_than_is_recorded() -> None:
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    nothing = {"idiom": 0, "long": 0, "over": 0}
    worse = {
        f"{name}: {kind}": (one[kind], recorded.get(name, nothing)[kind])
        for name, one in counts().items() for kind in one if one[kind] > recorded.get(name, nothing)[kind]
    }  # fmt: skip
    assert worse == {}


def test_idiom_long_sentences_and_long_pages_are_counted(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"The budget was told to nobody here.\n\n{'word ' * 26}.\n\n```\ntold told told told\n```\n")
    assert of_page(page) == {"idiom": 1, "long": 1, "over": 0}
    page.write_text("word " * 1300)
    assert of_page(page)["over"] == 100
    assert [len(words) for words in sentences("One two three four. Five six seven eight nine!")] == [4, 5]
