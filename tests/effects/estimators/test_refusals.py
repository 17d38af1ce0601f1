"""What each estimator does not answer: refused by public numbers and arguments, and nothing is spent."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import DpCausalError, InfeasibleError, LossError, ParameterError
from dpcausal.methods import Aipw, BoostedAipw, PartiallyLinear, RandomizedTrial, SampleAggregate, Stratified
from tests.effects.tables import effect_of, table_of

NUMBERS = [f"c{place}" for place in range(45)]
SCHEMA: dict[str, Any] = dict.fromkeys((*NUMBERS, "x", "w", "y"), dpc.Bounded(-2, 2)) | {
    "a": dpc.Levels([0, 1]), "arm": dpc.Levels(["c", "d", "e"]), "g": dpc.Levels([0, 1]), "ill": dpc.Levels([0, 1]),
}  # fmt: skip
PURE, GAUSSIAN = dpc.PureDP(4), dpc.ApproxDP(2, 1e-6)
THREE: dict[str, Any] = {"treatment": "arm", "treated": "e", "control": "c"}
TRIAL = THREE | {"adjust": ["g"]}
SIZES = [[200, 200], [150, 150], [150, 150]]

REFUSALS: list[tuple[Any, Any, int, dict[str, Any], type[Exception]]] = [
    *((method(), PURE, 20_000, {"adjust": ["x"]}, LossError) for method in (Aipw, BoostedAipw, PartiallyLinear)),
    *((method(), GAUSSIAN, 20_000, {"adjust": ["x"], "estimand": "att"}, ParameterError)
      for method in (Aipw, BoostedAipw, PartiallyLinear)),
    *((method(), GAUSSIAN, 20_000, {"adjust": ["x"]} | THREE, ParameterError)
      for method in (Aipw, BoostedAipw, PartiallyLinear)),
    *((method(), GAUSSIAN, 20_000, {"adjust": NUMBERS}, ParameterError)
      for method in (Aipw, BoostedAipw, PartiallyLinear)),
    *((method(), GAUSSIAN, 20_000, {"adjust": ["x"], "groups": "g"}, ParameterError)
      for method in (BoostedAipw, PartiallyLinear)),
    *((method(), dpc.ApproxDP(1e-9, 1e-6), 20_000, {"adjust": ["x"]}, LossError)
      for method in (Aipw, BoostedAipw, PartiallyLinear)),
    (Aipw(), dpc.ApproxDP(1, 1e-6), 1_000, {"adjust": ["x", "w"]}, InfeasibleError),
    (BoostedAipw(), GAUSSIAN, 1_000, {"adjust": ["x", "w"]}, InfeasibleError),
    (BoostedAipw(), dpc.ApproxDP(0.1, 1e-6), 20_000, {"adjust": ["x", "w"]}, InfeasibleError),
    (BoostedAipw(), GAUSSIAN, 20_000, {"adjust": ["g"]}, ParameterError),
    (PartiallyLinear(errors="yes"), GAUSSIAN, 3_000, {}, ParameterError),  # type: ignore[arg-type]
    (Stratified(population="everybody"), PURE, 4_000, {"adjust": ["g"]}, ParameterError),
    *((SampleAggregate(**options), dpc.PureDP(8), 4_000, {"adjust": ["x"]}, ParameterError)
      for options in ({"terms": "cubes"}, {"blocks": 3}, {"blocks": 5_000})),
    (SampleAggregate(), dpc.PureDP(8), 4_000, {"adjust": ["x"], "estimand": "att"}, ParameterError),
    (SampleAggregate(), dpc.PureDP(8), 4_000, {"adjust": ["x"], "groups": "g"}, ParameterError),
    (SampleAggregate(), dpc.PureDP(8), 4_000, {"adjust": ["x"], "weight": True}, ParameterError),
    (SampleAggregate(), PURE, 300, {}, InfeasibleError),
    (SampleAggregate(), dpc.PureDP(0.2), 6_000, {}, InfeasibleError),
]  # fmt: skip


def refused(method: Any, loss: Any, n: int, question: dict[str, Any], error: type[Exception]) -> Any:
    place = np.arange(n)
    columns = {name: np.sin(7 * place + k) for k, name in enumerate((*NUMBERS, "x", "w", "y"))}
    columns |= {"a": place % 2, "g": place // 2 % 2, "ill": place // 3 % 2, "arm": np.array(["c", "d", "e"])[place % 3]}
    weighed = question.pop("weight", False)
    table = table_of(columns | ({"q": np.ones(n)} if weighed else {}), SCHEMA, loss,
                     **({"weight": ("q", 2.0)} if weighed else {}))  # fmt: skip
    if question.pop("where", False):
        table = table.where("g", among=[0])
    with pytest.raises(error) as info:
        effect_of(table, loss, method, **question)
    assert table.ledger.entries() == []
    return info.value


@pytest.mark.parametrize(("method", "loss", "n", "question", "error"), REFUSALS)
def test_what_it_cannot_answer_is_refused_before_the_spend(
    method: Any, loss: Any, n: int, question: dict[str, Any], error: type[Exception]
) -> None:
    text = str(refused(method, loss, n, dict(question), error))
    assert error is not InfeasibleError or ("rows would be enough" in text and "epsilon" in text)


@pytest.mark.parametrize(("design", "epsilon", "question", "argument", "rule"), [
    ({}, 1, {}, "sizes", "one of two"),
    ({"sizes": SIZES, "probabilities": [0.3, 0.3, 0.4]}, 1, {}, "sizes", "one of two"),
    *(({"sizes": sizes}, 1, {}, "sizes", rule) for sizes, rule in (
        ([1, 2], "shape"), (SIZES[:2], "shape"), ([[200, "x"], [150, 150], [150, 150]], "shape"),
        ([[200, 200], [150, 150], [150, 151]], "sum"), ([[1, 399], [150, 150], [150, 150]], "minimum"))),
    ({"sizes": SIZES}, 0.01, {}, "sizes", "noise"), ({"sizes": SIZES}, 1, {"where": True}, "sizes", "subgroup"),
    ({"sizes": SIZES}, 1, {"weight": True}, "method", "weights"),
    *(({"probabilities": chances}, 1, {}, "probabilities", rule) for chances, rule in (
        ([0.5, 0.5], "shape"), ([0.2, 0.2, 0.2], "shape"), ([[0.6, 0.4], [0.2, "x"], [0.2, 0.4]], "shape"),
        ([0.5, np.nan, 0.5], "shape"), ([0.5, 0.499, 0.001], "minimum"))),
    ({"probabilities": [0.4, 0.3, 0.3]}, 1, {"estimand": "att"}, "estimand", "choice"),
    ({"probabilities": [0.4, 0.3, 0.3]}, 0.003, {}, "probabilities", "noise"),
    ({"probabilities": [0.5, 0.25, 0.25]}, 8, {"adjust": [], "outcome": "ill"}, "method", "no gain"),
])  # fmt: skip
def test_a_design_of_a_trial_that_does_not_fit_is_refused_with_its_argument_and_rule(
    design: Any, epsilon: float, question: dict[str, Any], argument: str, rule: str
) -> None:
    value = refused(RandomizedTrial(**design), dpc.PureDP(epsilon), 1_000, TRIAL | question, DpCausalError)
    assert (value.argument, value.rule) == (argument, rule)
