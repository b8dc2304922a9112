"""A process that has loaded all that commands need, and forks one of its own for every command.

Reads requests from standard input and writes exit codes to standard output, one a line.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any, NoReturn

LOADED = (
    "alembic.command",
    "situ.app.replay",
    "situ.app.run",
    "situ.bus.nats",
    "situ.cli.app",
    "situ.cli.project",
    "situ.cli.registry",
    "situ.cli.render.check",
    "situ.cli.render.dead_letters",
    "situ.cli.render.event",
    "situ.cli.render.expression",
    "situ.cli.render.registry",
    "situ.cli.render.run",
    "situ.cli.render.status",
    "situ.cli.render.transform",
    "situ.cli.render.types",
    "situ.client.connection",
    "situ.explain.conversion",
    "situ.explain.event",
    "situ.explain.expression",
    "situ.explain.visibility",
    "situ.lang.types.json_schema",
    "situ.project.create",
    "situ.project.format",
    "situ.project.status",
    "sqlalchemy.dialects.sqlite",
    "typer._adapters",  # typer loads it with the first command that has parameters
)


def serve() -> None:
    from situ.lang.units import Units

    for name in LOADED:
        importlib.import_module(name)
    Units().parse("m")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def run(request: dict[str, Any]) -> NoReturn:
    """The command in a folder with streams of its own, as a shell would start it."""
    from situ.cli.main import main

    for number, (file, mode) in enumerate(
        zip(request["streams"], (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True)
    ):
        opened = os.open(file, mode)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, encoding="utf-8") for number, mode in enumerate("rww"))
    os.chdir(request["folder"])
    sys.exit(main(request["arguments"]))


if __name__ == "__main__":
    serve()
