"""The whole program: importing this module registers every command."""

from __future__ import annotations

from dpcausal.cli import did as did
from dpcausal.cli import direction as direction
from dpcausal.cli import discontinuity as discontinuity
from dpcausal.cli import discovery as discovery
from dpcausal.cli import effects as effects
from dpcausal.cli import independence as independence
from dpcausal.cli import ledger as ledger
from dpcausal.cli import plan as plan
from dpcausal.cli import start as start
from dpcausal.cli import study as study
from dpcausal.cli import synthetic_control as synthetic_control
from dpcausal.cli.shared import app as app
