"""What scenarios run in: a folder for their files, and one Spark session for all of a run.

What a scenario opens is closed when it ends; the session, whose Java takes seconds to start and longer to get warm,
stays until the run does.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


_CONF = {"spark.driver.memory": "8g"}
"""What joins of streams remember does not fit the heap that Situ runs with."""


class Bench:
    """``quick``: everything small, so that one sees whether it runs at all; the figures mean nothing."""

    def __init__(self, *, quick: bool = False) -> None:
        self.quick = quick
        self._stack = ExitStack()
        self._spark: SparkSession | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="situ-bench-"))
        self._numbers = iter(range(1, 1_000_000))

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *error: object) -> None:
        if self._spark is not None:
            self._spark.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def scenario(self) -> Iterator[None]:
        """What is opened in here is closed at its end."""
        with ExitStack() as self._stack:
            yield

    def open(self, thing: AbstractContextManager[T]) -> T:
        """Open for the scenario."""
        return self._stack.enter_context(thing)

    def folder(self, name: str) -> Path:
        """A new folder, gone when the scenario ends."""
        folder = self._folder / f"{name}-{next(self._numbers)}"
        folder.mkdir()
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def some(self, full: int, quick: int) -> int:
        """So many; in a quick run, so few."""
        return quick if self.quick else full

    @property
    def spark(self) -> SparkSession:
        """The session, as the engine has it."""
        if self._spark is None:
            from situ.pipeline.session import open_session

            self._spark = open_session(app="situ-benchmarks", conf=_CONF, log=self._folder / "spark.log")
        return self._spark
