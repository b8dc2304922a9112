"""Hosts the stages on Spark Structured Streaming; the only package that imports pyspark.

Two queries: events (`engine`) and detection (`detect_query`). Each reads a log of the bus as rows (`source`, `frames`),
maps the stages over them (`dispatch`, `detect`), and publishes from its tasks. It owns batches, partitions, offsets and
what lies beside the checkpoint (`checkpoint`, `state_store`), on any store (`storage`). What is done to an event is in
`situ.stages`, which run in Spark's Python workers, here or on a `cluster`. `fork_server` is loaded by name from the
Spark settings. `dataframes` has the same stages for DataFrames of users.

Front door: `Project` for programs of users; `engine.SparkEngine`, `detect_query.SparkDetection`,
`session.open_session`, `replay.replay`, `policy_tests.run_policy_tests_on_spark`, `takeover.left_by_spark/begin_spark`,
`checkpoint.check_checkpoint`, `measure.BatchMeter`, `cluster.remote.is_remote/write_package`,
`history.detect`, `history.mapped_files`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from situ.spark.dataframes.project import Project as Project

__all__ = ["Project"]


def __getattr__(name: str) -> Any:
    # Engines and Spark's own processes load modules of this package, and need nothing of DataFrames.
    if name != "Project":
        raise AttributeError(f"module 'situ.spark' has no attribute {name!r}")
    from situ.spark.dataframes.project import Project

    return Project
