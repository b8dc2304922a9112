"""Hosts the stages on Spark Structured Streaming; the only package that imports pyspark.

Two queries: events (`engine`) and detection (`detect_query`). Each reads a log of the bus as rows (`source`, `frames`),
maps the stages over them (`dispatch`, `detect`), and publishes from its tasks. It owns batches, partitions, offsets and
what lies beside the checkpoint (`checkpoint`, `state_store`), on any store (`storage`). What is done to an event is in
`situ.stages`, which run in Spark's Python workers, here or on a `cluster`. `fork_server` is loaded by name from the
Spark settings. `columns` (expressions and visibility as native Spark columns) runs in tests only: no query uses it.

Front door: `engine.SparkEngine`, `detect_query.SparkDetection`, `session.open_session`, `replay.replay`,
`policy_tests.run_policy_tests_on_spark`, `takeover.left_by_spark/begin_spark`, `checkpoint.check_checkpoint`,
`measure.BatchMeter`, `storage.state_folder.environment_of`, `cluster.remote.is_remote/write_package`.
"""
