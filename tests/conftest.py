"""What all tests share: one Spark session for the whole run, how much hypothesis tries, what runs beside what.

Tests run in a few processes at once (`-n`, see the Makefile), since most of them wait more than they compute. All that
use the Spark session are in one process, so that there is one session; so are those that start runs of their own, so
that there are not many; any other file is in one, for what its tests share.
"""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.volume import PROFILE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.postgresql import PostgresqlServer

pytest_plugins = ("tests.golden_files",)
ROOT = Path(__file__).parents[1]

# The same examples in every run, so that a failure is a change and not a draw of luck; `soak` looks for new ones.
settings.register_profile(
    # How fast cases are made says something about the machine only.
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "soak", deadline=None, max_examples=10_000, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(PROFILE)

# Tests start Java often and keep it busy for seconds only: what the second compiler would gain, it never earns back.
# Without that one Java reserves 48 MB for compiled code, which the expressions of all tests of Spark do not fit into.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC")

# A shell that starts tests in the background has them ignore Ctrl-C, and so would all runs that tests end by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session, started by the first test that asks: a run without such tests starts no Java."""
    from situ.spark.session import open_session

    session = open_session(app="situ-tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresqlServer]:
    """The one PostgreSQL server of the process, started by the first test that asks."""
    from tests.postgresql import postgresql_server

    with postgresql_server(tmp_path_factory.mktemp("postgresql")) as server:
        yield server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the session, so that `-m "not spark"` is the quick half of the tests; put the longest first.

    In a soak every test of hypothesis is a long one: the profile gives it hundreds of times the examples.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if PROFILE == "soak" and getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.soak)
    order = {name: number for number, name in enumerate(dict.fromkeys(map(_path, items)))}
    items.sort(key=lambda item: (_FIRST.get(group_of(_path(item)), len(_FIRST)), order[_path(item)]))


def pytest_collection_finish() -> None:
    """What is loaded stays to the end: looking through it for garbage is a twentieth of the time of all tests."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deal tests out by groups."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid.partition("::")[0])

    return ByGroup(config, log)


# What starts engines in processes of their own, one after the other.
_STARTS_RUNS = (
    "tests/faults/",
    "tests/e2e/test_cli_run",
    "tests/e2e/test_cli_actions",
    "tests/e2e/test_cli_show",
    "tests/integration/repository/test_benchmarks.py",
)
_FIRST = {"spark": 0, "runs": 1}


def _path(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


@cache
def group_of(path: str) -> str:
    """The tests of one group are in one process, in their order."""
    if re.search(r"\bspark: SparkSession", (ROOT / path).read_text(encoding="utf-8")):
        return "spark"
    if path.startswith("tests/integration/kafka/"):
        return "kafka"  # they share a broker
    return "runs" if path.startswith(_STARTS_RUNS) else path
