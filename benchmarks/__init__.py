"""Benchmarks: what Situ costs, measured side by side with what one would write by hand. Run with ``make bench``."""

import sys
from pathlib import Path

# The building that most scenarios simulate belongs to the example project.
sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "smart-building" / "programs"))
