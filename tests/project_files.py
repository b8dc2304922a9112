"""Project folders for tests: from texts to files on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

MINIMAL = {"situ.yaml": "name: test\n"}


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Put these files into the folder, which is made if need be."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else dedent(content).encode())
    return folder
