"""Paths and modules of the source that documents name: whether they exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PATH = re.compile(r"\bsrc/situ/[\w/]*\w(?:\.\w+)?")
_MODULE = re.compile(r"`situ((?:\.[a-z_]\w*)+)(?:\.[A-Z]\w*)*`")

# Names that begin like a module and are none: types of events, functions of the package, an entry point, a file.
_NO_MODULES = re.compile(r"situ\.(?:action|connect|connect_blocking|deadletter|lost|situation|strategies|yaml)\b")


def missing() -> Iterator[str]:
    """Where a document names a path or a module below `src/situ` that is not there."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "internals").rglob("*.md"))]
    for page in pages:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for name in _names(line):
                yield f"{page.relative_to(ROOT)}:{number}: {name} does not exist"


def _names(line: str) -> Iterator[str]:
    yield from (path for path in _PATH.findall(line) if not (ROOT / path).exists())
    for found in _MODULE.finditer(line):
        name = found[0].strip("`")
        if not _NO_MODULES.match(name) and not _is_module(found[1].strip(".").split(".")):
            yield name


def _is_module(parts: list[str]) -> bool:
    """A module, or a name in one."""
    path = ROOT / "src" / "situ"
    for place, part in enumerate(parts):
        if (path / f"{part}.py").exists():
            return len(parts) - place <= 2  # the module, and perhaps one name in it
        if not (path / part).is_dir():
            return place == len(parts) - 1 and place > 0  # a name of the package
        path /= part
    return True
