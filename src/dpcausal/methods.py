"""Every method as an object with its options: ``dpc.ci_test(…, method=dpc.methods.Gcm(blocks=40))``."""

from dpcausal.discovery.ci_test import CiTest as CiTest
from dpcausal.discovery.moments import Moments as Moments
from dpcausal.discovery.parities import Parities as Parities
from dpcausal.discovery.table import ContingencyTable as ContingencyTable
from dpcausal.independence.crt import Cpt as Cpt
from dpcausal.independence.crt import Crt as Crt
from dpcausal.independence.crt_global import CrtDecision as CrtDecision
from dpcausal.independence.gcm import Gcm as Gcm
from dpcausal.independence.gcm import WeightedGcm as WeightedGcm
from dpcausal.independence.hsic import PermutedHsic as PermutedHsic
from dpcausal.independence.rank_tests import Kendall as Kendall
from dpcausal.independence.rank_tests import Spearman as Spearman
from dpcausal.independence.scalar import ScalarGcm as ScalarGcm
from dpcausal.independence.scalar import SmoothGcm as SmoothGcm
