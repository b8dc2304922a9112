"""Routers of several zones as one state machine without I/O: who is there, who wants what, which way an event travels.

It owns the messages between routers, their tables, the lease of the gateway, and what keeps events in order and from
getting lost. It knows the machine of a router alone, which it holds, and scopes. It must not know how messages, streams
and keys are carried, read a clock or draw a number.

Front door: machine (new_state, step, TRANSITIONS, STATES), effects (what goes in and comes out), messages
(OverlayMessage and its kinds, encode_overlay, decode_overlay), state (Layout, Timing, OverlayState), scope_document
(ScopeDocument, Meaning).
"""
