"""Every method as an object with its options: ``dpc.ci_test(…, method=dpc.methods.Gcm(blocks=40))``."""

from dpcausal.direction.methods import *
from dpcausal.discovery.methods import *
from dpcausal.effects.estimators import *
from dpcausal.independence.methods import *
from dpcausal.synthetic_control.methods import *
