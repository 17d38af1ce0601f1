"""The command ``dpcausal ask``: analyse a saved release at no privacy cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.cli.shared import JsonOption, app, echo, exit_codes, names_in
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
"""What may be asked of a release, and the method that answers."""


@app.command("ask")
def ask_command(
    release: Annotated[Path, typer.Argument(help="A file of --save-release.")],
    question: Annotated[str, typer.Argument(help="discover, ci-test, effect, regression, did or discontinuity.")],
    alpha: Annotated[float | None, typer.Option(help="Level of the tests. Of discover and ci-test.")] = None,
    x: Annotated[str | None, typer.Option("--x", help="A column. Of ci-test.")] = None,
    y: Annotated[str | None, typer.Option("--y", help="A column. Of ci-test.")] = None,
    known: Annotated[list[str] | None, typer.Option("--given", help="Columns, as a,b; repeatable. Of ci-test.")] = None,
    max_order: Annotated[int | None, typer.Option(help="Largest conditioning set. Of discover.")] = None,
    search: Annotated[str | None, typer.Option(help="score or pc. Of discover.")] = None,
    knowledge: KnowledgeOption = None,
    treatment: Annotated[str | None, typer.Option(help="A column. Of effect.")] = None,
    outcome: Annotated[str | None, typer.Option(help="A column. Of effect and regression.")] = None,
    adjust: Annotated[list[str] | None, typer.Option(help="Columns, as a,b; repeatable. Of effect.")] = None,
    groups: Annotated[str | None, typer.Option(help="A column. Of effect.")] = None,
    regressors: Annotated[list[str] | None, typer.Option(help="Columns, as a,b; repeatable. Of regression.")] = None,
    coverage: Annotated[float | None, typer.Option(help="Of the intervals. Of all but discover.")] = None,
    control: Annotated[str | None, typer.Option(help="never or not-yet. Of did; of effect a level.")] = None,
    bandwidth: Annotated[float | None, typer.Option(help="How far records count. Of discontinuity.")] = None,
    curvature: Annotated[float | None, typer.Option(help="The largest there is. Of discontinuity.")] = None,
    donut: Annotated[float | None, typer.Option(help="Records nearer do not count. Of discontinuity.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a saved release again: it costs nothing, however often, and reads no data."""
    with exit_codes():
        given: dict[str, Any] = {
            "alpha": alpha, "x": x, "y": y, "given": names_in("--given", known) or None,
            "max_order": max_order, "search": search, "treatment": treatment, "outcome": outcome,
            "adjust": names_in("--adjust", adjust) or None, "groups": groups, "coverage": coverage,
            "control": control, "bandwidth": bandwidth, "curvature": curvature, "donut": donut,
            "regressors": names_in("--regressors", regressors) or None,
            "knowledge": None if knowledge is None else knowledge_in(knowledge),
        }  # fmt: skip
        stated = {name: value for name, value in given.items() if value is not None}
        result = _analysis(opened(release), question, stated)
        if as_json:
            echo(result.to_json())
        else:
            echo(f"{result.summary()}\nCost nothing: computed from what was released before.")


def opened(path: Path) -> Release:
    """Return the release of a file."""
    from dpcausal.api import Release  # every kind of release is registered

    try:
        return Release.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParameterError(f"there is no file {str(path)!r}: discover and effect --save-release make one") from None
    except (OSError, UnicodeDecodeError):
        raise ParameterError(f"{str(path)!r} cannot be read as a text file in UTF-8") from None


def knowledge_in(path: Path) -> Knowledge:
    """Return what a TOML file says is known."""
    from dpcausal.data.toml_text import toml_in
    from dpcausal.discovery.knowledge import Knowledge

    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        raise ParameterError(f"{str(path)!r} cannot be read as a text file in UTF-8") from None
    groups = toml_in(text, repr(str(path)))
    parts = {"tiers", "forbidden", "required"}
    if set(groups) - parts or not all(isinstance(part, list) for group in groups.values() for part in group):
        raise ParameterError(f"{str(path)!r} holds tiers, forbidden and required, each a list of lists of names")
    return Knowledge(**{name: [tuple(part) for part in group] for name, group in groups.items()})


def _analysis(release: Release, question: str, given: dict[str, Any]) -> Any:
    import inspect

    way = getattr(release, QUESTIONS.get(question, ""), None)
    if way is None:
        known = [name for name, method in QUESTIONS.items() if hasattr(release, method)]
        raise ParameterError(f"this release ({release.kind}) can be asked: {', '.join(known)}")
    parameters = inspect.signature(way).parameters
    if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        unknown = [name for name in given if name not in parameters]
        if unknown:
            raise ParameterError(f"--{unknown[0].replace('_', '-')} does not go with {question}")
    required = {
        "ci-test": ("x", "y"), "effect": ("treatment", "outcome"), "regression": ("outcome", "regressors"),
    }.get(question, ())  # fmt: skip
    lacking = [name for name in required if name not in given]
    if lacking:
        raise ParameterError(f"{question} needs --{lacking[0]}")
    return way(**given)
