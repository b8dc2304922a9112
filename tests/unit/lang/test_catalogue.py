"""Every code of the catalogue is reported somewhere, provoked by a test, and complete in its texts.

That every code is documented is checked with its page, in ``tests/unit/repository/test_docs_reference.py``.
"""

from __future__ import annotations

import ast
import re
import string
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import situ.lang.catalogue
from situ.lang.catalogue import CODES
from situ.lang.problems import Code, Severity, define

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "src" / "situ"
TESTS = ROOT / "tests"
NAMES = {value.code: name for name, value in vars(situ.lang.catalogue).items() if isinstance(value, Code)}
# These tests are about the catalogue and its page; that a code stands in them shows nothing about the product.
ABOUT_CODES = ("test_catalogue.py", "test_docs_reference.py")
# A problem as people read it (`error P103: …`, `because X102: …`), as one line (`file:1:2: P103 …`), or as JSON.
REPORTED = re.compile(r'(?:\b(?:error|warning|observation|because) |:\d+:\d+: |"code": ")((?:INT|[A-Z])\d{3})\b')
LITERAL = re.compile(r"\b(?:INT|[A-Z])\d{3}\b")


def test_codes_are_reported_by_the_product() -> None:
    assert sorted({*NAMES.values()} - names_in_use()) == [], "never reported: take them out"


def test_codes_are_provoked_by_tests() -> None:
    unexpected = [f"{code.code} ({code.title})" for code in CODES.values() if code.code not in provoked()]
    assert unexpected == [], "no test expects them: write one for each that provokes it"


def test_texts_mention_exactly_the_declared_values() -> None:
    found = {code.code: mentioned(code.message, code.hint, code.otherwise) for code in CODES.values()}
    assert found == {code.code: set(code.parameters) for code in CODES.values()}


def test_texts_are_sentences() -> None:
    assert [code.code for code in CODES.values() if code.title.endswith(".")] == []
    assert [code.code for code in CODES.values() if not code.message.endswith(".")] == []
    hints = [(code.code, hint) for code in CODES.values() for hint in (code.hint, code.otherwise) if hint]
    assert [(code, hint) for code, hint in hints if not hint.endswith((".", "?")) and not mentioned(hint)] == []


def test_what_follows_an_empty_hint_is_said_too() -> None:
    """``otherwise`` takes the place of a hint whose values are empty: it needs a hint that has values."""
    assert [code.code for code in CODES.values() if code.otherwise and not mentioned(code.hint)] == []


def test_every_code_has_one_name_and_stands_under_its_own_number() -> None:
    assert len(NAMES) == len(CODES)
    assert all(key == code.code for key, code in CODES.items())


def test_titles_tell_codes_apart() -> None:
    titles = Counter((re.match("[A-Z]+", code.code)[0], code.title) for code in CODES.values())
    assert [title for title, number in titles.items() if number > 1] == []


def test_numbers_say_how_severe_a_problem_is() -> None:
    """1xx refuse, 2xx inform, 7xx are dead letters; interpretation keeps hundreds for its own subjects.

    R0xx are what routers answer. Visibility refuses with 0xx and warns with 1xx.
    """
    for code in CODES.values():
        prefix, hundreds = code.code[:-3], code.code[-3]
        if prefix == "V":
            assert (code.severity is Severity.ERROR) == (hundreds == "0"), code
        elif prefix != "INT":
            assert hundreds in ("0127" if prefix == "R" else "127"), code
            assert (code.severity is Severity.ERROR) == (hundreds != "2"), code


def test_every_module_of_the_catalogue_is_part_of_it() -> None:
    """A code in a module that is left out would be missing from the pages and from ``situ explain code``."""
    modules = {path.stem for path in (SOURCES / "lang" / "catalogue").glob("[a-z]*.py")}
    imported = ast.parse((SOURCES / "lang" / "catalogue" / "__init__.py").read_text()).body
    assert {f"situ.lang.catalogue.{name}" for name in modules} == {
        node.module for node in imported if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    }


def test_code_cannot_be_defined_twice() -> None:
    with pytest.raises(ValueError, match="P103 is defined twice"):
        define("P103", "again", "Again.")
    assert CODES["P103"].title == "unknown key"


def mentioned(*texts: str) -> set[str]:
    return {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}


@cache
def names_in_use() -> frozenset[str]:
    """The names from the catalogue that code of the product uses; importing one is not using it."""
    texts = (path.read_text() for path in SOURCES.rglob("*.py") if path.parent.name != "catalogue")
    return frozenset(
        node.id if isinstance(node, ast.Name) else node.attr
        for text in texts
        if "catalogue" in text  # who uses a code imports it from there; parsing all of the product takes seconds
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


@cache
def provoked() -> frozenset[str]:
    """Codes that a test expects: in a golden file as a reported problem, or as a literal in a test's code."""
    golden = (TESTS / "golden").rglob("*.txt")
    found = {code for path in golden for code in REPORTED.findall(path.read_text())}
    for path in TESTS.rglob("*.py"):
        if path.name not in ABOUT_CODES and LITERAL.search(source := path.read_text()):
            found.update(code for text in literals(ast.parse(source)) for code in LITERAL.findall(text))
    return frozenset(found)


def literals(tree: ast.AST) -> Iterator[str]:
    """The texts in the code; a docstring is no code and shows nothing."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value
