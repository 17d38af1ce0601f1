"""The estimators of an effect by their short names, and the rule of ``"auto"``: a new one is one more import here."""

from collections.abc import Callable

from dpcausal.core import validate as public
from dpcausal.data.schema import Bounded
from dpcausal.effects.cells.corner_counts import levels_of
from dpcausal.effects.estimators.aipw import Aipw as Aipw
from dpcausal.effects.estimators.boosted_aipw import BoostedAipw as BoostedAipw
from dpcausal.effects.estimators.partially_linear import PartiallyLinear as PartiallyLinear
from dpcausal.effects.estimators.sample_aggregate import SampleAggregate as SampleAggregate
from dpcausal.effects.estimators.stratified import Stratified as Stratified
from dpcausal.effects.estimators.trial import RandomizedTrial as RandomizedTrial
from dpcausal.effects.question import EffectMethod, EffectQuestion
from dpcausal.errors import DpCausalError
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP

METHODS: dict[str, type[EffectMethod]] = {
    kind.name: kind for kind in EffectMethod.__subclasses__() if kind.__module__.startswith(__name__)
}
"""Every method by its short name, beside ``"auto"``."""
__all__ = [kind.__name__ for kind in METHODS.values()]


def method_of(named: object, question: EffectQuestion, loss: Loss) -> EffectMethod:
    known: dict[str, Callable[[], EffectMethod]] = {"auto": lambda: automatic(question, loss), **METHODS}
    method: EffectMethod = public.choose_method(named, EffectMethod, known)
    return method


def automatic(question: EffectQuestion, loss: Loss) -> EffectMethod:
    """Return the method for a schema, a loss and n, all public: where numbers without cuts are adjusted for the first
    that answers of boosted models, lines and one slope, in that order. Cells where the loss pays for no Gaussian noise,
    or the question is one that moments do not answer."""
    gaussian = loss.exact_delta > 0 if isinstance(loss, ApproxDP) else not isinstance(loss, PureDP)
    columns = [question.column(name) for name in question.strata]
    numbers = any(isinstance(column, Bounded) and column.cuts is None for column in columns)
    two_arms = len(levels_of(question.column(question.treatment))) == 2
    if not (gaussian and numbers and two_arms and question.estimand == "ate"):
        return Stratified()
    methods: tuple[EffectMethod, ...] = (BoostedAipw(), Aipw(), PartiallyLinear())
    return next((method for method in methods if _answers(method, question, loss)), Aipw())


def _answers(method: EffectMethod, question: EffectQuestion, loss: Loss) -> bool:
    try:
        method.plan(question, method.charge(loss, question)[0])
    except DpCausalError:
        return False
    return True
