"""What machines of a Spark cluster need of a project, packed."""

from __future__ import annotations

from pathlib import Path

from situ.lang.catalogue import NO_SPARK
from situ.lang.problems import SituError
from situ.settings import Settings


def package_for_spark(settings: Settings, folder: Path, out: Path) -> tuple[Path, str]:
    """The archive in this folder, and the command that submits it. N103 where Spark is not installed."""
    try:
        from situ.spark.cluster.remote import write_package
    except ModuleNotFoundError as error:
        raise SituError(NO_SPARK(reason=f"there is no Python module `{error.name}`")) from error
    return write_package(settings, folder, out)
