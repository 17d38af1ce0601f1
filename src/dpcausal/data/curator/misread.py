"""What a field of a text file may be where it is no number or level as declared: for the curator's check alone."""

from __future__ import annotations

import re
from collections.abc import Iterable

FORMS = {
    "numbers with a decimal comma: declare decimal = ',' under [data] of a study": re.compile(
        r"\s*[+-]?(\d{1,3}([. ']\d{3})+|\d*),\d+\s*|\s*[+-]?\d{1,3}(\.\d{3})*,\s*\d*\s*"
    ),
    "dates or times: write them as numbers, such as years or days since a date": re.compile(
        r"\s*(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})"
        r"([T ]\d{1,2}:\d\d.*)?\s*"
        r"|\s*\d{1,2}:\d\d(:\d\d.*)?\s*"
    ),
    "texts in another encoding than UTF-8: declare encoding under [data] of a study": re.compile(
        r"(?s).*[\udc80-\udcff].*"
    ),
}

ENOUGH = 0.01
"""A form is named where so many of the fields that cannot be read have it."""

LOOKED_AT = 10_000


def likely_forms(fields: Iterable[object]) -> tuple[str, ...]:
    """Return in words what fields that cannot be read as declared look like.

    >>> likely_forms(["1,5", "2,25"])
    ("some look like numbers with a decimal comma: declare decimal = ',' under [data] of a study",)
    """
    texts = [field for field, _ in zip(fields, range(LOOKED_AT), strict=False) if isinstance(field, str) and field]
    return tuple(
        f"some look like {form_name}" for form_name, form in FORMS.items()
        if texts and sum(form.fullmatch(text) is not None for text in texts) >= max(1.0, ENOUGH * len(texts))
    )  # fmt: skip
