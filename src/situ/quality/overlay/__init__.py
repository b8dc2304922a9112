"""How routers on a tree tell each other what publishers offer, and pass advice back: what a link does to a profile,
which offers are worth sending, and the forwarding state machine.

Nothing hosts it yet: routers do not speak with each other yet. No I/O.

Front door: forwarder (OfferForwarder, step, its inputs and outputs), offers (frontier, truncated, profile_after_link,
target_before_link).
"""
