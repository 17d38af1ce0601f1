"""Audits that anyone can run on our mechanisms or on their own."""

from dpcausal.audit.blackbox import BlackBoxAudit as BlackBoxAudit
from dpcausal.audit.blackbox import audit_samples as audit_samples
from dpcausal.audit.falsifier import Falsification as Falsification
from dpcausal.audit.falsifier import falsify as falsify
from dpcausal.audit.greybox import GreyBoxAudit as GreyBoxAudit
from dpcausal.audit.greybox import compare as compare
