"""Run the tests that a change can reach.

    .venv/bin/python scripts/changed_tests.py [--since REF] [--list] [PYTEST OPTIONS]

A change is what differs from REF (`main` on the branch it left), committed or not, new files included. A test file is
reached if it is changed, or if what it imports leads to something changed: imports inside functions count, and so do
modules, files and folders of the project that a string names, as in `"situ.cli.main"` or `ROOT / "docs"`. What decides
about all tests, such as the locked dependencies, reaches them all.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_CODE = ("src", "tests", "benchmarks", "scripts", "examples")
_SOURCES = (ROOT / "src", ROOT / "examples/smart-building/programs", ROOT)  # where imports are looked for
_ALL = re.compile(r"pyproject\.toml|requirements/|tests/conftest\.py|tests/__init__\.py|Makefile|\.ci/")
_NAMED = re.compile(r"\w[\w./-]{2,200}")


def changed_files(since: str) -> set[str]:
    """Paths that differ from the common ancestor with ``since``."""
    base = _git("merge-base", since, "HEAD").strip()
    return {
        *_git("diff", "--name-only", base).split("\n"),
        *_git("ls-files", "--others", "--exclude-standard").split("\n"),
    } - {""}


def reached_tests(changed: Iterable[str], root: Path = ROOT) -> list[str]:
    """The test files that these paths can reach, in order."""
    changed = set(changed)
    files = {path.relative_to(root).as_posix(): path for top in _CODE for path in sorted((root / top).rglob("*.py"))}
    tests = [path for path in files if re.search(r"^tests/.*/?test_\w+\.py$", path)]
    if any(_ALL.match(path) for path in changed):
        return tests
    uses = {path: set(_uses(file, root)) for path, file in files.items()}
    return [path for path in tests if _leads_to(path, uses, changed)]


def _leads_to(start: str, uses: Mapping[str, set[str]], changed: set[str]) -> bool:
    seen, left = {start}, [start]
    while left:
        path = left.pop()
        if path in changed or any(each.startswith(f"{path}/") for each in changed):
            return True
        for used in uses.get(path, ()):
            if used not in seen:
                seen.add(used)
                left.append(used)
    return False


def _uses(file: Path, root: Path) -> Iterator[str]:
    """Files and folders of the project that a module imports or names."""
    package = file.relative_to(root).parent.as_posix()
    if (file.parent / "conftest.py").is_file():
        yield f"{package}/conftest.py"
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module(alias.name, root)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield from _module(f"{node.module}.{alias.name}", root)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAMED.fullmatch(node.value):
            yield from _named(node.value, package, root)


@cache
def _module(name: str, root: Path) -> tuple[str, ...]:
    """The file of a module and of the packages around it; a name that is no module is looked for in its package."""
    return tuple(_files_of(name.split("."), root))


def _files_of(parts: list[str], root: Path) -> Iterator[str]:
    for source in _SOURCES:
        folder = root / source.relative_to(ROOT) if source != ROOT else root
        for depth in range(1, len(parts) + 1):
            place = folder.joinpath(*parts[:depth])
            for file in (place / "__init__.py", place.with_suffix(".py")):
                if file.is_file():
                    yield file.relative_to(root).as_posix()


@cache
def _named(text: str, package: str, root: Path) -> tuple[str, ...]:
    """The modules, files or folders that a string names. That of a top folder of code says nothing: all is in it."""
    if re.fullmatch(r"situ(\.\w+)+", text):
        return _module(text, root)
    return tuple(place for place in (text, f"{package}/{text}") if place not in _CODE and (root / place).exists())


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests that a change can reach.")
    parser.add_argument("--since", default="main", help="what the change is compared with (main)")
    parser.add_argument("--list", action="store_true", help="only list the test files")
    options, more = parser.parse_known_args()
    changed = changed_files(options.since)
    tests = reached_tests(changed)
    if options.list or not tests:
        print("\n".join(tests) or f"No test is reached by the {len(changed)} changed files.")
        return 0
    print(f"{len(changed)} changed files reach {len(tests)} test files.", flush=True)
    pytest = Path(sys.executable).with_name("pytest")
    return subprocess.call([pytest, "-n", "2", "--dist", "loadscope", "--no-loadscope-reorder", *more, *tests])


if __name__ == "__main__":
    sys.exit(main())
