"""What users read stays plain: no file has more idiom than is recorded."""

import json

from tests.docs.language import RECORD, counts, idioms, sentences


def test_no_file_reads_worse_than_is_recorded() -> None:
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    assert {name: count for name, count in counts().items() if count > recorded.get(name, 0)} == {}


def test_idiom_is_counted_outside_code() -> None:
    assert idioms("The budget was told to nobody here.\n\n```\ntold told told told\n```\n") == 1
    assert [len(words) for words in sentences("One two three four. Five six seven eight nine!")] == [4, 5]
