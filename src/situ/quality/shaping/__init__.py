"""Shaping: what a subscription gets of the events that are for it. Depends on event time and the order of the log."""
