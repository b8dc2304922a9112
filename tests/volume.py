"""How much generated input a test tries: a share in every run, all of it in `make soak`.

A test with volume is two tests, a short one and a long one that is marked `soak`:

    @cases(100, 20_000)
    def test_plans_are_permitted(cases: int) -> None:
        for seed in range(cases): ...

Hypothesis tests need no mark. Its profile says how many examples they try, and `make soak` runs them all
(`tests/conftest.py`). Those that need more or fewer examples than others say so with `examples`.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
"""Which of the profiles of `tests/conftest.py` is in force; `make soak` says `soak`."""


def cases(normal: int, soak: int) -> pytest.MarkDecorator:
    """How many cases: gives the test its argument `cases`."""
    return pytest.mark.parametrize("cases", [normal, pytest.param(soak, marks=pytest.mark.soak)])


def seeds(normal: range, *soak: range) -> pytest.MarkDecorator:
    """Which seeds: gives the test its argument `seeds`. What is long may be cut into several tests."""
    many = [pytest.param(each, marks=pytest.mark.soak) for each in soak]
    return pytest.mark.parametrize("seeds", [normal, *many], ids=_name)


def _name(seeds: range) -> str:
    return f"{seeds.start}-{seeds.stop}"


def examples(normal: int, soak: int) -> settings:
    """How many examples hypothesis tries, for tests that are slower or more telling than others."""
    return settings(max_examples=soak if PROFILE == "soak" else normal)
