"""Contexts, subscriptions, scopes and policies of a project on DataFrames of its user: `Project`, batch and streaming.

`frame` says which columns such DataFrames have, `decode`, `interpret` and `conditions` are the stages as expressions of
Spark or functions over Arrow arrays, `detect` and `detect_stream` host the kernels of policies, `worker` and `values`
are what runs in Python workers, `source` is the data source `situ`. What stages mean is in `situ.stages`; nothing here
starts a session, and nothing but detection and the data source needs more of Spark than Spark Connect has.

Front door: `situ.spark.Project`, `source.SituSource`.
"""
