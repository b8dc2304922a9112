"""The command ``situ``: from the arguments to the exit code, whatever happens on the way.

Nothing of ours is imported before Ctrl-C is taken care of, so that it never shows a traceback. What problems mean for
the exit code is decided in :mod:`situ.cli.app`.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from typing import NoReturn

_INTERRUPTED = 130  # `Exit.INTERRUPTED`, before anything of ours is imported
# What is loaded at the start stays: looking through it for garbage is a twentieth of a short command.
_NEW_OBJECTS = 200_000


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is for ``sys.exit``."""
    # Python's own way, an exception wherever the program happens to be, gets lost where none can be raised, and shows
    # in the middle of imports. The commands are short and put files in place whole, so they can just end.
    signal.signal(signal.SIGINT, _interrupt)
    gc.set_threshold(_NEW_OBJECTS)
    # A process that ends looks through all it has loaded once more, which takes a tenth of a short command.
    atexit.register(gc.freeze)
    from situ.cli.app import run

    return int(run(sys.argv[1:] if arguments is None else arguments))


def _interrupt(*_: object) -> NoReturn:
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
