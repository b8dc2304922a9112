"""Filters in the terms of a context that no root event can satisfy are warned about; those that just can are not."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from situ.project.check import check_folder
from tests.project_files import write

FILES = {
    "situ.yaml": "version: 1\nname: deliveries\n",
    "types/all.yaml": "version: 1\nevents: {Update: {distance: double m, kind: string}}\n",
    "contexts/us.yaml": """
version: 1
context: us
events: {Seen: {distance: double yd, kind: string, by: string}}
maps: [{out: Update -> Seen, attributes: {by: {default: road}}}]
functions: {to_yards: double m -> double yd = value * 1.09}
""",
}


def warned(folder: Path, where: str) -> list[str]:
    subscription = f'{{types: [Seen], where: "{where}"}}'
    clients = f"version: 1\nclients: {{desk: {{context: us, subscriptions: {{s: {subscription}}}}}}}\n"
    checked = check_folder(write(folder, {**FILES, "clients/all.yaml": clients}), {})
    assert not [str(each) for each in checked.errors]
    return [each.code.code for each in checked.problems if each.code.code.startswith("INT6")]


def test_the_numbers_are_as_they_should_be() -> None:
    """No double times 1.09 is 109, though 100 times 1.09 is its neighbour."""
    below = math.nextafter(100.0, 0)
    assert below * 1.09 < 109.0 < 100.0 * 1.09 == math.nextafter(109.0, math.inf)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("distance = 109 yd", ["INT603"]),
        ("distance = 109.00000000000001 yd", []),
        ("by = 'sea'", ["INT603"]),
        ("kind = 'sea'", []),
        ("FALSE", ["INT603"]),
    ],
)
def test_filters(tmp_path: Path, where: str, expected: list[str]) -> None:
    assert warned(tmp_path, where) == expected
