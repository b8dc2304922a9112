"""Detects the situations of one policy, batch by batch, by joins over columns sorted by time.

`kernel` takes a step: rows, state and watermark in; detections and new state out. `relations`, `pair_join`,
`consumption`, `sequence`, `absence` and `matches` are its operators; `state` is what is remembered and how it is
stored; `repartition` unites and divides states; `kept_values` adds push sources that keep their last value. It must not
know events, sources of tables, actions or engines.

Front door: `kernel` (Kernel), `kept_values` (plan_kept_values, KeptValuesKernel), `state` (KernelState), `detections`
(DetectionBatch, schema_of, detections_of).
"""
