"""Releases as text: every number and the guarantee come back as they are, and a text that is no release is refused."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import ParameterError
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.releases.contrasts import NoisyContrasts
from dpcausal.releases.counts import NoisyTable
from dpcausal.releases.level_moments import NoisyWhitened
from dpcausal.releases.moments import NoisyMoments
from dpcausal.releases.release import UNSTATED, Release
from dpcausal.releases.saved import Form, guarantee_dict, guarantee_from_json
from dpcausal.releases.third_moments import NoisyTriples
from tests.discovery.ways import NUMBERS, loss_of


def released(name: str, loss: Any = None) -> Any:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 2_000)
    frame = {"ä": a, "b": np.where(rng.random(2_000) < 0.8, a, 1 - a), "c": rng.integers(0, 2, 2_000)}
    schema = dpc.Schema({column: dpc.Levels([0, 1]) for column in frame})
    spent = loss or loss_of(NUMBERS[name])
    ledger = dpc.Ledger.without_privacy() if isinstance(spent, dpc.NoPrivacy) else dpc.Ledger.in_memory(spent)
    return dpc.discover(dpc.Table(frame, schema, ledger), loss=spent, method=name).release


@pytest.mark.parametrize("loss", [None, dpc.NoPrivacy()])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_release_comes_back_as_it_is(name: str, loss: Any) -> None:
    before = released(name, loss)
    after = Release.from_json(before.to_json())
    assert type(after) is type(before) and after.guarantee == before.guarantee
    assert after.to_dict() == before.to_dict()
    for field, value in vars(before).items():
        if isinstance(value, np.ndarray):
            assert value.dtype == vars(after)[field].dtype and (value == vars(after)[field]).all()
    again, same = before.discover(alpha=0.2), after.discover(alpha=0.2)
    assert again.graph == same.graph and again.margin == same.margin
    drawn = [one.with_extra_noise(generator_from_seed(5)).to_dict() for one in (before, after)]
    assert drawn[0] == drawn[1]


def test_numbers_that_no_decimal_of_few_digits_is_survive() -> None:
    odd = np.array([[1 / 3, 0.7], [0.7, -5e-324]])
    thirds = NoisyMoments(("a", "b"), 7, (1 / 3, 0.1), (2.0**-1074, 1e300), odd, 0.1)
    copy = Release.from_json(thirds.to_json())
    assert isinstance(copy, NoisyMoments) and (copy.covariance == thirds.covariance).all()
    assert (copy.middles, copy.widths, copy.variance) == (thirds.middles, thirds.widths, thirds.variance)
    counts = np.array([[2**62, -(2**62) - 1], [0, 1]])
    table = Release.from_json(NoisyTable(("a", "b"), 3, counts, 1 / 7, "geometric").to_json())
    assert isinstance(table, NoisyTable) and (table.counts == counts).all() and table.variance == 1 / 7


@pytest.mark.parametrize(
    "loss",
    [dpc.PureDP(Fraction(1, 3)), dpc.ApproxDP(0.1, Fraction(1, 3 * 10**9)), dpc.ZCDP(Fraction(2, 7)), dpc.NoPrivacy()],
)
def test_a_loss_is_written_exactly(loss: Any) -> None:
    stated = dpc.Guarantee(
        loss, dpc.Relation.REPLACE_ONE, dpc.Unit.ROW, True, ("geometric",), ("a caveat",), ("all",), "f00"
    )
    assert guarantee_from_json(Form(json.loads(json.dumps(guarantee_dict(stated))))) == stated


def test_numbers_put_together_by_hand_state_no_guarantee() -> None:
    table = NoisyTable(("a", "b"), 10, np.ones((2, 2), dtype=np.int64), 0.0, "exact")
    assert table.guarantee == UNSTATED and not table.discover().guarantee.private


def text(**changes: Any) -> str:
    table = NoisyTable(("a", "b"), 10, np.ones((2, 2), dtype=np.int64), 2.0, "geometric").to_dict()
    return json.dumps(table | changes)


STATED = NoisyTable(("a",), 1, np.ones(1, dtype=np.int64), 2.0, "geometric").to_dict()["guarantee"]


@pytest.mark.parametrize(
    "changed",
    [
        "", "[]", "3", "null", "{", "[" * 100_000, b"\xff", None, text(format=2), text(format="1"), text(format=True),
        text(kind="cells"), text(kind=["table"]), text(names=["a"]), text(names=["a", "a"]), text(names="ab"),
        text(names=[1, 2]), text(n=-1), text(n=1.5), text(n=True), text(n=2**70), text(counts=[[1, 2], [3]]),
        text(counts=[[1.5, 2.0], [3.0, 4.0]]), text(counts=[[1, 2**70], [3, 4]]), text(counts=[]), text(counts=None),
        text(counts=[["1", "2"], ["3", "4"]]), text(variance=-1), text(variance="2"), text(variance=None),
        text(law="normal"), text().replace("2.0", "NaN"), text().replace("2.0", "1e999"), text(guarantee={}),
        text(guarantee=STATED | {"loss": {"kind": "PureDP", "epsilon": 1.0}}),
        text(guarantee=STATED | {"loss": {"kind": "PureDP", "epsilon": "1e99"}}),
        text(guarantee=STATED | {"loss": {"kind": "PureDP", "epsilon": "0"}}),
        text(guarantee=STATED | {"loss": {"kind": "PureDP", "epsilon": "-1"}}),
        text(guarantee=STATED | {"loss": {"kind": "ApproxDP", "epsilon": "1", "delta": "2"}}),
        text(guarantee=STATED | {"loss": {"kind": "RenyiDP"}}),
        text(guarantee=STATED | {"relation": "add-one"}),
        text(guarantee=STATED | {"unit": "everyone"}),
        text(guarantee=STATED | {"private": "yes"}),
        text(guarantee=STATED | {"proofs": [1]}),
    ],
    ids=lambda changed: str(changed)[:40],
)  # fmt: skip
def test_a_text_that_is_no_release_is_refused(changed: Any) -> None:
    assert isinstance(Release.from_json(text()), NoisyTable)
    with pytest.raises(ParameterError):
        Release.from_json(changed)


NAMES = ("x", "z", "y")
CONTRASTS = NoisyContrasts(("a", "b"), 5, (2, 2), {(0,): np.ones(1)}, {(0,): 1.0})
MOMENTS = NoisyMoments(("a", "b"), 5, (0.0, 0.0), (1.0, 1.0), np.eye(2), 0.1)
WHITENED = NoisyWhitened(NAMES, 9, ((0, 1, 2), (0, 1), (0, 1)), ((0.5, 0.25, 0.25), *2 * [(0.5, 0.5)]), np.eye(5), 3.0)
FIRST, *OTHERS = WHITENED.to_dict()["columns"]
TRIPLES = NoisyTriples(NAMES, 9, WHITENED.places, WHITENED.shares, WHITENED.matrix, 3.0, ((0, 1, 2),), np.ones(3), 2.0)
UNFIT: dict[str, tuple[Release, list[dict[str, Any]]]] = {
    "contrasts": (CONTRASTS, [
        {"sizes": [2]}, {"sizes": [0, 2]}, {"sizes": [2.0, 2.0]}, {"contrasts": {}}, {"contrasts": [3]},
        {"contrasts": [{"columns": [0], "deviation": 1.0, "values": [1.0, 2.0]}]},
        {"contrasts": [{"columns": [2], "deviation": 1.0, "values": [1.0]}]},
        {"contrasts": [{"columns": [1, 0], "deviation": 1.0, "values": [1.0]}]},
        {"contrasts": [{"columns": [0], "deviation": -1.0, "values": [1.0]}]},
        {"contrasts": 2 * [{"columns": [0], "deviation": 1.0, "values": [1.0]}]},
    ]),
    "moments": (MOMENTS, [
        {"middles": [0.0]}, {"widths": [1.0, 0.0]}, {"widths": [1.0]}, {"covariance": [[1.0, 0.5], [0.4, 1.0]]},
        {"covariance": [[1.0]]}, {"covariance": [1.0, 1.0]}, {"variance": -1.0},
    ]),
    "whitened": (WHITENED, [
        {"columns": OTHERS}, {"columns": [{**FIRST, "places": [0, 1, 3]}, *OTHERS]},
        {"columns": [{**FIRST, "shares": [0.5, 0.5, 0.5]}, *OTHERS]},
        {"columns": [{**FIRST, "shares": [1.5, -0.5, 0.0]}, *OTHERS]}, {"matrix": np.ones((5, 4)).tolist()},
        {"matrix": np.triu(np.ones((5, 5))).tolist()}, {"matrix": [1.0]}, {"deviation": -1.0},
    ]),
    "triples": (TRIPLES, [
        {"triples": [[0, 1, 2], [0, 1, 2]]}, {"triples": [[0, 2, 1]]}, {"triples": [[0, 1, 3]]}, {"triples": [[0, 1]]},
        {"thirds": [1.0] * 4}, {"triples": [0.5]}, {"thirds": [1.0]}, {"thirds_deviation": -1.0},
    ]),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNFIT)
def test_numbers_that_do_not_fit_together_are_refused(kind: str) -> None:
    release, changes = UNFIT[kind]
    told = release.to_dict()
    assert Release.from_json(json.dumps(told)).to_dict() == told
    for change in changes:
        named = next(iter(change)) if kind == "moments" else "this is no release"
        with pytest.raises(ParameterError, match=named):
            Release.from_json(json.dumps(told | change))


def test_a_fresh_draw_does_not_see_the_margins_of_the_one_before() -> None:
    table = NoisyTable(("a", "b"), 100, np.full((2, 2), 25), 200.0, "geometric")
    assert table.margin((0,)).tolist() == [50, 50]
    drawn = table.with_extra_noise(generator_from_seed(1))
    assert drawn.margin((0,)).tolist() == drawn.counts.sum(axis=1).tolist() != [50, 50]
    assert drawn.variance == 400 and drawn.guarantee is table.guarantee


def test_a_release_without_a_graph_says_so() -> None:
    class Sums(NoisyTable):
        kind = "sums"

    with pytest.raises(ParameterError, match="sums"):
        Sums(("a", "b"), 4, np.ones((2, 2), dtype=np.int64), 0.0, "exact").discover()
