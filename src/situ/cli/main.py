"""The command ``situ``: from the arguments to the exit code, whatever happens on the way.

Nothing is imported before there is someone to catch Ctrl-C, so that it never shows a traceback. What problems mean for
the exit code is decided in :mod:`situ.cli.app`.
"""

from __future__ import annotations

import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is for ``sys.exit``."""
    try:
        from situ.cli.app import run

        code = int(run(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        code = _interrupted()
    if code == _interrupted():
        # Leaving in the usual way, Python would now and then end itself by the signal instead: it remembers an
        # interrupt that came while text was being executed, as when a dataclass is made, although it was caught here.
        os._exit(code)
    return code


def _interrupted() -> int:
    from situ.cli.exits import Exit

    return int(Exit.INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
