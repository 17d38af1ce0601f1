"""A study as a record of the Differential Privacy Deployments Registry, tier 3, for a person to finish."""

import json
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from dpcausal.privacy.loss import ZCDP, ApproxDP, PureDP
from dpcausal.study.report.findings import FILL
from dpcausal.study.report.inputs import ReportInputs
from dpcausal.study.wording import public_text, unit_text


def registry_record(inputs: ReportInputs) -> dict[str, Any]:
    file, disclosure = inputs.file, inputs.file.disclosure
    guarantees, budget = inputs.guarantees, inputs.plan.budget
    units = sorted({one.unit.value for one in guarantees}) or ["person" if file.person else "row"]
    details = dict.fromkeys(f"Protected: {unit_text(one.unit)}, under {one.relation.value}." for one in guarantees)
    public = public_text(text for one in guarantees for text in one.public)
    variants = {PureDP: "Pure DP", ApproxDP: "Approximate DP", ZCDP: "Zero-concentrated DP"}
    questions = " ".join(inputs.wording.question(one.question) for one in inputs.plan.questions)
    about = disclosure.description or "Causal estimates and tests under differential privacy."
    columns = ", ".join(file.columns) or "of a panel"
    methods = "; ".join(dict.fromkeys(f"{one.question.task} by {one.method} at {one.cost}"
                                      for one in inputs.plan.questions if one.answer is not None))  # fmt: skip
    return {
        "url_slug": _slug(file.title),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": file.title,
                "data_curators": [disclosure.curators or FILL.format("who publishes it")],
                "intended_use": disclosure.intended_use or FILL.format("intended use"),
                "data_product_type": "Summary statistics",
                "data_product_region": disclosure.region or FILL.format("region the data describe"),
                "description": f"{about} {questions}",
                "publication_date": f"{datetime.now(UTC):%Y-%m-%d}",
            },
            "dp_variant": {
                "variant_name": variants.get(type(budget), "Custom"),
                "data_domain": f"Tables of {inputs.plan.n} records with the columns {columns}, "
                               "bounds and levels declared in public.",
                "unprotected_quantities": public or "the number of records, all arguments",
            },
            "privacy_loss": {
                "privacy_unit": "; ".join(units),
                "privacy_unit_details": " ".join(details) or "Replace-one neighbours.",
                "privacy_parameters": {
                    name: float(getattr(budget, name)) for name in ("epsilon", "delta", "rho") if hasattr(budget, name)
                },
                "privacy_parameters_details": f"The whole budget; left of it: {inputs.plan.left}.",
            },
            "deployment_model": {
                "model_name": "Central",
                "actors": disclosure.actors or FILL.format("who may ask, who sees the answers, whom they trust"),
                "release_type": "Many releases" if len(inputs.entries) > 1 else "One release",
                "release_type_details": inputs.lifetime or "All releases are paid from one budget, never refilled.",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
                "access_type_details": "The study file lists the questions; the ledger records when each was answered.",
            },
            "accounting": {
                "post_processing": "Intervals, p-values, graphs and pictures are computed from released numbers alone.",
                "composition": "Adaptive composition by a privacy filter: sums of epsilon and delta, or zCDP; every "
                               f"call is in a hash-chained ledger, head {inputs.plan.head or 'none yet'}.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": disclosure.looked_at_before or FILL.format(
                    "any look at the data before, and how bounds and questions were chosen"),
                "mechanisms": f"{methods or 'None yet'}. Library: dpcausal {version('dpcausal')} with OpenDP's exact "
                              "samplers, noise from the operating system; integer or fixed-point answers against "
                              "floating-point leaks; the spend is on disk before the noise is drawn; timing is not "
                              f"defended. Proofs: {', '.join(inputs.proofs) or 'none yet'}.",
                "justification": disclosure.justification or FILL.format("why this budget and these methods"),
            },
            "administrative": {"registry_authors": [disclosure.contact or FILL.format("who wrote this record")]},
        },
    }  # fmt: skip


def _slug(title: str) -> str:
    """Return a title as part of an address.

    >>> _slug("Did free care help?")
    'did-free-care-help'
    """
    letters = "".join(one if one.isascii() and one.isalnum() else " " for one in title.lower())
    return "-".join(letters.split())[:80] or "study"


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
            f"{pad}{key}:\n{yaml(part, depth + 1)}"
            if isinstance(part, (dict, list))
            else f"{pad}{key}: {_yaml_scalar(part)}\n"
            for key, part in value.items()
        )
    return "".join(f"{pad}- {_yaml_scalar(part)}\n" for part in value)


def _yaml_scalar(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.17g}" if "e" not in repr(value) else f"{value:.20f}".rstrip("0")
    return json.dumps(value, ensure_ascii=False)
