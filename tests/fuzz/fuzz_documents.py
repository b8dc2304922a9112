"""Any bytes as YAML, as JSON and as a file of types: nodes or problems, never anything else."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["situ"]):
    from situ.lang.documents import Document, ScalarNode, parse_json, parse_yaml, to_data
    from situ.lang.problems import Problems, render
    from situ.lang.types.resolve import load_types

from tests.fuzz.harness import fuzz

_PIECES = [
    "types:\n  ", "events:\n  ", "units: {EUR: currency}\n", "A: {x: double m}\n  ", "B(A): {y: [A]}\n  ", "{", "}",
    "[", "]", ": ", "- ", "\n", "\n  ", "\t", "'", '"', "|\n   ", ">-\n   ", "&a ", "*a", "!!int ", "<<: ", "# ",
    "optional ", "decimal(18,2)", "point", "null", "true", ".inf", "0x1f", "1e5", "---\n", "...\n", "${X}", "\\x00",
    "é", "🙂", ",", "?",
]  # fmt: skip


def bytes_of(data: bytes) -> bytes:
    provider = atheris.FuzzedDataProvider(data)
    if provider.ConsumeBool():
        return "".join(provider.PickValueInList(_PIECES) for _ in range(provider.ConsumeIntInRange(1, 80))).encode()
    return bytes(provider.ConsumeBytes(4000))


def look(document: Document) -> None:
    for problem in document.problems:
        assert problem.location is not None
        render(problem)
    if document.root is None:
        assert document.problems
        return
    to_data(document.root)
    if isinstance(document.root, ScalarNode):
        for offset in (0, len(document.root.text) // 2, len(document.root.text)):
            document.root.locate(offset)


def target(data: bytes) -> None:
    raw = bytes_of(data)
    document = parse_yaml(raw, "a.yaml")
    look(document)
    look(parse_json(raw, "a.json"))
    problems = Problems()
    load_types([document], problems)
    for problem in problems:
        render(problem)


if __name__ == "__main__":
    fuzz(target)
