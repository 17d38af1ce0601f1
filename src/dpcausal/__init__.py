"""Differentially private causal inference."""

from dpcausal import errors as errors
from dpcausal import interop as interop
from dpcausal import methods as methods
from dpcausal import papers as papers
from dpcausal import simulate as simulate
from dpcausal.data.panel import Panel as Panel
from dpcausal.data.schema import Bounded as Bounded
from dpcausal.data.schema import Levels as Levels
from dpcausal.data.schema import Schema as Schema
from dpcausal.data.table import Table as Table
from dpcausal.direction import calculators as calculators
from dpcausal.direction.ask import direction as direction
from dpcausal.direction.directions import Directions as Directions
from dpcausal.direction.many import direction_all as direction_all
from dpcausal.direction.result import Direction as Direction
from dpcausal.discovery.ask import discover as discover
from dpcausal.discovery.graph import Cpdag as Cpdag
from dpcausal.discovery.knowledge import Knowledge as Knowledge
from dpcausal.discovery.result import Discovery as Discovery
from dpcausal.effects.ask import effect as effect
from dpcausal.effects.cells import cells as cells
from dpcausal.effects.did import did as did
from dpcausal.effects.moments import moments as moments
from dpcausal.effects.result import Effect as Effect
from dpcausal.independence.ask import ci_test as ci_test
from dpcausal.independence.many import ci_tests as ci_tests
from dpcausal.independence.model_x import ModelX as ModelX
from dpcausal.independence.power import Power as Power
from dpcausal.independence.power import power as power
from dpcausal.independence.result import Independence as Independence
from dpcausal.independence.results import Independences as Independences
from dpcausal.privacy.ledger import Ledger as Ledger
from dpcausal.privacy.loss import ZCDP as ZCDP
from dpcausal.privacy.loss import ApproxDP as ApproxDP
from dpcausal.privacy.loss import NoPrivacy as NoPrivacy
from dpcausal.privacy.loss import PureDP as PureDP
from dpcausal.privacy.neighbours import Relation as Relation
from dpcausal.privacy.neighbours import Unit as Unit
from dpcausal.privacy.noise import simulated_noise as simulated_noise
from dpcausal.proofs import explain as explain
from dpcausal.releases.release import Release as Release
from dpcausal.report import Guarantee as Guarantee
from dpcausal.study.study import Study as Study
from dpcausal.synthetic_control.ask import plan_synthetic_control as plan_synthetic_control
from dpcausal.synthetic_control.ask import synthetic_control as synthetic_control
from dpcausal.synthetic_control.ask import synthetic_controls as synthetic_controls
from dpcausal.synthetic_control.result import SyntheticControl as SyntheticControl

__version__ = "0.1.0"

# So that help(dpcausal) shows what is imported above: functions, classes, and the five modules of objects.
__all__ = ["calculators", "errors", "interop", "methods", "papers", "simulate"]
__all__ += [name for name, one in list(vars().items()) if str(getattr(one, "__module__", "")).startswith("dpcausal.")]
