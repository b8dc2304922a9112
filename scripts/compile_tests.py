"""Compile the tests once, before several processes share them: each of those would compile all of them.

    .venv/bin/python scripts/compile_tests.py

pytest rewrites the assertions of every module, which takes several times as long as the rest of collecting. Two
processes do it for half of the modules each. What they made is kept, also where Python is told to write no bytecode.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

ROOT = Path(__file__).parents[1]
_PROCESSES = 2


def stale(tests: Path) -> list[Path]:
    """Modules of tests that were changed since pytest compiled them, or that it never has."""
    return [file for file in sorted(tests.rglob("test_*.py")) if not _is_compiled(file)]


def _is_compiled(file: Path) -> bool:
    kept = Path(cache_from_source(str(file))).parent.glob(f"{file.stem}.*-pytest-*.pyc")
    return any(each.stat().st_mtime >= file.stat().st_mtime for each in kept)


def main() -> int:
    files = stale(ROOT / "tests")
    parts = [part for part in (files[number::_PROCESSES] for number in range(_PROCESSES)) if part]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider"]
    started = [
        subprocess.Popen([*command, *map(str, part)], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        for part in parts
    ]
    for process in started:
        process.wait()
    return 0  # a module that cannot be collected is told of by the tests


if __name__ == "__main__":
    sys.exit(main())
