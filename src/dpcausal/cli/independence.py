"""The command ``dpcausal ci-test``."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from dpcausal.cli.methods import takes_method
from dpcausal.cli.records import IdsOption, MissingOption, PersonOption, Records, WhereOption
from dpcausal.cli.shared import (
    DeltaOption,
    EpsilonOption,
    JsonOption,
    LargeOption,
    LedgerOption,
    RhoOption,
    SchemaOption,
    app,
    exit_codes,
    loss_from,
    names_in,
    show_answer,
)
from dpcausal.independence.methods import METHODS
from dpcausal.papers import TESTS

WAYS = {
    name: kind for name, kind in {**METHODS, **TESTS}.items() if "model_x" not in {field.name for field in fields(kind)}
}
"""What can be asked in words: a law of x given z is a Python object."""


@app.command("ci-test")
@takes_method(WAYS)
def ci_test_command(
    data: Annotated[Path, typer.Argument(help="CSV with a header, or Parquet.")],
    x: Annotated[str, typer.Argument(help="A column, or several as a,b.")],
    y: Annotated[str, typer.Argument(help="A column, or several as a,b.")],
    schema: SchemaOption,
    ledger: LedgerOption,
    method: Any,
    given: Annotated[
        list[str] | None, typer.Option(help="The columns z, as a,b; repeatable; none by default.")
    ] = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    alpha: Annotated[float, typer.Option(help="Level of the test.")] = 0.05,
    where: WhereOption = None,
    person: PersonOption = None,
    ids: IdsOption = "private",
    missing: MissingOption = "drop",
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Is x still linked to y once z is known?"""
    with exit_codes():
        from dpcausal import ci_test

        columns = names_in("x", [x]), names_in("y", [y]), names_in("--given", given)
        asked, way = loss_from(epsilon, delta, rho), method.built()
        show_answer(
            data, schema, ledger, as_json,
            lambda table: ci_test(
                table, columns[0], columns[1], given=columns[2], loss=asked, alpha=alpha, method=way,
                accept_large_epsilon=accept_large_epsilon,
            ),
            Records(person, ids, missing, where),
        )  # fmt: skip
