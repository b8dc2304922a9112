"""Hosts the stages in one process, message by message: stores events in the root log, dispatches them in log order,
runs detection beside, and keeps its cursor and checkpoints on disk.

It owns only order, acknowledgement, recovery and files. What is done to an event is in `situ.stages`. It knows no
Spark, no router and no client.

Front door: `engine.EdgeEngine`, `dispatcher.Dispatcher`, `dispatcher.EdgeCounts`, `takeover.begin_edge`,
`takeover.traces`.
"""
