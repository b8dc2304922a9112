"""How many declarations it takes to have others understood: counts those of a project's contexts and functions.

    python scripts/count_declarations.py examples/supply-chain examples/trading

A line that is neither blank nor a comment counts as one, or as many as there are mappings, renamed attributes, rules
and functions in it. Types, events and units are left out: they describe what there is, and come from schemas. Where a
project has patches in `changes/`, what they change is counted, too.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from situ.lang.documents import parse_yaml
from situ.lang.documents.nodes import MappingNode, Node, ScalarNode
from situ.lang.documents.nodes import SequenceNode as Items

FOLDERS = ("contexts", "functions")
LEFT_OUT = ("types", "events", "units")


def declarations(project: Path) -> tuple[str, ...]:
    """What is declared, one entry for each that counts, in the order of the files."""
    files = [file for folder in FOLDERS for file in sorted((project / folder).glob("*.yaml"))]
    return tuple(each for file in files for each in _of_text(file.read_text(encoding="utf-8")))


def changed(before: Sequence[str], after: Sequence[str]) -> int:
    """How many were added, taken out or written anew."""
    steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return sum(max(there - here, to - from_) for kind, here, there, from_, to in steps if kind != "equal")


def apply(project: Path, patch: Path, into: Path) -> Path:
    """A copy of the project with a patch applied."""
    shutil.copytree(project, into, ignore=shutil.ignore_patterns(".situ"))
    subprocess.run(["git", "apply", "-p1", str(patch.resolve())], cwd=into, check=True)
    return into


def count(project: Path) -> tuple[int, dict[str, int]]:
    """How much is declared, and how much of it each patch of ``changes/`` changes."""
    before = declarations(project)
    found: dict[str, int] = {}
    for patch in sorted((project / "changes").glob("*.patch")):
        with tempfile.TemporaryDirectory() as scratch:
            after = declarations(apply(project, patch, Path(scratch) / "project"))
        found[patch.stem] = changed(before, after)
    return len(before), found


# ── lines, and what stands in them ────────────────────────────────────────────────────────────────


def _of_text(text: str) -> Iterator[str]:
    root = parse_yaml(text, "").root
    entries = root.entries if isinstance(root, MappingNode) else ()
    starts = Counter(_line(text, node) for key, node in entries for node in _declared(key.text, node))
    section = ""
    for number, line in enumerate(text.splitlines()):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not line.startswith(" "):
            section = line.partition(":")[0]
        if section in LEFT_OUT:
            continue
        several = starts[number]
        if several < 2:
            yield line
        else:
            yield from (f"{line.strip()} ({place} of {several})" for place in range(1, several + 1))


def _declared(section: str, node: Node) -> Iterator[Node]:
    """The declarations of a section that could stand in a line with others."""
    match section, node:
        case "maps", Items(items=items):
            for item in items:
                yield item
                attributes = item.get("attributes") if isinstance(item, MappingNode) else None
                if isinstance(attributes, MappingNode):
                    yield from (key for key, _ in attributes.entries)
        case "rules", Items(items=items):
            yield from items
        case "rules", MappingNode(entries=entries):
            for _, rules in entries:
                yield from _declared("rules", rules)
        case "functions", MappingNode(entries=entries):
            yield from (key for key, _ in entries)


def _line(text: str, node: Node | ScalarNode) -> int:
    return text.count("\n", 0, node.start)


def main() -> None:
    for project in map(Path, sys.argv[1:]):
        specified, patches = count(project)
        print(project.name, f"specify {specified}", *(f"{name} {lines}" for name, lines in patches.items()))


if __name__ == "__main__":
    main()
