"""How a command ends: every exit code, and the exception that ends a command early with one.

A command returns its :class:`Exit`. The codes are the same for all commands, so that scripts can rely on them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from situ.lang.problems import Problem, SituError


class Exit(IntEnum):
    """What the shell is told."""

    DONE = 0
    """Done; so is a command that runs until it is stopped, when it is stopped in order."""
    NO = 1
    """The answer is no: problems found, something differs, nothing of that name."""
    USAGE = 2
    """Not called as it should be: unknown command or option, no project here, a file that cannot be read."""
    REFUSED = 3
    """Called rightly but refused: the folder has errors or is in use, a file would be overwritten."""
    UNREACHABLE = 4
    """The bus, the registry or its database does not answer."""
    FAILED = 5
    """An engine failed while it ran."""
    INTERRUPTED = 130
    """Broken off by Ctrl-C before there was an answer: 0 would be one, and a script would go on with it.

    For commands that run until they are stopped it takes a second Ctrl-C, while they stop.
    """


class CommandError(Exception):
    """Ends a command with an exit code other than what its problems alone would give."""

    def __init__(self, code: Exit, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.code = code
        self.problems = problems


# What is not here is an answer: no. `B` and `N` stand for all codes that begin with them.
_EXITS = {
    "B": Exit.UNREACHABLE,
    "B104": Exit.NO,
    "B114": Exit.USAGE,
    "D104": Exit.UNREACHABLE,
    "D105": Exit.UNREACHABLE,
    "N": Exit.FAILED,
    "P120": Exit.REFUSED,
    "P127": Exit.REFUSED,
    "V014": Exit.REFUSED,
    "R001": Exit.UNREACHABLE,
}


def exit_of(error: SituError) -> Exit:
    """The exit code for problems that end a command."""
    code = error.code
    return _EXITS.get(code) or _EXITS.get(code.rstrip("0123456789"), Exit.NO)
