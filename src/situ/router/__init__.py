"""The router process of a zone: takes clients' messages from the bus, runs the machine of `situ.protocol`, does what
it says.

It hosts registration of declarations, quality negotiation, guarded delivery from durable queues, history and "why do I
see this". It hands published events to an engine in the same process or to the ingress stream. It must not know which
engine that is, nor what stages do with events.

Front door: `router.Router`, `client_queues.QueueLimits`, `negotiation.NegotiationHost`,
`explain_visibility.search_log/search_dead_letters`, `queries.ClientQueries`.
"""
