"""What a report's results rely on, and what they do not show."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from dpcausal.data.schema import Bounded
from dpcausal.effects.did.result import GroupTimeEffects
from dpcausal.effects.rdd.result import Discontinuity
from dpcausal.effects.result import Effect
from dpcausal.independence.result import Independence
from dpcausal.result import number_text
from dpcausal.study.report.inputs import ReportInputs
from dpcausal.study.status import QuestionStatus
from dpcausal.study.wording import answers_of
from dpcausal.synthetic_control.result import SyntheticControl

MOST_ASSUMPTIONS, MOST_LIMITS = 5, 4

CONFOUNDING = "all confounders are adjusted for"
IDENTIFIED: dict[type, str] = {
    Effect: CONFOUNDING,
    GroupTimeEffects: "all cohorts would have changed alike without treatment (parallel trends) and none changed "
                      "because treatment was to come (no anticipation)",
    Discontinuity: "nothing but the treatment changes at the cutoff, so that the mean outcome would be continuous "
                   "there, and nobody chooses their side of it",
    SyntheticControl: "the treatment does not affect the control units, and the treated unit would have continued like "
                      "them",
}  # fmt: skip
"""When the estimate of a design is an effect."""
BY_CUTOFF = "the cutoff changes the outcome only through the treatment, and makes nobody avoid it"
TASKS: dict[str, tuple[str, ...]] = {
    "direction": ("Additive independent noise, no common cause, no selection and no feedback.",),
    "discover": ("No unmeasured common causes, and no independence by accident (faithfulness).",),
}
MODELS = {
    "partially-linear": "The effect is the same for all; the outcome, or the probability of treatment, is linear in "
                        "the confounders.",
    "aipw": "The outcome, or the probability of treatment, is about linear in the confounders.",
    "boosted-aipw": "The outcome, or the probability of treatment, is a sum of functions of one or two confounders.",
}  # fmt: skip
STATED: dict[str, Any] = {
    "errors": {"homoscedastic": "the outcome's residuals have the same distribution everywhere",
               "normal": "the outcome's residuals are normal with constant variance",
               "symmetric": "the outcome's residuals are symmetric everywhere"},
    "light_tails": {True: "the outcome's residuals have no long tail on one side"},
    "lines_only": {True: "the linear models are right"},
    "sizes": "the arms have the stated sizes", "probabilities": "treatment was assigned with the stated probabilities",
    "curvature": "the mean outcome bends by no more than the stated curvature",
}  # fmt: skip
"""What an analyst can state by an option of a method or an argument, all or some of its values."""
LIMITS = {
    "direction": "A proof of the direction: observational data give weak evidence.",
    "discover": "Weak associations, or those hidden by the noise. A missing edge is no evidence of independence.",
    "did": "Effects on persons without an outcome in every period.",
    "discontinuity": "Effects away from the cutoff.",
    "synthetic_control": "Effects on other units.",
}
SIZE, OTHER_PEOPLE = "How large the association is.", "Anything about people, places or times outside these data."
SINGULAR = {"direction_all": "direction", "ci_tests": "ci_test", "synthetic_controls": "synthetic_control"}
MISSING = {
    "drop": "Each analysis leaves out records that miss a value it needs; their exact number is confidential. Its "
            "result holds for everyone only if missing values are unrelated to treatment and outcome.",
    "level": "A missing category counts as a category of its own. Records that miss a number are left out.",
    "impute": "A missing value is set to the midpoint of its bounds, or to the first category.",
}  # fmt: skip


def identification(answer: Any) -> str:
    """Return when an estimate is an effect, as a clause; empty of other results."""
    clause = IDENTIFIED.get(type(answer), "")
    return f"{clause}, and {BY_CUTOFF}" if isinstance(answer, Discontinuity) and answer.treatment else clause


def stated_assumptions(one: QuestionStatus) -> list[str]:
    """Return what the analyst stated of the data by options of the method or arguments, as clauses."""
    given = {**one.question.arguments, **one.settings}
    found = ((STATED[name], value) for name, value in given.items() if name in STATED and value is not None)
    clauses = (text.get(value, "") if isinstance(text, dict) else text for text, value in found)
    return [clause for clause in clauses if clause]


def assumption_lines(inputs: ReportInputs) -> tuple[str, ...]:
    """Return those that identify and model the estimates, then general ones while there is room."""
    file, wording, lines = inputs.file, inputs.wording, list[str]()
    design = file.design
    if design is not None and inputs.randomised:
        within = f" within {wording.listed(design.within)}" if design.within else ""
        lines.append(f"Random assignment{within}, and no refusal or drop-out that depends on the treatment.")
    sensitivity = defaultdict[str, list[int]](list)
    for number, one in enumerate(inputs.plan.questions, start=1):
        is_random = wording.randomises(one.question.arguments.get("treatment"))
        for answer in answers_of(one.answer):
            clause = identification(answer)
            if clause and not (is_random and isinstance(answer, Effect)):
                unmeasured = "No unmeasured confounding: " if clause == CONFOUNDING else ""
                text = f"{unmeasured}{clause}."
                lines.append(f"{text[:1].upper()}{text[1:]}")
            if isinstance(answer, Effect) and answer.e_value and answer.sensitivity() and not is_random:
                limit = number_text(answer.e_value_limit or 1)
                lines.append(f"No confounder with risk ratios of {number_text(answer.e_value)} with both treatment and "
                             f"outcome: it could explain the estimate ({limit}: the end of the interval).")  # fmt: skip
                sensitivity[lines[-1]].append(number)
        if one.answer is not None:
            stated = "; ".join(stated_assumptions(one))
            both = MODELS.get(one.method, ""), f"Stated by the analyst and not checked: {stated}." if stated else ""
            lines += [*TASKS.get(SINGULAR.get(one.question.task, one.question.task), ()),
                      *filter(None, [" ".join(filter(None, both))])]  # fmt: skip
    numbered = {text: f"Question {', '.join(map(str, numbers))}: {text[:1].lower()}{text[1:]}"
                for text, numbers in sensitivity.items() if len(sensitivity) > 1}  # fmt: skip
    essential = [numbered.get(text, text) for text in dict.fromkeys(lines)]
    lines = [_independence(inputs)]
    if file.weight is not None:
        most = f"A weight above {file.weight.largest:g} counts as {file.weight.largest:g}."
        lines.append(f"Rows are weighted by {wording.label(file.weight.column)}, for the population that the weights "
                     f"represent. {most}")  # fmt: skip
    if not file.panel and file.missing in MISSING:
        lines.append(MISSING[file.missing])
    for name in dict.fromkeys(str(question.arguments.get("outcome")) for question, _ in inputs.results):
        column = None if inputs.schema is None else inputs.schema.get(name)
        if isinstance(column, Bounded):
            lower, upper, label = column.written(column.lower), column.written(column.upper), wording.label(name)
            lines.append(f"{label[:1].upper()}{label[1:]} outside {lower} to {upper} counts as the nearer bound.")
    room = max(MOST_ASSUMPTIONS - len(essential), 0)
    return (*essential, *lines[:room])


def _independence(inputs: ReportInputs) -> str:
    clusters = [answer.cluster for _, answer in inputs.results if getattr(answer, "cluster", "")]
    if clusters:
        return f"Records that differ in {inputs.wording.label(clusters[0])} are independent."
    unit = inputs.file.design.unit_of_assignment if inputs.file.design else None
    return f"The {inputs.plan.records} are treated as independent: " + (
        f"those of one {unit} are not, so intervals may be too narrow and p-values too small." if unit else
        "if they are clustered (clinics, households), intervals are too narrow and p-values too small."
    )  # fmt: skip


def limit_lines(inputs: ReportInputs) -> tuple[str, ...]:
    lines, tests = list[str](), list[Independence]()
    sizes = [{answer.treatment, answer.outcome} for _, answer in inputs.results
             if isinstance(answer, Effect) and answer.estimate is not None]  # fmt: skip
    for question, answer in inputs.results:
        task = SINGULAR.get(question.task, question.task)
        lines += [LIMITS[task]] if task in LIMITS else []
        if isinstance(answer, Effect):
            what = "effect" if inputs.wording.is_causal(answer) else "difference"
            lines.append(f"How the {what} comes about.")
        if isinstance(answer, Independence):
            tests.append(answer)
    found = [one for one in tests if one.decision == "dependent"]
    unknown = [one for one in found if {*one.x, *one.y} not in sizes]
    if unknown and not sizes:
        lines.append(SIZE)
    else:
        lines += [f"How large the association of {inputs.wording.listed([*one.x, *one.y])} is." for one in unknown]
    if len(found) < len(tests):
        lines.append("Independence: an association that is too weak for the test may exist.")
    for one in [] if inputs.randomised else found:
        given = inputs.wording.listed(one.given) or "nothing"
        lines.append(f"What causes the association: the test adjusts for {given} only.")
    return (*list(dict.fromkeys(lines))[: MOST_LIMITS - 1], OTHER_PEOPLE)
