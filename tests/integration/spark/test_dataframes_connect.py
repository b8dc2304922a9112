"""DataFrames over Spark Connect: a client that has no Java gets the same."""

from __future__ import annotations

import json
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "smart-building"
PAGE = (ROOT / "docs" / "howto" / "use-dataframes.md").read_text()


@pytest.fixture(scope="module")
def server(spark: SparkSession) -> Iterator[str]:
    """A server of Spark Connect in the same Java as the session; gives its address."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    java: Any = spark._jvm
    context = spark._jsc.sc()
    context.conf().set("spark.connect.grpc.binding.port", str(port))
    service = java.org.apache.spark.sql.connect.service.SparkConnectService
    service.start(context)
    yield f"sc://127.0.0.1:{port}"
    service.stop(java.scala.Option.empty(), java.scala.Option.empty())


@pytest.fixture
def remote(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A session of a client. The functions of Spark make columns for it, as in a process that is nothing else."""
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    session = RemoteSession.builder.remote(server).create()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.setenv("SPARK_REMOTE", server)
    yield session
    session.client.close()


def face(number: int, camera: str = "camera-1") -> str:
    data = {"camera": camera, "face": "face-c86da", "polar": {"r": 5.0 + number, "theta": 5.0}}
    known = {"specversion": "1.0", "id": f"f{number}", "source": "camera-1", "type": "FaceSeen"}
    return json.dumps({**known, "time": "2026-11-01T08:30:00Z", "data": data})


def test_everything_but_java_is_there(remote: Any) -> None:
    from situ.spark import Project

    plant = Project(remote, EXAMPLE)
    texts = remote.createDataFrame([(face(1),), (face(2, "camera-9"),), ("garbage",)], "value string")
    root = plant.interpret(plant.decode(texts, "FaceSeen", context="cameras"))
    feet = plant.interpret(root, to="us")
    assert [row["data"]["person"] for row in feet.where("failure IS NULL").collect()] == ["p01"]
    assert sorted(row["errors"][0]["code"] for row in plant.dead_letters(feet).collect()) == ["E701", "INT705"]
    assert root.where(plant.visible("control-room/all", of=root)).count() == 1
    assert root.where(plant.matches("us-desk/lobby")).count() == 0
    table = remote.sql(
        "SELECT 'p07' AS who, struct(18.0D AS x, 12.0D AS y) AS at, TIMESTAMP'2026-11-01 08:30:00' AS time,"
        " 'camera-4' AS source"
    )
    found = plant.detect(plant.decode(table, "Sighting"), policies=["unaccompanied-guest"])
    assert sorted(row["phase"] for row in found.collect()) == ["closed", "opened"]


def test_the_pipeline_of_the_page(
    spark: SparkSession, remote: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `spark-pipelines run` does it, with the session that is there."""
    from pyspark.pipelines.graph_element_registry import graph_element_registration_context
    from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
    from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, handle_pipeline_events, start_run

    shutil.copytree(EXAMPLE, tmp_path / "plant")
    (tmp_path / "faces.jsonl").write_text(f"{face(1)}\n{face(2, 'camera-9')}\ngarbage\n")
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r'^```python title="transformations/building.py"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL)
    code = code.replace('"faces.jsonl"', f'"{tmp_path}/faces.jsonl"')
    remote.sql(f"CREATE DATABASE building LOCATION '{tmp_path}/warehouse'")
    graph = create_dataflow_graph(remote, "spark_catalog", "building", {})
    with graph_element_registration_context(SparkConnectGraphElementRegistry(remote, graph)):
        exec(compile(code.replace("SparkSession.active()", "remote"), "building.py", "exec"), {"remote": remote})
    run = start_run(
        remote,
        graph,
        full_refresh=[],
        full_refresh_all=False,
        refresh=[],
        dry=False,
        storage=f"file://{tmp_path}/storage",
    )
    handle_pipeline_events(run)
    assert [row["data"]["who"] for row in spark.table("building.sightings").collect()] == ["p01"]
    letters = spark.table("building.dead_letters").collect()
    assert sorted(row["errors"][0]["code"] for row in letters) == ["E701", "INT705"]
    spark.sql("DROP DATABASE building CASCADE")
