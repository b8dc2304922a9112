"""The negotiator of one zone: a state machine without I/O.

Inputs are calls of clients, answers to advice, measurements, deployments and time; effects are values to store, shapes,
notifications, replies and a wake-up. One step takes an input in, then propagates: match, decide, advise, shape, notify.
What outlives a restart is written by `persistence`.

Front door: negotiator (new_state, step), inputs_and_effects, feedback (StateChange, Usage, Advice, Reason), state
(NegotiatorState, ExpectationRecord, ProfileRecord), notify (state_change_of, usage_of).
"""
