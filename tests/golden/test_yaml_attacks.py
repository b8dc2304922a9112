"""Hostile and broken YAML: each file is refused, at the right place, in words that help, at once."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from situ.lang.documents import Document, DocumentLimits, parse_yaml, to_data
from situ.lang.problems import render

ATTACKS = sorted((Path(__file__).parents[1] / "attacks" / "yaml").glob("*.yaml"))


def test_there_are_attacks() -> None:
    assert len(ATTACKS) >= 35


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: path.stem)
def test_refused_with_place_and_remedy(path: Path, golden: Callable[[str, str], None]) -> None:
    document = parse_yaml(path.read_bytes(), path.name)
    assert document.problems
    assert all(problem.location is not None and problem.hint for problem in document.problems)
    golden(f"yaml_attacks/{path.stem}.txt", _report(document))


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: path.stem)
def test_both_parsers_refuse_alike(path: Path) -> None:
    fast = parse_yaml(path.read_bytes(), path.name)
    slow = parse_yaml(path.read_bytes(), path.name, fast=False)
    assert [problem.code.code for problem in slow.problems] == [problem.code.code for problem in fast.problems]
    assert [problem.location for problem in slow.problems] == [problem.location for problem in fast.problems]


MEBIBYTE = 1024 * 1024

GENERATED: dict[str, tuple[Callable[[], str | bytes], str]] = {
    "10 MB of brackets": (lambda: b"[" * 10_000_000, "P108"),
    "10 MB of braces": (lambda: "{a: " * 2_500_000, "P108"),
    "10 MB of dashes": (lambda: "- " * 5_000_000, "P108"),
    "3 MB of brackets": (lambda: "[" * 3 * MEBIBYTE, "P108"),
    "3 MB of braces": (lambda: "{a: " * (3 * MEBIBYTE // 4), "P108"),
    "3 MB of dashes": (lambda: "- " * (3 * MEBIBYTE // 2), "P108"),
    "3 MB of question marks": (lambda: "? " * (3 * MEBIBYTE // 2), "P108"),
    "a staircase": (lambda: "".join(" " * step + "a:\n" for step in range(2_000)), "P108"),
    "a million values": (lambda: "- a\n" * 1_000_000, "P108"),
    "a million values in one line": (lambda: "[" + "a," * 1_000_000 + "]", "P108"),
    "200,001 keys": (lambda: "".join(f"k{number}: 1\n" for number in range(200_001)), "P108"),
    "one key, half a million times": (lambda: "k: 1\n" * 500_000, "P106"),
    "half a million aliases": (lambda: "[" + "*a," * 500_000 + "]", "P107"),
    "3 MB of a tag": (lambda: "!" * 3 * MEBIBYTE, "P107"),
    "3 MB of an anchor": (lambda: "&" + "a" * 3 * MEBIBYTE, "P107"),
    "half a million documents": (lambda: "---\n" * 500_000, "P117"),
    "an open quote": (lambda: '"' + "a " * MEBIBYTE, "P102"),
    "3 MB of tabs": (lambda: "\t" * 3 * MEBIBYTE, "P102"),
    "3 MB of directives": (lambda: "#\n" * MEBIBYTE + "%YAML 1.2", "P107"),
    "a hundred thousand lists as keys": (lambda: "[]: 1\n" * 100_000, "P118"),
}


@pytest.mark.parametrize("name", GENERATED)
def test_generated_attack_is_refused_at_once(name: str) -> None:
    make, code = GENERATED[name]
    data = make()
    start = time.process_time()
    document = parse_yaml(data, "attack.yaml")
    seconds = time.process_time() - start
    assert document.problems[0].code.code == code
    assert len(document.problems) <= DocumentLimits().problems + 1
    assert seconds < 10, "a bound with room for a slow machine; seconds at most on a common one"


HARMLESS: dict[str, Callable[[], str]] = {
    "a number of 3 million digits": lambda: "a: " + "9" * 3 * MEBIBYTE,
    "a fraction of 3 million digits": lambda: "a: 0." + "9" * 3 * MEBIBYTE,
    "an exponent of 3 million digits": lambda: "a: 1e" + "9" * 3 * MEBIBYTE,
    "a hexadecimal number of 3 million digits": lambda: "a: 0x" + "f" * 3 * MEBIBYTE,
    "3 MB of empty lines": lambda: "\n" * 3 * MEBIBYTE,
    "3 MB of remarks": lambda: "#\n" * MEBIBYTE,
    "3 MB of escapes": lambda: '"' + "\\n" * MEBIBYTE + '"',
    "a folded line of a million parts": lambda: ">\n" + " a\n" * MEBIBYTE,
    "a plain text of a million lines": lambda: "a\n" * MEBIBYTE,
    "3 MB of a line": lambda: "a: " + "x" * 3 * MEBIBYTE,
}


@pytest.mark.parametrize("name", HARMLESS)
def test_large_but_plain_is_read_at_once(name: str) -> None:
    text = HARMLESS[name]()
    start = time.process_time()
    document = parse_yaml(text, "large.yaml")
    seconds = time.process_time() - start
    assert document.root is not None
    assert not document.problems
    assert seconds < 10


def test_memory_stays_in_proportion() -> None:
    text = "{" + "k: 1, " * 500_000 + "}"
    tracemalloc.start()
    try:
        document = parse_yaml(text, "attack.yaml")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert document.root is None
    assert peak < 20 * MEBIBYTE, "a hundred problems in one line share that line"


def _report(document: Document) -> str:
    shown = "nothing" if document.root is None else json.dumps(to_data(document.root), ensure_ascii=False)
    return "\n\n".join([*(render(problem) for problem in document.problems), f"read: {shown}"]) + "\n"
