"""Before and beside the questions: ``dpcausal demo``, ``check`` and ``explain``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dpcausal.cli.shared import JsonOption, app, exit_codes, show
from dpcausal.errors import ParameterError


@app.command("demo")
def demo_command(
    epsilon: Annotated[float, typer.Option(help="ε of the answer, at most 2.")] = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Answer a question on real health data that comes with statsmodels."""
    with exit_codes():
        from dpcausal.demo import run

        result, ledger = run(epsilon)
        show(result, ledger, as_json)
        if not as_json:
            print("Known from the experiment's design, plans being assigned at random: coinsurance -> visits.")


@app.command("check")
def check_command(
    data: Annotated[Path, typer.Argument(help="A study file; or CSV with a header, or Parquet.")],
    schema: Annotated[Path | None, typer.Option("--schema", help="TOML file of the columns; not of a study.")] = None,
    as_json: JsonOption = False,
) -> None:
    """NOT PRIVATE: what the schema does to the data, for the curator alone.  Spends nothing; exit 1: look again."""
    with exit_codes():
        from dpcausal.data.schema import Schema
        from dpcausal.study.study import Study

        if schema is None and data.suffix != ".toml":
            raise ParameterError("name a study file, or the data and --schema FILE.toml")
        found = Study.open(data).check() if schema is None else Schema.from_toml(schema).check(data)
        print(json.dumps(found.to_dict(), allow_nan=False, ensure_ascii=False) if as_json else found.summary())
        if found.notes:
            raise typer.Exit(1)


@app.command("explain")
def explain_command(
    proof: Annotated[str | None, typer.Argument(help="A claim named in a result's proofs; none: all names.")] = None,
) -> None:
    """Print a claim with its proof, or the names of all claims."""
    with exit_codes():
        from dpcausal.proofs import claims, explain

        print("\n".join(sorted(claims())) if proof is None else explain(proof))
