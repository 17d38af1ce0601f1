"""The command ``dpcausal ci-test``."""

from __future__ import annotations

from typing import Annotated

import typer

from dpcausal.cli.options import Call, of, task_command
from dpcausal.cli.shared import DataArgument, SchemaOption, names_in


@task_command("ci-test", of("independence"), of_records=True)
def ci_test_command(
    data: DataArgument,
    x: Annotated[str, typer.Argument(help="A column, or several as a,b.")],
    y: Annotated[str, typer.Argument(help="A column, or several as a,b.")],
    schema: SchemaOption,
    call: Call,
    given: Annotated[
        list[str] | None, typer.Option(help="The columns z, as a,b; repeatable; none by default.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Level of the test.")] = 0.05,
) -> None:
    """Is x still linked to y once z is known?"""
    from dpcausal.independence.api import ci_test

    left, right, known = names_in("x", [x]), names_in("y", [y]), names_in("--given", given)
    call.show(ci_test(call.table(data, schema), left, right, given=known, alpha=alpha, **call.settings))
