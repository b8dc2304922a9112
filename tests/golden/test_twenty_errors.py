"""Twenty mistakes of twenty kinds in one folder: all reported in one run, each at its place, with its remedy.

The files mark each mistake in its own line with the code that is expected there, so places are checked without
looking at what the checker says; the golden file shows how it reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from situ.lang.problems import render
from situ.project.check import check_folder

FOLDER = Path(__file__).parent / "twenty-errors"
MARK = re.compile(r"# <- (\w+)")


def planted() -> Iterator[tuple[str, int, str]]:
    for file in sorted(FOLDER.rglob("*.yaml")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            for code in MARK.findall(line):
                yield file.relative_to(FOLDER).as_posix(), number, code


def test_twenty_errors_are_found_where_they_are(golden: Callable[[str, str], None]) -> None:
    checked = check_folder(FOLDER, {})
    expected = list(planted())
    found = [
        (place.file, place.line, problem.code.code)
        for problem in checked.problems
        if (place := problem.location) is not None
    ]
    assert len(expected) == len({code for _, _, code in expected}) == 20
    assert found == expected, "each once, in order of place, and nothing besides"
    assert checked.deployment is None
    golden("twenty-errors.txt", "\n\n".join(map(render, checked.problems)) + "\n")


def test_every_one_of_them_says_what_to_do() -> None:
    assert [str(problem) for problem in check_folder(FOLDER, {}).problems if not problem.hint] == []
