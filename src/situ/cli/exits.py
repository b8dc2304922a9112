"""How a command ends: every exit code, and the exception that ends a command early with one.

A command returns its :class:`Exit`. The codes are the same for all commands, so that scripts can rely on them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from situ.errors import Problem


class Exit(IntEnum):
    """What the shell is told."""

    DONE = 0
    """Done; so is a command that runs until it is stopped, when it is stopped in order."""
    NO = 1
    """The answer is no: problems found, something differs, nothing of that name."""
    USAGE = 2
    """Not called as it should be: unknown command or option, no project here, a file that cannot be read."""
    REFUSED = 3
    """Called rightly but refused: the folder has errors, a file would be overwritten."""
    INTERRUPTED = 130
    """Broken off by Ctrl-C before there was an answer: 0 would be one, and a script would go on with it."""


class Stop(Exception):
    """Ends a command with an exit code other than what its problems alone would give."""

    def __init__(self, code: Exit, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.code = code
        self.problems = problems
