"""Figures about the tree of modules: how many there are, how large they are, and what they are called.

    .venv/bin/python scripts/measure_tree.py [FOLDER]

FOLDER holds `src/situ`; without it, it is this project. Nothing is imported: the files are read. A gerund or a
participle is told by the ending of any word in a name. Migrations are not judged: their names are in databases.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGE = "situ"
_MANY = 20  # modules beside each other, as CONTRIBUTING.md has it
_ENDINGS = ("ing", "ed")
# Nouns of the field, and others, that end like a gerund or a participle.
_NOUNS = frozenset("feed need routing seed shaping string testing".split())
_IRREGULAR = frozenset(
    "begun bound built found given gone heard held kept known left made met seen sent shown taken told written".split()
)


def modules_of(root: Path) -> Mapping[str, Path]:
    """All modules and packages by their names."""
    source = root / "src"
    found = {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        found[".".join(parts)] = path
    return found


def measure(root: Path) -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    modules = modules_of(root)
    texts = {name: path.read_text(encoding="utf-8") for name, path in modules.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    files = {name for name, path in modules.items() if path.name != "__init__.py"}
    lines = {name: texts[name].count("\n") for name in modules}
    largest = max(files, key=lambda name: lines[name])
    yield "modules", str(len(files))
    yield "packages", str(len(modules) - len(files))
    yield "lines", f"{sum(lines.values()):,}"
    yield "median module", f"{statistics.median(lines[name] for name in files):.0f} lines"
    yield "largest module", f"{lines[largest]:,} lines, {largest}"
    importers = _importers(modules, trees)
    yield "modules with one importer", str(sum(len(importers[name]) == 1 for name in files))
    beside = Counter(name.rpartition(".")[0] for name in files)
    folder, most = beside.most_common(1)[0]
    yield "most modules in a folder", f"{most}, {folder}"
    yield f"folders with more than {_MANY} modules", str(sum(count > _MANY for count in beside.values()))
    named = [name for name in files if ".migrations." not in name and _is_gerund(name.rpartition(".")[2])]
    yield "module names with a gerund or participle", str(len(named))
    twice = {name: places for name, places in _classes(trees).items() if len(places) > 1}
    public = sum(not name.startswith("_") for name in twice)
    yield "class names used twice", f"{len(twice)}, of them public {public}"
    yield "public names", str(len(_public(trees[PACKAGE])))
    comments = sum(map(_comment_lines, texts.values()))
    yield "lines with nothing but a comment", f"{100 * comments / sum(lines.values()):.1f} %"


def _importers(modules: Mapping[str, Path], trees: Mapping[str, ast.Module]) -> Mapping[str, set[str]]:
    """By which modules of the package each is imported, wherever the import stands."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                # `from situ.a import b`: b is a module, or a name in `situ.a`.
                below = [f"{node.module}.{alias.name}" for alias in node.names]
                wanted = [each if each in modules else node.module for each in below]
            else:
                continue
            for each in wanted:
                if each in modules and each != name:
                    found[each].add(name)
    return found


def _is_gerund(name: str) -> bool:
    return any(
        word in _IRREGULAR or (word.endswith(_ENDINGS) and word not in _NOUNS) for word in name.strip("_").split("_")
    )


def _classes(trees: Mapping[str, ast.Module]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(name)
    return found


def _public(package: ast.Module) -> list[str]:
    """What `__all__` of the package lists."""
    for node in package.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def _comment_lines(text: str) -> int:
    """Lines that are a comment and nothing else; rules between sections say nothing and do not count."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = (token for token in tokens if token.type == tokenize.COMMENT)
    return sum(token.line.lstrip().startswith("#") and token.string.strip("# ─") != "" for token in comments)


def main(arguments: list[str]) -> int:
    if len(arguments) > 1:
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(arguments[0]) if arguments else Path(__file__).parents[1]
    rows = list(measure(root))
    width = max(len(what) for what, _ in rows)
    for what, figure in rows:
        print(f"{what:<{width}}  {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
