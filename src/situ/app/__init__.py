"""One process of a deployment: lock, bus, registry, router and engine, in the order in which they start and stop.

It restarts an engine that lost the bus, lets another engine take over, does the actions that policies ask for, reports
metrics every second, and replays the log. Neither engine is imported before it is asked for. It knows nothing of
terminals.

Front door: `run.RunProcess`, `engines.Engine`, `action_queue.ActionQueue`, `action_worker.ActionWorker`,
`metrics.MetricsReporter`, `admission.ask_to_admit`, `replay.replay_in_process`, `replay.replay_on_spark`,
`replay.replay_policies`.
"""
