"""A study as a record of the Differential Privacy Deployments Registry, tier 3, for a person to finish."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from dpcausal.privacy.loss import ZCDP, ApproxDP, PureDP
from dpcausal.study.report.content import FILL, ReportInputs
from dpcausal.study.report.wording import loss_in_words, public_in_words, question_in_words, unit_in_words


def record(facts: ReportInputs) -> dict[str, Any]:
    """Return the record."""
    told, said = facts.told, facts.told.disclosure
    guarantees, budget = facts.guarantees, facts.budget
    units = sorted({one.unit.value for one in guarantees}) or ["person" if told.person else "row"]
    details = dict.fromkeys(unit_in_words(one.unit, one.relation.value) for one in guarantees)
    public = public_in_words(words for one in guarantees for words in one.public)
    variants = {PureDP: "Pure DP", ApproxDP: "Approximate DP", ZCDP: "Zero-concentrated DP"}
    asked = " ".join(question_in_words(one.question) for one in facts.standings)
    about = said.description or "Causal estimates and tests under differential privacy."
    columns = ", ".join(told.columns) or "of a panel"
    methods = "; ".join(dict.fromkeys(f"{one.question.task} by {one.method} at {loss_in_words(one.cost)}"
                                      for one in facts.standings if one.answer is not None))  # fmt: skip
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", told.title.lower()).strip("-")[:80] or "study",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": told.title,
                "data_curators": [said.curators or FILL.format("who publishes it")],
                "intended_use": said.intended_use or FILL.format("intended use"),
                "data_product_type": "Summary statistics",
                "data_product_region": said.region or FILL.format("region the data describe"),
                "description": f"{about} {asked}",
                "publication_date": f"{datetime.now(UTC):%Y-%m-%d}",
            },
            "dp_variant": {
                "variant_name": variants.get(type(budget), "Custom"),
                "data_domain": f"Tables of {facts.n} records with the columns {columns}, "
                               "bounds and levels declared in public.",
                "unprotected_quantities": public or "the number of records, all arguments",
            },
            "privacy_loss": {
                "privacy_unit": "; ".join(units),
                "privacy_unit_details": " ".join(details) or "Replace-one neighbours.",
                "privacy_parameters": {
                    name: float(getattr(budget, name)) for name in ("epsilon", "delta", "rho") if hasattr(budget, name)
                },
                "privacy_parameters_details": f"The whole budget; left of it: {facts.left}.",
            },
            "deployment_model": {
                "model_name": "Central",
                "actors": said.actors or FILL.format("who may ask, who sees the answers, whom they trust"),
                "release_type": "Many releases" if len(facts.entries) > 1 else "One release",
                "release_type_details": "All releases are paid from one budget that is never refilled.",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
                "access_type_details": "The questions stand in a study file before the data are asked.",
            },
            "accounting": {
                "post_processing": "Intervals, p-values, graphs and pictures are computed from released numbers alone.",
                "composition": "Adaptive composition by a privacy filter: sums of epsilon and delta, or zCDP; every "
                               f"call is in a hash-chained ledger, head {facts.head or 'none yet'}.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": said.looked_at_before or FILL.format(
                    "any look at the data before, and how bounds and questions were chosen"),
                "mechanisms": f"{methods or 'None yet'}. Library: dpcausal {version('dpcausal')} with OpenDP's exact "
                              "samplers, noise from the operating system; integer or fixed-point answers against "
                              "floating-point leaks; the spend is on disk before the noise is drawn; timing is not "
                              f"defended. Proofs: {', '.join(facts.proofs) or 'none yet'}.",
                "justification": said.justification or FILL.format("why this budget and these methods"),
            },
            "administrative": {"registry_authors": [said.contact or FILL.format("who wrote this record")]},
        },
    }  # fmt: skip


def yaml(value: Any, depth: int = 0) -> str:
    """Return a record as YAML: mappings and lists of texts and numbers, each text quoted as JSON, which YAML reads.

    Examples
    --------
    >>> print(yaml({"a": {"b": [1, "x: y"]}}), end="")
    a:
      b:
        - 1
        - "x: y"
    """
    pad = "  " * depth
    if isinstance(value, dict):
        return "".join(
            f"{pad}{key}:\n{yaml(part, depth + 1)}" if isinstance(part, (dict, list)) else f"{pad}{key}: {_one(part)}\n"
            for key, part in value.items()
        )
    return "".join(f"{pad}- {_one(part)}\n" for part in value)


def _one(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.17g}" if "e" not in repr(value) else f"{value:.20f}".rstrip("0")
    return json.dumps(value, ensure_ascii=False)
