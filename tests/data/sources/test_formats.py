"""Each format of the page is read right, or refused unpaid with the words that say what to set."""

from pathlib import Path

import pytest

from tests.data.formats import FORMATS, NAMES, PAGE, Format, is_made, page, read_right, refusal

MADE = [pytest.param(one, id=str(one), marks=pytest.mark.skipif(not is_made(one), reason="its program is not here"))
        for one in FORMATS]  # fmt: skip


def test_at_least_forty_files_are_read_and_ten_refused() -> None:
    assert sum(is_made(one) and not one.refused for one in FORMATS) >= 40
    assert sum(bool(one.refused) for one in FORMATS) >= 10


@pytest.mark.parametrize("one", MADE)
def test_a_format_is_read_right_or_refused_with_what_to_set(one: Format, tmp_path: Path) -> None:
    if one.refused:
        assert one.refused in refusal(one, tmp_path)
    else:
        assert read_right(one, tmp_path) == tuple(name for name in NAMES if name not in one.without)


def test_the_page_has_the_table_that_the_formats_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.data.formats"
