"""The client library, which the thesis calls the local event router: connect, advertise, publish, subscribe, contexts,
quality expectations and capabilities, all with and without `await`.

It owns the publication queue, the session with its router, and the files of one client. It speaks to a router by
`situ.protocol` over a `situ.bus` and knows nothing of engines, registry or policies.

Front door: `connection.connect`, `sync_client.connect_blocking`, `client.Client`, `events.Event`,
`events.Situation`, `publish_queue.Receipt`, `declarations.Registration`, `contexts.DefinedContext`,
`capabilities.Accept/Refuse/ReactionManager`, `expectations.WhyQuality`, `sync_client.blocking_client`,
`state_files.state_folder`. Programs import them from `situ`.
"""
