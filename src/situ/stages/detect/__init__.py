"""Situations from events, step by step: `detection_plan` compiles all policies, `step` reads what policies may see and
runs their kernels, `progress` is what is remembered between steps, `situation_events` makes messages of what
happened, `backfill` starts a new policy in the past, `policy_tests` runs a project's tests.

It knows policies, scopes and contexts. It must not know the log, the bus, or how steps are shared among processes.
`detection_plan` loads numpy and pyarrow: `situ check` must not import it.

Front door: `detection_plan.DetectionPlan`, `step.step`/`work_rows`/`decide`, `progress.DetectionProgress`,
`situation_events.situation_messages`, `situation_events.DetectionStatus`, `backfill.Backfill`,
`policy_tests.run_policy_test`.
"""
