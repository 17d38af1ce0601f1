"""What results assume and do not show, by task."""

from __future__ import annotations

ASSUMPTIONS: dict[str, tuple[str, ...]] = {
    "effect": ("No unmeasured confounding: every common cause of treatment and outcome is adjusted for.",),
    "ci_test": ("The test captures how both columns depend on what is given.",),
    "direction": ("Additive independent noise, no common cause, no selection and no feedback.",),
    "discover": ("No unmeasured common causes, and no independence by accident (faithfulness).",),
    "did": ("Parallel trends: without treatment all cohorts would have changed alike.", "No anticipation."),
    "discontinuity": ("Nothing else changes at the cutoff, and nobody chooses their side of it.",),
    "synthetic_control": ("The treatment does not affect the control units, and the treated unit would have gone on "
                          "like them.",),
}  # fmt: skip

LIMITS: dict[str, tuple[str, ...]] = {
    "effect": ("How or why the treatment works.",),
    "ci_test": ("How large the association is. No detection is no evidence of independence.",),
    "direction": ("A proof of the direction: observational data give weak evidence.",),
    "discover": ("Associations that are weak or lost in the noise. A missing edge is no evidence of independence.",),
    "did": ("Effects on persons without an outcome in every period.",),
    "discontinuity": ("Effects away from the cutoff.",),
    "synthetic_control": ("Effects on other units.",),
}

MISSING = {
    "drop": "Records with a missing value in a question are left out of it; their number is confidential.",
    "level": "A missing category counts as a category; records with a missing number are left out.",
    "impute": "A missing value counts as the midpoint of its bounds or the first category.",
}
