"""The way of an event as pure functions over rows: decode, interpret, stamp, root log, route, shape, interpret out,
deliver; detection is the sub-package `detect`.

`plan` compiles a deployment into what the stages need, once for each version and process. Edge and spark host the
stages; nothing here does I/O, runs a loop, imports asyncio, or knows which engine it runs in. State that outlives a
batch (conversion state, pending deliveries, shape state) is held in objects that the host saves and restores. Also
here, because they need compiled visibility and contexts: checks of tags (`check_tags`), which types a client is shown
(`type_visibility`), explanations of visibility.

Front door: `plan.Plan`, `plan.compile_plan`, `root_log.ingest` with its parts, `stamp.stamp`, `deliver.deliver` with
its parts, `root_log.dead_letters/read_lines/upgrade_message`, `shape.ShapeState`,
`pending_deliveries.PendingDeliveries`, `visibility.EventVisibility`, `takeover.EngineHandover`.
"""
