"""Drift: which files of a folder differ from those that were put in force from it.

The record of what was put in force is written when a run starts and by ``situ apply``. Comparing goes by the bytes of
the files and understands none of them: it has to answer for a folder that is half edited, and cost next to nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from situ.errors import Problems
from situ.project.folder import digest_of, list_files, read_file
from situ.project.places import OWN_FOLDER

RECORD = Path(OWN_FOLDER) / "applied.json"
_FORMAT = 1


def note_applied(path: Path, digests: Mapping[str, str]) -> None:
    """Write down what is in force from this folder now; who reads meanwhile sees the old or the new record, whole."""
    file = path / RECORD
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    text = json.dumps({"format": _FORMAT, "files": dict(sorted(digests.items()))}, indent=1)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text + "\n")
    beside.replace(file)


def edited_files(path: Path) -> tuple[str, ...]:
    """The files that are edited, new or gone since; none if nothing was ever put in force from this folder."""
    before = _recorded(path)
    if before is None:
        return ()
    problems = Problems()
    files = list_files(path, problems)
    now = {file: digest_of(data) for file in files if (data := read_file(path, file, problems)) is not None}
    return tuple(sorted(file for file in {*before, *now} if before.get(file) != now.get(file)))


def _recorded(path: Path) -> Mapping[str, str] | None:
    try:
        found = json.loads((path / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found["files"] if isinstance(found, dict) and found.get("format") == _FORMAT else None
