"""Write the generated pages of the documentation; with ``--check`` only say which of them would change.

One page is generated in part: what is between its markers. Both ways, paths of the source that a page names must exist.

Everything generated follows from the code alone: the same code gives the same bytes on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from reference import api, commands, errors, explanations, files, functions, overlay, packages, paths, picture

DOCS = Path(__file__).parents[1] / "docs"

PAGES: Mapping[str, Callable[[], str]] = {
    "images/check.svg": picture.page,
    packages.PAGE: packages.page,
    "internals/overlay.md": overlay.page,
    "reference/commands.md": commands.page,
    "reference/errors.md": errors.page,
    "reference/explanations.md": explanations.page,
    explanations.SCHEMAS: explanations.schemas,
    "reference/files.md": files.page,
    "reference/functions.md": functions.page,
    "reference/python.md": api.page,
}


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, "\nusage: generate_docs.py [--check]", file=sys.stderr)
        return 2
    stale = [name for name, page in PAGES.items() if not _is_current(DOCS / name, page(), write=not arguments)]
    for name in stale:
        print(f"docs/{name}: {'stale, run `make docs`' if arguments else 'written'}")
    missing = list(paths.missing())
    for each in missing:
        print(each)
    return 1 if missing or (stale and arguments) else 0


def _is_current(path: Path, text: str, *, write: bool) -> bool:
    if path.exists() and path.read_bytes() == text.encode():
        return True
    if write:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
