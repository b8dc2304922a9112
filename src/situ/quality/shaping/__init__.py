"""What a subscription gets of the events that are for it: select, filter single events, aggregate, suppress, thin.

It depends on event time and the order of the log only, so the same log gives the same stream on both engines, however
it is cut into batches. `derive_shape` says which shape follows from an expectation in force. It does not know engines;
state is plain JSON.

Front door: shaper (Shaper, shape_of, REASONS), watermark (WatermarkTracker, LatenessBounds), derive_shape
(shape_in_force).
"""
