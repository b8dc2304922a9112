"""What clients and routers say to each other, as data: messages, their form on the wire, and the router as a state
machine without I/O.

Inputs are what happened, effects what the host is to do; the same inputs give the same effects. It owns how
publications are numbered without gap and acknowledged in order, how declarations come into force, and how repeats are
recognised. It knows routing and scopes. It must not know contexts or policies, read a clock, draw a number, or import
asyncio or NATS. The class name of a message is its name on the wire: renaming one changes the protocol.

Front door: messages (FromClient, FromRouter and every message), wire (encode, read_request, decode_from_router,
kind_of, Malformed, ForgedReply), permissions (may_be_answered, permissions_of, users), effects (Input, Effect and their
kinds), router_machine (step), router_state (RouterState, refuse), dedup_window (DedupWindow, split_key),
hop_by_hop (step, BrokerState, and the inputs and effects of brokers). Routers of several zones are
:mod:`situ.protocol.overlay`, which holds this machine; :mod:`situ.protocol.simulator` runs them.
"""
