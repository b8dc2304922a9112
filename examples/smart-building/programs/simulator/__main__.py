"""``python -m simulator``."""

import sys

from simulator.command import main

sys.exit(main())
