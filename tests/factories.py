"""What tests build alike: a table on a ledger of its own, and what is refused before anything is spent."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.direction import api as direction
from dpcausal.direction.scores import anm
from dpcausal.discovery import support
from dpcausal.errors import DpCausalError


def table(columns: Any, schema: Mapping[str, Any], loss: Any = None, **how: Any) -> dpc.Table:
    """Return a table whose ledger has the loss, or no privacy."""
    person = {name: how[name] for name in ("person",) if how.get(name)}
    exact = loss is None or isinstance(loss, dpc.NoPrivacy)
    ledger = dpc.Ledger.without_privacy() if exact else dpc.Ledger.in_memory(loss, **person)
    return dpc.Table(columns, schema if isinstance(schema, dpc.Schema) else dpc.Schema(schema), ledger, **how)


def told(answer: Any) -> dict[str, Any]:
    """Return all that an answer says but which spend it names."""
    said: dict[str, Any] = json.loads(answer.to_json())
    said.get("guarantee", {}).pop("cached", None)
    for parts in (said.get("tests"), said.get("directions")):
        for part in parts if isinstance(parts, list) else []:
            part["guarantee"].pop("cached")
    release = getattr(answer, "release", None)
    return said | ({} if release is None else {"numbers": release.numbers(), "n": release.n})


def make_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small interpolation tables, no rehearsal and few redraws: none of it bears on what one row can move."""
    monkeypatch.setattr(anm, "TABLE_PLACES", 65)
    monkeypatch.setattr(direction, "rehearse", lambda score: None)
    monkeypatch.setattr(support, "REDRAWS", support.LEAST_REDRAWS)


def refused_unpaid(asked: dpc.Table, error: type[DpCausalError], call: Any, *arguments: Any, **options: Any) -> str:
    """Return the text of the error by which a call about a table is refused; nothing was spent."""
    with pytest.raises(error) as refused:
        call(asked, *arguments, **options)
    assert asked.ledger.entries() == []
    return str(refused.value)
