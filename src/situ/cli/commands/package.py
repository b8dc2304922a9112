"""``situ package``: what other machines need to run a project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from situ.cli.exits import Exit
from situ.cli.groups import group
from situ.cli.options import common_options

if TYPE_CHECKING:
    from situ.cli.output import Output

app = group("package", "Pack what machines of a cluster need to run the project.")


@app.callback()
def package() -> None:
    """Pack what machines of a cluster need to run the project."""


@app.command("spark")
@common_options
def package_spark(
    output: Output,
    project: Path | None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Where to write; .situ/package unless told.", show_default=False),
    ] = None,
) -> Exit:
    """Pack Python, Situ and its dependencies for the workers of a Spark cluster.

    Writes the archive, a program and a Kubernetes manifest, and shows the `spark-submit` line. `situ run` with
    `spark.master` on a cluster needs none of these: it packs and ships by itself.

    \b
    Examples:
      situ package spark
      situ package spark --out dist
    """
    from situ.app.spark_package import package_for_spark
    from situ.cli.project import open_project

    opened = open_project(project)
    target = out or opened.path / ".situ" / "package"
    archive, command = package_for_spark(opened.deployment.settings, opened.path, target)
    if output.json:
        output.data({"archive": str(archive), "bytes": archive.stat().st_size, "command": command})
        return Exit.DONE
    output.note(f"Wrote {archive} ({archive.stat().st_size / 1e6:.0f} MB), run.py and kubernetes.yaml.")
    output.text(command + "\n")
    return Exit.DONE
