"""A plugin for pytest: how much CPU each test took, with all processes it started, as the property `cpu` of its report.

    .venv/bin/pytest -p scripts.test_cpu --junitxml report.xml …
    .venv/bin/python scripts/test_minutes.py report.xml

Seconds of CPU are the same on a busy machine, those of the clock are not.
"""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from situ.cpu_time import cpu_seconds


def total() -> float:
    """What this process, those it waits for and those that still run have used so far."""
    return cpu_seconds(psutil.Process())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    begun = total()
    item.stash[_BEGUN] = begun
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    answer = yield
    item.user_properties.append(("cpu", round(max(total() - item.stash[_BEGUN], 0.0), 2)))
    return answer


_BEGUN: pytest.StashKey[float] = pytest.StashKey()
