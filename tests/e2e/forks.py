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
    "situ.bus.nats",
    "situ.cli.app",
    "situ.cli.explained_event",
    "situ.cli.explained_subject",
    "situ.cli.explained_visibility",
    "situ.cli.in_force",
    "situ.cli.looked_at",
    "situ.cli.opened",
    "situ.cli.registered",
    "situ.cli.show_check",
    "situ.cli.show_context",
    "situ.cli.show_difference",
    "situ.cli.show_explained_event",
    "situ.cli.show_expression",
    "situ.cli.show_figures",
    "situ.cli.show_functions",
    "situ.cli.show_letters",
    "situ.cli.show_status",
    "situ.cli.show_subscription",
    "situ.cli.show_transform",
    "situ.cli.transformed",
    "situ.cli.show_registry",
    "situ.edge.connecting",
    "situ.host.replaying",
    "situ.host.running",
    "situ.project.create",
    "situ.project.format",
    "situ.types.json_schema_import",
    "sqlalchemy.dialects.sqlite",
    "typer._adapters",  # typer loads it with the first command that has parameters
)


def serve() -> None:
    from situ.units import Units

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
