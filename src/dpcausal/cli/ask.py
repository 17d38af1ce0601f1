"""The command ``dpcausal ask``: re-analyse a saved release at no privacy cost."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.cli.program import app
from dpcausal.cli.shared import JsonOption, echo, exit_codes, names_in
from dpcausal.data.toml_text import text_of, toml_in
from dpcausal.errors import ParameterError

if TYPE_CHECKING:
    from dpcausal.discovery.knowledge import Knowledge
    from dpcausal.releases.release import Release

KnowledgeOption = Annotated[
    Path | None, typer.Option("--knowledge", help="TOML file: tiers, forbidden and required, as lists of lists.")
]

QUESTIONS = {
    "discover": "discover", "ci-test": "ci_test", "effect": "effect", "regression": "ols", "did": "did",
    "discontinuity": "discontinuity",
}  # fmt: skip
"""What a release can answer, and the method that does."""

NEEDED = {"ci-test": ("x", "y"), "effect": ("treatment", "outcome"), "regression": ("outcome", "regressors")}


@app.command("ask")
def ask_command(
    release: Annotated[Path, typer.Argument(help="A file of --save-release.")],
    question: Annotated[str, typer.Argument(help="discover, ci-test, effect, regression, did or discontinuity.")],
    alpha: Annotated[float | None, typer.Option(help="Significance level. Of discover and ci-test.")] = None,
    x: Annotated[str | None, typer.Option("--x", help="A column. Of ci-test.")] = None,
    y: Annotated[str | None, typer.Option("--y", help="A column. Of ci-test.")] = None,
    given: Annotated[list[str] | None, typer.Option(help="Columns, as a,b; repeatable. Of ci-test.")] = None,
    max_order: Annotated[int | None, typer.Option(help="Largest conditioning set. Of discover.")] = None,
    search: Annotated[str | None, typer.Option(help="score or pc. Of discover.")] = None,
    knowledge: KnowledgeOption = None,
    treatment: Annotated[str | None, typer.Option(help="A column. Of effect.")] = None,
    outcome: Annotated[str | None, typer.Option(help="A column. Of effect and regression.")] = None,
    adjust: Annotated[list[str] | None, typer.Option(help="Columns, as a,b; repeatable. Of effect.")] = None,
    groups: Annotated[str | None, typer.Option(help="A column. Of effect.")] = None,
    regressors: Annotated[list[str] | None, typer.Option(help="Columns, as a,b; repeatable. Of regression.")] = None,
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
        for name in ("given", "adjust", "regressors"):
            if name in stated:
                stated[name] = names_in(f"--{name}", stated[name])
        if knowledge is not None:
            stated["knowledge"] = knowledge_in(knowledge)
        result = _analysis(opened(release), question, stated)
        echo(result.to_json() if as_json else f"{result}\nNothing was spent: computed from saved results.")


def opened(path: Path) -> Release:
    from dpcausal.api import Release  # every kind of release is registered

    return Release.from_json(text_of(path, "'dpcausal effect' and others write one with --save-release"))


def knowledge_in(path: Path) -> Knowledge:
    from dpcausal.study.tasks import knowledge_of

    return knowledge_of(toml_in(text_of(path), repr(str(path))), repr(str(path)))


def _analysis(release: Release, question: str, given: dict[str, Any]) -> Any:
    analysis = getattr(release, QUESTIONS.get(question, ""), None)
    if analysis is None:
        known = [name for name, method in QUESTIONS.items() if hasattr(release, method)]
        text = f"this release ({release.kind}) can answer: {', '.join(known)}"
        raise ParameterError(text, argument="question", rule="choice", value=question)
    parameters = inspect.signature(analysis).parameters
    if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        for name in given:
            if name not in parameters:
                text = f"--{name.replace('_', '-')} does not go with {question}"
                raise ParameterError(text, argument=name, rule="misplaced-option", value=given[name])
    for name in NEEDED.get(question, ()):
        if name not in given:
            raise ParameterError(f"{question} needs --{name}", argument=name, rule="missing-argument")
    return analysis(**given)
