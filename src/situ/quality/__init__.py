"""Quality: what subscribers need of the events they get, what publishers can give, and what follows from both.

Pure functions and state machines: no I/O, no clock, no Spark. It knows event rows, types and expressions. It does not
know subscriptions, scopes, contexts or policies: who can get what of whom is handed in as `Relevance`. Sub-packages,
lower ones first: model, match, allocation, measurement, shaping, parse, negotiation, explanation, overlay.

Front door: quality.model.declarations, quality.model.shapes, quality.model.json_form, quality.parse.quality_files,
quality.parse.client_calls, quality.negotiation.negotiator, quality.negotiation.inputs_and_effects,
quality.negotiation.feedback, quality.measurement.meter, quality.shaping.shaper.
"""
