"""Keep the classes that Java loads for a run, so that the next runs start in about half the time.

    .venv/bin/python scripts/class_archive.py

Runs the example on Spark for a moment and has Java write what it loaded, verified and linked into an archive ("class
data sharing"), where `situ.spark.session` looks for it. Java itself leaves an archive alone that is of another Java or
of other jars. Without one everything works as well, only slower: what goes wrong here is told and does no harm.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from situ.lang.problems import SituError
from situ.project.create import create_project
from situ.spark.session import CLASS_ARCHIVE

_PATIENCE = 300.0  # seconds for Java to write the archive, on a machine that is busy


def make_archive(archive: Path = CLASS_ARCHIVE) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        project, fresh = Path(scratch) / "project", Path(scratch) / archive.name
        create_project(project, example=True)
        with (project / "situ.yaml").open("a") as settings:
            settings.write(f"spark: {{conf: {{spark.driver.extraJavaOptions: '-XX:ArchiveClassesAtExit={fresh}'}}}}\n")
        situ = [sys.executable, "-m", "situ.cli.main"]
        with subprocess.Popen([*situ, "run", "--engine", "spark", "--quiet"], cwd=project) as run:
            try:
                log = project / ".situ" / "logs" / "situ.log"
                _wait(lambda: log.is_file() and "situ.host: running" in log.read_text(), "the run to be up", run)
                sensors = [sys.executable, "programs/sensors.py", "--for", "2", "--rate", "200"]
                subprocess.run(sensors, cwd=project, check=True, capture_output=True)
            finally:
                run.terminate()
        _wait(fresh.is_file, "Java to write the archive")
        shutil.move(_whole(fresh), archive)
        archive.chmod(0o644)  # Java makes it for the user of the run only


def _whole(file: Path) -> Path:
    """When it has stopped to grow. Java writes it after everything else has ended."""
    size = -1
    while size != (size := file.stat().st_size):
        time.sleep(1)
    return file


def _wait(condition: Callable[[], bool], what: str, run: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline or (run is not None and run.poll() is not None):
            raise OSError(f"waited in vain for {what}")
        time.sleep(0.2)


if __name__ == "__main__":
    try:
        make_archive()
    except (OSError, subprocess.SubprocessError, SituError) as problem:
        print(f"no archive of Java's classes, so Spark starts more slowly: {problem}")
