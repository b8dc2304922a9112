"""A plugin for pytest: how much CPU each test took, with all processes it started, as the property `cpu` of its report.

    .venv/bin/pytest -p scripts.test_cpu --junitxml report.xml …
    .venv/bin/python scripts/test_minutes.py report.xml

Seconds of CPU are the same on a busy machine, those of the clock are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest


def total() -> float:
    """What this process, those it waits for and those that still run have used so far."""
    here = psutil.Process()
    seconds = _of(here)
    for each in here.children(recursive=True):
        with suppress(psutil.Error):
            seconds += _of(each)
    return seconds


def _of(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


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
