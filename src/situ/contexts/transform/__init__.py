"""From rules to what converts an event: one expression per event type and direction, with the step that makes each
part of the target.

`transformation` compiles it, `converter` turns it into one Python function, `fusion` joins the way in and the way out
so that no root event is made, `filter_rewrite` says what a filter on the result asks of the source. Engines compile a
transformation for their own form of data: values, JSON text, generated structs, columns. Nothing here looks a rule up
while events pass, and nothing here does I/O.

Front door: transformation (Transformation, transformations, own_transformations), converter (Converter), steps (Step,
Provenance, StepFault, provenance, faults), fusion (fuse, FusedConverter), round_trip (check_shortcut,
Shortcut, ShortcutPolicy), filter_rewrite (rewrite_subscription, rewrite_filter, deferred_filter), function_calls
(ExternalValue, with_rows, time_of), json_struct (StructPlan), columns (in_columns,
spark_expression, dataframe_form, condition_in_columns).
"""
