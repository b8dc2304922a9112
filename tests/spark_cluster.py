"""A standalone Spark cluster for tests: a master and workers that share nothing with the driver but the network.

Each worker is in a mount namespace of its own, in which folders that it must not need are hidden by empty ones.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pyspark

from tests.nats_server import free_port

HOME = Path(pyspark.__file__).parent
_WITHIN = 120.0
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What lives for a minute is not worth compiling well."""


def why_not() -> str:
    """Why no such cluster can be had here; nothing, if it can."""
    if shutil.which("unshare") is None:
        return "there is no `unshare`"
    tried = subprocess.run(_namespace(["true"], []), capture_output=True, text=True, check=False)
    return f"mount namespaces are not allowed here: {tried.stderr.strip()}" if tried.returncode else ""


def _namespace(command: Sequence[str], hidden: Sequence[Path]) -> list[str]:
    own = [] if os.geteuid() == 0 else ["--map-root-user"]
    steps = ["set -e", "empty=$(mktemp -d)"]
    steps += [f'mount --bind "$empty" {shlex.quote(str(folder))}' for folder in hidden]
    steps.append(f"exec {shlex.join(command)}")
    return ["unshare", "--mount", *own, "sh", "-c", "\n".join(steps)]


class SparkCluster:
    """``hidden`` are folders that workers see as empty."""

    def __init__(self, folder: Path, hidden: Sequence[Path]) -> None:
        self._folder, self._hidden = folder, hidden
        self._port, self._page = free_port(), free_port()
        self._master: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self._numbers = iter(range(1_000))
        folder.mkdir(parents=True)

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def start(self, workers: int = 2) -> None:
        place = ["--host", "127.0.0.1", "--port", str(self._port), "--webui-port", str(self._page)]
        self._master = self._started("master", _java("master.Master", *place))
        self._await(self._folder / "master.log", "I have been elected leader")
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> subprocess.Popen[bytes]:
        """One core, one executor."""
        name = f"worker-{next(self._numbers)}"
        options = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "700m"]
        work = ["--work-dir", str(self._folder / name)]
        process = self._started(name, _namespace(_java("worker.Worker", *options, *work, self.url), self._hidden))
        self.workers.append(process)
        self._await(self._folder / f"{name}.log", "Successfully registered with master")
        return process

    def executors(self) -> list[psutil.Process]:
        """Those that run now."""
        return [
            child
            for worker in self.workers
            if worker.poll() is None
            for child in psutil.Process(worker.pid).children(recursive=True)
            if _is_executor(child)
        ]

    def kill_worker(self, worker: subprocess.Popen[bytes]) -> None:
        """SIGKILL to a worker and its executors, as when the machine is gone."""
        children = psutil.Process(worker.pid).children(recursive=True)
        for each in (psutil.Process(worker.pid), *children):
            with suppress(psutil.Error):
                each.kill()
        worker.wait()
        self.workers.remove(worker)

    def stop(self) -> None:
        for worker in tuple(self.workers):
            self.kill_worker(worker)
        if self._master is not None:
            self._master.kill()
            self._master.wait()

    def logs(self) -> str:
        """The end of what executors and workers say."""
        files = [*self._folder.glob("*.log"), *self._folder.glob("worker-*/*/*/stderr")]
        return "\n".join(f"== {each}\n{each.read_text(errors='replace')[-3000:]}" for each in files)

    def _started(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        # Without a folder of ours: code comes by the archive.
        known = {each: value for each, value in os.environ.items() if each != "PYTHONPATH"}
        own = {"SPARK_HOME": str(HOME), "SPARK_DAEMON_MEMORY": "200m", "SPARK_DAEMON_JAVA_OPTS": _JAVA}
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                command, env={**known, **own}, cwd=self._folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def _await(self, log: Path, text: str) -> None:
        deadline = time.monotonic() + _WITHIN
        while text not in log.read_text(errors="replace"):
            assert time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
            time.sleep(0.05)


def _java(name: str, *options: str) -> list[str]:
    return [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *options]


def _is_executor(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline()
    return False


@contextmanager
def spark_cluster(folder: Path, hidden: Sequence[Path]) -> Iterator[SparkCluster]:
    cluster = SparkCluster(folder, hidden)
    try:
        cluster.start()
        yield cluster
    except BaseException:
        print(cluster.logs())  # shown where the test fails
        raise
    finally:
        cluster.stop()
