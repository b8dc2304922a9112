"""Golden files: what the product says in a case, kept as one text file a case.

A test asks for the fixture ``golden`` and calls ``golden("folder/name.txt", text)``. The text must equal the
file under ``tests/golden/``; ``pytest --update-golden`` writes the files anew, and the difference is
then read in review.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    update: bool = request.config.getoption("--update-golden", default=False)

    def check(name: str, text: str) -> None:
        path = FOLDER / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        assert path.exists(), f"no golden file {name}: run pytest --update-golden and review it"
        assert text == path.read_bytes().decode(), f"{name} says otherwise: pytest --update-golden if that is meant"

    return check
