"""``python -m situ.testing.building``."""

import sys

from situ.testing.building.command import main

sys.exit(main())
