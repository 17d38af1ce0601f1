"""The published systems, each system in one file to be read beside its paper; see README.md in this folder.

An object from here goes where a method goes: ``dpc.ci_test(…, method=dpc.papers.PrivGcm())``.  Where the proof of a
system fails, the call needs ``accept_unproven=True``, runs on an in-memory ledger or one without privacy, and its
result is stamped.
"""

from dpcausal.papers.direction import calculators as calculators
from dpcausal.papers.direction.anm_test_privacy import AnmTestPrivacy as AnmTestPrivacy
from dpcausal.papers.direction.anm_test_privacy import AnmTestPrivacyIqr as AnmTestPrivacyIqr
from dpcausal.papers.direction.holdout import Holdout as Holdout
from dpcausal.papers.direction.training import AnmTrainingPrivacy as AnmTrainingPrivacy
from dpcausal.papers.direction.training import AnmTrainingRanks as AnmTrainingRanks
from dpcausal.papers.direction.training import TrainingPrivacy as TrainingPrivacy
from dpcausal.papers.discovery.priv_pc import EmPc as EmPc
from dpcausal.papers.discovery.priv_pc import PrivPc as PrivPc
from dpcausal.papers.discovery.priv_pc import SubsampledGaussian as SubsampledGaussian
from dpcausal.papers.discovery.priv_pc import SvtPc as SvtPc
from dpcausal.papers.discovery.reconciled_tests import ReconciledTests as ReconciledTests
from dpcausal.papers.effects.fold_split import FoldSplit as FoldSplit
from dpcausal.papers.independence.priv_crt import PrivCrt as PrivCrt
from dpcausal.papers.independence.priv_gcm import PrivGcm as PrivGcm
from dpcausal.papers.independence.priv_kendall import PrivKendall as PrivKendall
from dpcausal.papers.independence.priv_kendall import PrivSpearman as PrivSpearman
from dpcausal.papers.independence.priv_tot import PrivToT as PrivToT
from dpcausal.papers.synthetic_control.dpsc import DpscObj as DpscObj
from dpcausal.papers.synthetic_control.dpsc import DpscOut as DpscOut
from dpcausal.papers.synthetic_control.dpsc import ObjectivePerturbation as ObjectivePerturbation
from dpcausal.papers.synthetic_control.dpsc import OutputPerturbation as OutputPerturbation

BY_TASK = {
    room: {f"papers.{kind.__name__}": kind for kind in kinds}
    for room, kinds in {
        "independence": (PrivGcm, PrivCrt, PrivToT, PrivSpearman),
        "direction": (Holdout, TrainingPrivacy, AnmTestPrivacy, AnmTrainingPrivacy, AnmTrainingRanks),
        "synthetic_control": (DpscOut, OutputPerturbation, ObjectivePerturbation),
        "discovery": (PrivPc, SvtPc), "effects": (FoldSplit,),
    }.items()
}  # fmt: skip
"""Those of each task by the names that the command takes; one without a proof is for Python alone."""
