"""Every public name has an example that runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import situ
import situ.testing
from tests.public_examples import ExampleZone, example_zone

NAMES = [
    *(("situ", name) for name in situ.__all__ if name != "__version__"),
    *(("situ.testing", name) for name in situ.testing.__all__),
]


@pytest.fixture(scope="module")
def zone() -> Iterator[ExampleZone]:
    with example_zone() as running:
        yield running


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_the_example_of_a_public_name_runs(module: str, name: str, zone: ExampleZone) -> None:
    what = getattr(situ if module == "situ" else situ.testing, name)
    assert what.__doc__
    assert zone.run(what.__doc__, f"{module}.{name}") == []


def test_an_example_that_shows_something_else_is_found(zone: ExampleZone) -> None:
    assert zone.run(">>> (await gate.status()).client\n'office'\n", "wrong")
