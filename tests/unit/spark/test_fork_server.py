"""Python processes of Spark are forks of one that has loaded what they need. Here they are started as Spark does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyspark
import pytest

from situ.spark import fork_server
from situ.spark.fork_server import forking_python
from tests.project_files import read_deployment

EXAMPLE = Path(__file__).parents[3] / "examples" / "smart-building"
SPARK_ZIP = Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"
"""Spark puts it first among the places that its processes look for modules."""

_OWNER = """
import sys
from situ.spark.fork_server import forking_python
print(forking_python(), flush=True)
sys.stdin.read()
"""
_ASKED = """
import json, os, sys
import pyspark
print(json.dumps({
    "arguments": sys.argv[1:],
    "name": __name__,
    "variable": os.environ.get("VARIABLE"),
    "read": sys.stdin.read(),
    "pyspark": pyspark.__file__,
    "parent": os.getppid(),
    "loaded": sorted(sys.modules),
}))
print("beside", file=sys.stderr)
if len(sys.argv) > 1:
    sys.exit(sys.argv[1])
"""
_WORKS = """
import json, sys
from pathlib import Path
before = set(sys.modules)
from situ.model import Deployment
from situ.stages.plan import compile_plan
plan = compile_plan(Deployment.from_json(json.loads(Path(sys.argv[1]).read_text())))
assert not plan.detecting.is_empty
print(json.dumps(sorted(set(sys.modules) - before)))
"""
_WAITS = """
import os, signal, time
print(os.getpid(), flush=True)
signal.pause()
"""
_FORKS = """
import os, sys
if os.fork() == 0:
    sys.stdin.read()
else:
    print("forked", flush=True)
"""


@pytest.fixture(scope="module")
def launcher() -> Path:
    return forking_python()


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    for name, text in {"asked": _ASKED, "works": _WORKS, "waits": _WAITS, "forks": _FORKS}.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def variables(modules: Path) -> Mapping[str, str]:
    path = os.pathsep.join(map(str, (SPARK_ZIP, modules)))
    return {**os.environ, "PYTHONPATH": path, "VARIABLE": "passed on"}


def run(launcher: Path, modules: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [launcher, *arguments], input=given, capture_output=True, text=True, env=variables(modules), timeout=120
    )


def asked(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stderr == "beside\n"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_fork_gets_arguments_environment_and_streams_and_its_exit_is_told(launcher: Path, modules: Path) -> None:
    done = run(launcher, modules, "-m", "asked", given="some text")
    said = asked(done)
    assert done.returncode == 0
    assert (said["name"], said["arguments"], said["variable"], said["read"]) == (
        "__main__",
        [],
        "passed on",
        "some text",
    )
    failed = subprocess.run(
        [launcher, "-m", "asked", "badly"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=variables(modules),
        timeout=120,
    )
    assert failed.returncode == 1
    assert json.loads(failed.stdout)["arguments"] == ["badly"]
    assert failed.stderr == "beside\nbadly\n"


def test_forks_have_what_spark_and_workers_need_and_no_more(launcher: Path, modules: Path) -> None:
    assert SPARK_ZIP.exists()
    said = asked(run(launcher, modules, "-m", "asked"))
    loaded = set(said["loaded"])
    assert Path(said["pyspark"]) == Path(pyspark.__file__), "it is not compiled again, out of the zip file"
    assert loaded >= {
        "pandas",
        "pyspark.daemon",
        "pyspark.sql.streaming.python_streaming_source_runner",
        "pyspark.sql.worker.create_data_source",
        "pyspark.sql.worker.lookup_data_sources",
        "pyspark.sql.worker.plan_data_source_read",
        "pyspark.worker",
        "situ.spark.detect",
        "situ.spark.dispatch",
        "situ.spark.partitions",
        "situ.spark.source",
    }
    packages = {name.partition(".")[0] for name in loaded}
    assert not packages & {"alembic", "pint", "pydantic", "rich", "sqlalchemy", "typer"}
    drivers = ("app", "cli", "client", "edge", "explain", "project", "registry", "router", "spark.engine")
    assert not loaded & {f"situ.{name}" for name in drivers}


def test_a_worker_loads_next_to_nothing_more_for_its_plan(launcher: Path, modules: Path) -> None:
    file = modules / "deployment"
    file.write_text(json.dumps(read_deployment(EXAMPLE).as_json()))
    done = run(launcher, modules, "-m", "works", str(file))
    assert done.returncode == 0, done.stderr
    # Those who parse conversions and policies load these, and others do not.
    assert set(json.loads(done.stdout)) <= {"situ.contexts.transform.fusion", "situ.policies.language.grammar_table"}


def test_what_ends_the_caller_ends_the_fork(launcher: Path, modules: Path) -> None:
    with subprocess.Popen(
        [launcher, "-m", "waits"], stdout=subprocess.PIPE, text=True, env=variables(modules)
    ) as process:
        assert process.stdout is not None
        fork = int(process.stdout.readline())
        assert fork != process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 1
    assert ended(fork)


def test_what_ends_the_caller_before_it_knows_its_fork_ends_the_fork(tmp_path: Path) -> None:
    """Here the server is the test, which takes its time to say what it forked."""
    with (
        socket.socket(socket.AF_UNIX) as listener,
        subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as fork,
    ):
        listener.bind(address := str(tmp_path / "socket"))
        listener.listen()
        with subprocess.Popen([sys.executable, fork_server.__file__, address, "-m", "waits"]) as caller:
            server, _ = listener.accept()
            with server:
                while server.recv(65_536):  # all that it asks
                    pass
                caller.send_signal(signal.SIGTERM)
                server.sendall(fork.pid.to_bytes(8))
                try:
                    assert fork.wait(10) == -signal.SIGTERM
                finally:
                    fork.kill()
            assert caller.wait(120) == 1


def test_a_fork_that_ends_is_not_waited_for_because_of_its_own_forks(launcher: Path, modules: Path) -> None:
    """As Spark's daemon has them: its workers."""
    with subprocess.Popen(
        [launcher, "-m", "forks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables(modules)
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "forked\n"
        assert process.wait(120) == 0


def test_other_ways_to_start_python_do_as_ever(launcher: Path, modules: Path) -> None:
    done = run(launcher, modules, "-c", "import sys; print(sys.executable, 'pandas' in sys.modules)")
    assert done.stdout == f"{sys.executable} False\n"


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def test_a_server_ends_with_its_owner_and_python_starts_without_it(
    owner: subprocess.Popen[str], modules: Path, tmp_path: Path
) -> None:
    assert owner.stdout is not None
    launcher = Path(owner.stdout.readline().strip())
    said = asked(run(launcher, modules, "-m", "asked"))
    assert "pandas" in said["loaded"]
    kept = shutil.copy(launcher, tmp_path / "python")
    owner.send_signal(signal.SIGKILL)
    owner.wait(120)
    assert ended(said["parent"])
    await_gone(launcher.parent)
    said = asked(run(Path(kept), modules, "-m", "asked"))
    assert "pandas" not in said["loaded"]


def ended(pid: int, within: float = 120) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def await_gone(folder: Path, within: float = 120) -> None:
    deadline = time.monotonic() + within
    while folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
