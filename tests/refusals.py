"""What tests of refusals share: the rule that an error names, whatever its text says; no sentence ends in two marks."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from dpcausal.errors import DpCausalError


def rule_of(call: Callable[[], Any], error: type[DpCausalError] = DpCausalError) -> str:
    """Return the rule for which a call is refused."""
    with pytest.raises(error) as refused:
        call()
    assert re.search(r"[.:]\s*[.:]\s", str(refused.value)) is None
    return refused.value.rule


def rule_of_command(refused: Any) -> str:
    """Return the rule for which a command ended; empty if it ended otherwise."""
    found = refused.exception
    while found is not None and not isinstance(found, DpCausalError):
        found = found.__cause__ or found.__context__
    return "" if found is None else found.rule
