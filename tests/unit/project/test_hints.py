"""What messages say to do can be done and helps, and what they name can be told apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from situ.project.check import check_folder
from tests.project_files import write

TYPES = "events:\n  Reading: {heat: double °C, length: double m, speed: double km/h, plain: double}\n"


def problems_of(folder: Path, where: str) -> list[tuple[str, str]]:
    """The causes of what is wrong with a filter, and their hints."""
    subscription = f'{{types: [Reading], where: "{where}"}}'
    files = {"situ.yaml": "name: hints\n", "types/all.yaml": TYPES}
    write(folder, {**files, "clients/a.yaml": f"clients: {{a: {{subscriptions: {{s: {subscription}}}}}}}\n"})
    found = check_folder(folder).errors
    return [(each.cause.code.code, each.cause.hint) for each in found if each.cause is not None]


@pytest.mark.parametrize("attribute", ["heat", "length", "speed"])
@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("{} > plain", "{} > plain {}"),
        ("plain >= {} * 2", "plain {1} >= {0} * 2"),
        ("sqrt({}) > 3", "sqrt({} {}) > 3"),
        ("ln({}) > 3", "ln({} {}) > 3"),
    ],
)
def test_what_is_said_about_units_makes_them_fit(tmp_path: Path, attribute: str, wrong: str, right: str) -> None:
    ((code, hint),) = problems_of(tmp_path, wrong.format(attribute))
    assert code == "X104"
    found = re.search(r"(ultiply|ivide) it by `(1 \[[^]]+\])`", hint)
    assert found is not None, hint
    operator = "*" if found[1] == "ultiply" else "/"
    assert problems_of(tmp_path, right.format(attribute, f"{operator} {found[2]}")) == []


TWICE = {
    "situ.yaml": "name: twice\n",
    "types/all.yaml": "types:\n  A: {x: double}\nevents:\n  E: {a: A, b: int}\n",
    "contexts/us.yaml": """
        context: us
        types:
          A: {y: double}
        events:
          E: {a: A, c: int}
        functions:
          g: "A -> A = value"
        rules:
          out:
            - A -> g
        maps:
          - out: E -> E
            attributes: {c: b}
          - in: E -> E
    """,
}


def test_types_of_the_same_name_are_told_with_their_contexts(tmp_path: Path) -> None:
    """Whatever is said about two types names two."""
    found = [each.message for each in check_folder(write(tmp_path, TWICE)).problems]
    assert "`g` converts `us:A`, but the pattern leads to values of type `root:A`." in found
    assert "Nothing supplies `b` of `root:E`: `us:E` has no attribute of that name." in found
    assert "`c` of `us:E` has no counterpart in `root:E` and is dropped." in found
    assert [each for each in found if re.search(r"`([AE])`.*`\1`", each)] == []
