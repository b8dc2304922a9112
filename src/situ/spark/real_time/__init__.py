"""Real-time deliveries on Spark: queries in real-time mode in a process of their own, which share with the engine.

It owns which records the queries take (`generations`), the query of one client (`query`), the process that runs them
(`process`) and what the engine leaves to them (`leave_out`). What a record means and which subscriptions can have it is
in `situ.stages.real_time`. It must not know how a run supervises its processes.

Front door: `generations` (Generation, Generations), `leave_out` (RealTimeShare), `process` (ProcessTask, main).
"""
