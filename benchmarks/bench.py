"""What scenarios run in: a folder for their files, and one Spark session for all of a run.

What a scenario opens is closed when it ends; the session, whose Java takes seconds to start and longer to get warm,
stays until the run does. A session that is given to a run is used, and stays beyond it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


_CONF = {"spark.driver.memory": "8g"}
"""What joins of streams remember does not fit the heap that Situ runs with."""


class Bench:
    """``quick``: everything small, so that one sees whether it runs at all; the figures mean nothing."""

    def __init__(self, *, quick: bool = False, spark: SparkSession | None = None) -> None:
        self.quick = quick
        self.used_spark = False
        """Whether the scenario has used the session."""
        self._may_use_spark = True
        self._stack, self._kept = ExitStack(), ExitStack()
        self._shared: dict[Hashable, object] = {}
        self._given = spark
        self._spark: SparkSession | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="situ-bench-"))
        self._numbers = iter(range(1, 1_000_000))

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *error: object) -> None:
        self._kept.close()
        if self._spark is not None:
            self._spark.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def scenario(self, *, spark: bool) -> Iterator[None]:
        """What is opened in here is closed at its end. ``spark``: whether the session may be used."""
        self.used_spark, self._may_use_spark = False, spark
        with ExitStack() as self._stack:
            yield

    def open(self, thing: AbstractContextManager[T]) -> T:
        """Open for the scenario."""
        return self._stack.enter_context(thing)

    def share(self, key: Hashable, thing: Callable[[], AbstractContextManager[T]]) -> T:
        """Open for the scenario; in a quick run once, for all scenarios that ask for what is known by this key."""
        if not self.quick:
            return self.open(thing())
        if key not in self._shared:
            self._shared[key] = self._kept.enter_context(thing())
        return cast("T", self._shared[key])

    def folder(self, name: str) -> Path:
        """A new folder, gone when the scenario ends."""
        folder = self.lasting_folder(name)
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def lasting_folder(self, name: str) -> Path:
        """A new folder, gone when the run ends: of what is shared."""
        folder = self._folder / f"{name}-{next(self._numbers)}"
        folder.mkdir()
        return folder

    def number(self) -> int:
        """One that nobody has had, for the name of a client."""
        return next(self._numbers)

    def some(self, full: int, quick: int) -> int:
        """So many; in a quick run, so few."""
        return quick if self.quick else full

    @property
    def spark(self) -> SparkSession:
        """The session, as the engine has it."""
        assert self._may_use_spark, "a scenario that uses the session is declared with spark=True"
        self.used_spark = True
        if self._given is not None:
            return self._given
        if self._spark is None:
            from situ.spark.session import open_session

            self._spark = open_session(app="situ-benchmarks", conf=_CONF, log=self._folder / "spark.log")
        return self._spark
