"""Hosts the stages on Spark Structured Streaming; the only package that imports pyspark.

Two queries: events (`engine`) and detection (`detect_query`); the bus is a Spark source (`source`) and a sink
(`dispatch`). It owns batches, partitions, offsets and what lies beside the checkpoint (`checkpoint`, `state_store`).
What is done to an event is in `situ.stages`, which run in Spark's Python workers. `daemon` is loaded by name from the
Spark settings. `columns` (expressions and visibility as native Spark columns) runs in tests only: no query uses it.

Front door: `engine.SparkEngine`, `detect_query.SparkDetection`, `session.open_session`, `replay.replay`,
`policy_tests.run_policy_tests_on_spark`, `takeover.left_by_spark/begin_spark`, `checkpoint.check_checkpoint`,
`measure.BatchMeter`.
"""
