"""The commands ``dpcausal demo``, ``check`` and ``explain``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dpcausal.cli.options import WeightOption, weight_of
from dpcausal.cli.shared import DATA, JsonOption, app, echo, exit_codes, printed_or
from dpcausal.errors import ParameterError

DEMO = Path("rand-study")


@app.command("demo")
def demo_command(
    folder: Annotated[Path, typer.Option(help="Where the data, the study file and its report go.")] = DEMO,
    as_json: JsonOption = False,
) -> None:
    """A whole study on real health data that comes with statsmodels; the report's path is printed last."""
    with exit_codes():
        from dpcausal.cli.study import announce, answers
        from dpcausal.demo import compared, run

        result, report = run(folder, announce)
        with printed_or(f"the study and its report are written: {report}"):
            if as_json:
                echo(result.to_json())
                return
            echo("\n".join([*answers(result), "", *compared(result), ""]))
            echo(f"The study: {folder / 'study.toml'}; left of its budget: {result.remaining}. Its report:\n{report}")


@app.command("check")
def check_command(
    data: Annotated[str, typer.Argument(metavar="DATA", help=f"A study file; or {DATA}")],
    schema: Annotated[Path | None, typer.Option("--schema", help="TOML file of the columns; not of a study.")] = None,
    weight: WeightOption = None,
    as_json: JsonOption = False,
) -> None:
    """NOT PRIVATE: what the schema does to the data, for the curator alone.  Spends nothing; exit 1: look again."""
    with exit_codes():
        from dpcausal.data.schema import Schema
        from dpcausal.study.study import Study

        if schema is None and not data.endswith(".toml"):
            raise ParameterError("name a study file, or the data and --schema FILE.toml")
        if schema is None:
            check = Study.open(data).check()
        else:
            check = Schema.from_toml(schema).check(data, weight=None if weight is None else weight_of(weight))
        echo(json.dumps(check.to_dict(), allow_nan=False, ensure_ascii=False) if as_json else check.summary())
        if check.notes:
            raise typer.Exit(1)


@app.command("explain")
def explain_command(
    proof: Annotated[str | None, typer.Argument(help="A claim named in a result's proofs; none: all names.")] = None,
) -> None:
    """Print a claim with its proof, or the names of all claims."""
    with exit_codes():
        from dpcausal.claims import claims, explain

        if proof is not None and proof not in claims():
            _check_no_method(proof)
        echo("\n".join(sorted(claims())) if proof is None else explain(proof))


def _check_no_method(name: str) -> None:
    """Say on which claims a method rests, where they are the same for every question; its results name them all."""
    from dpcausal.privacy.loss import PureDP
    from dpcausal.study.tasks import TASKS

    kind = next((kinds[name] for _, kinds in TASKS.values() if name in kinds and name != "auto"), None)
    if kind is None:
        return
    try:
        rests = f"it rests on {', '.join(kind().proofs_of(None, PureDP(1)))}"
    except (TypeError, AttributeError, ParameterError):
        rests = "what it rests on depends on the question"
    raise ParameterError(f"{name} is a method: {rests}; each result names its claims")
