"""The command ``situ``: from the arguments to the exit code, whatever happens on the way.

Nothing heavier than this is imported before there is someone to catch Ctrl-C, so that it never shows a traceback. What
problems mean for the exit code is decided in :mod:`situ.cli.app`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from situ.cli.exits import Exit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is for ``sys.exit``."""
    try:
        from situ.cli.app import run

        return int(run(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        return int(Exit.INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
