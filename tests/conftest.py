"""Make the repository's root importable, for ``from tests.conformance import ...``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
