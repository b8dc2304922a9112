"""``python -m situ`` is the command ``situ``."""

from __future__ import annotations

import sys

from situ.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
