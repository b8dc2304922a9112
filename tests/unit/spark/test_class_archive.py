"""Java starts with an archive of classes that fits, and with one that does not, and says nothing about either."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from situ.spark import session


@pytest.mark.parametrize("made", [True, False], ids=["of this Java", "of no Java"])
def test_java_starts_with_any_archive(made: bool, tmp_path: Path) -> None:
    session._find_java()
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    assert java is not None
    archive = tmp_path / "classes.jsa"
    if made:
        subprocess.run([java, f"-XX:ArchiveClassesAtExit={archive}", "-version"], check=True, capture_output=True)
    else:
        archive.write_bytes(b"nothing of Java's" * 1000)
    options = shlex.split(session.share_classes(archive))
    answer = subprocess.run([java, *options, "-version"], capture_output=True, text=True, check=True)
    assert answer.stdout == ""
    assert "archive" not in answer.stderr.lower()


def test_what_a_user_sets_for_java_stays(tmp_path: Path) -> None:
    archive = tmp_path / "classes of Java.jsa"
    wanted = {"spark.driver.extraJavaOptions": "-Xss4m"}
    assert session.with_class_archive(wanted, archive) == wanted
    archive.touch()
    options = session.with_class_archive(wanted, archive)["spark.driver.extraJavaOptions"]
    assert shlex.split(options)[0] == f"-XX:SharedArchiveFile={archive}"
    assert options.endswith(" -Xss4m")
