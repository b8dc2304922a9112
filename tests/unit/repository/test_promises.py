"""Every promise of the documentation names tests that exist and run in `make test`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "concepts" / "promises.md").read_text(encoding="utf-8")
SECTIONS = {
    title: text for title, _, text in (part.partition("\n") for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:])
}
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_ROW = re.compile(r"^\| (?!promised|---)(.*) \| (.*) \|$", re.MULTILINE)


def test_the_page_is_about_everything_that_is_promised() -> None:
    expected = {
        "Delivery", "Order", "Situations", "Late events", "Switching engines", "Hostile input", "Visibility",
    }  # fmt: skip
    assert set(SECTIONS) == expected


@pytest.mark.parametrize("title", SECTIONS)
def test_each_part_says_what_it_promises_and_where_that_ends(title: str) -> None:
    rows = _ROW.findall(SECTIONS[title])
    assert rows
    assert all(_TEST.search(shown) for _, shown in rows), "a promise without a test"
    assert "Where it ends:" in SECTIONS[title]


@pytest.mark.parametrize(("file", "name"), sorted(set(_TEST.findall(PAGE))))
def test_a_test_that_is_named_exists_and_runs_in_make_test(file: str, name: str) -> None:
    found = [
        each
        for each in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == name
    ]
    assert found, f"{file} has no {name}"
    marks = [ast.unparse(mark) for each in found for mark in each.decorator_list]
    assert not [mark for mark in marks if re.match(r"pytest\.mark\.(soak|skip\b|xfail)", mark)]
