"""Every method as an object with its options: ``dpc.ci_test(…, method=dpc.methods.Gcm(blocks=40))``."""

from dpcausal.direction.holdout import Holdout as Holdout
from dpcausal.direction.iqr_release import InverseSensitivity as InverseSensitivity
from dpcausal.direction.iqr_release import ProposeTestRelease as ProposeTestRelease
from dpcausal.direction.iqr_release import SmoothSensitivity as SmoothSensitivity
from dpcausal.direction.joint import Joint as Joint
from dpcausal.direction.training import TrainingPrivacy as TrainingPrivacy
from dpcausal.direction.votes import Votes as Votes
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
