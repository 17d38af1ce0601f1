"""The command ``dpcausal ask``: re-analyse a saved release at no privacy cost."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.cli.program import app
from dpcausal.cli.shared import ADJUST_OR_TRIAL, JsonOption, echo, exit_codes, names_in
from dpcausal.data.toml_text import text_of, toml_in
from dpcausal.errors import ParameterError

if TYPE_CHECKING:
    from dpcausal.discovery.knowledge import Knowledge
    from dpcausal.releases.release import Release

KnowledgeOption = Annotated[
    Path | None, typer.Option("--knowledge", help="TOML file: tiers, forbidden and required, as lists of lists.")
]

QUESTIONS = {
    "discover": "discover", "ci-test": "ci_test", "effect": "effect", "regression": "ols", "iv": "iv",
    "mediation": "mediation", "correlation": "partial", "did": "did", "discontinuity": "discontinuity",
}  # fmt: skip
"""What a release can answer, and the method that does."""

Column = Annotated[str | None, typer.Option(help="A column.")]
Columns = Annotated[list[str] | None, typer.Option(help="Columns, as a,b; repeatable.")]
LISTS = "given", "adjust", "regressors", "instruments"


@app.command("ask")
def ask_command(
    release: Annotated[Path, typer.Argument(help="A file of --save-release.")],
    question: Annotated[str, typer.Argument(help=", ".join(QUESTIONS))],
    alpha: Annotated[float | None, typer.Option(help="Significance level. Of discover and ci-test.")] = None,
    x: Annotated[str | None, typer.Option("--x", help="A column. Of ci-test and correlation.")] = None,
    y: Annotated[str | None, typer.Option("--y", help="A column. Of ci-test and correlation.")] = None,
    given: Columns = None,
    max_order: Annotated[int | None, typer.Option(help="Largest conditioning set. Of discover.")] = None,
    search: Annotated[str | None, typer.Option(help="score or pc. Of discover.")] = None,
    knowledge: KnowledgeOption = None,
    treatment: Column = None,
    outcome: Column = None,
    adjust: Annotated[list[str] | None, typer.Option(help="Confounders, as a,b; repeatable. Of effect.")] = None,
    trial: Annotated[bool, typer.Option("--trial", help="Treatment was randomised. Of effect.")] = False,
    groups: Annotated[str | None, typer.Option(help="A column. Of effect.")] = None,
    regressors: Columns = None,
    instruments: Columns = None,
    mediator: Column = None,
    errors: Annotated[str | None, typer.Option(help="homoscedastic, normal or symmetric: what is assumed.")] = None,
    coverage: Annotated[float | None, typer.Option(help="Of the intervals. Of all but discover.")] = None,
    control: Annotated[str | None, typer.Option(help="never or not-yet, of did; a category, of effect.")] = None,
    bandwidth: Annotated[float | None, typer.Option(help="How far records count. Of discontinuity.")] = None,
    curvature: Annotated[float | None, typer.Option(help="Largest second derivative. Of discontinuity.")] = None,
    donut: Annotated[float | None, typer.Option(help="Leave out nearer records. Of discontinuity.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Re-analyse saved results at no privacy cost."""
    stated = {name: value for name, value in locals().items() if value is not None}
    with exit_codes():
        for name in ("release", "question", "as_json"):
            stated.pop(name)
        saved = opened(release)
        if question == "effect" and trial == bool(adjust):
            raise ParameterError(ADJUST_OR_TRIAL, argument="adjust", rule="adjust-or-trial")
        if question == "effect" or not trial:
            del stated["trial"]
        stated |= {"adjust": []} if trial and question == "effect" else {}
        for name in LISTS:
            if stated.get(name):
                stated[name] = names_in(f"--{name}", stated[name])
        if knowledge is not None:
            stated["knowledge"] = knowledge_in(knowledge)
        result = _analysis(saved, question, stated)
        echo(result.to_json() if as_json else f"{result}\nNothing was spent: computed from saved results.")


def opened(path: Path) -> Release:
    from dpcausal.api import Release  # every kind of release is registered

    return Release.from_json(text_of(path, "'dpcausal effect' and others write one with --save-release"))


def knowledge_in(path: Path) -> Knowledge:
    from dpcausal.study.tasks import knowledge_of

    return knowledge_of(toml_in(text_of(path), repr(str(path))), repr(str(path)))


def _analysis(release: Release, question: str, given: dict[str, Any]) -> Any:
    from dpcausal.discovery.methods import READERS

    without_graph = set() if type(release.as_graph_release()) in READERS else {"discover", "ci-test"}
    known = [name for name, method in QUESTIONS.items() if name not in without_graph and hasattr(release, method)]
    if question not in known:
        text = f"this release ({release.kind}) can answer: {', '.join(known)}"
        raise ParameterError(text, argument="question", rule="choice", value=question)
    analysis = getattr(release, QUESTIONS[question])
    parameters = inspect.signature(analysis).parameters
    if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        for name in given:
            if name not in parameters:
                text = f"--{name.replace('_', '-')} does not go with {question}"
                raise ParameterError(text, argument=name, rule="misplaced-option", value=given[name])
    for name, one in parameters.items():
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD and name not in given:
            raise ParameterError(f"{question} needs --{name}", argument=name, rule="missing-argument")
    return analysis(**given)
