"""Events of the root log, joined with what tables know, become the rows of the leaves of all policies, in Arrow
columns.

`observations` decodes events, `instances` holds the tables' instances as columns, `index_join` finds the partners of an
observation through hash and grid indexes, `enrich` shares equal work between policies, `rows` is the row format handed
to the kernel. It remembers nothing between batches that changes a result, and must not know windows, sequences or
detections.

Front door: `enrich` (Enrichment, EnrichedRows, PushObservations), `observations` (ObservationDecoder, ObservationBatch,
observe, keep_durations), `instances` (InstanceColumns, ConceptInstances), `rows` (to_blob,
from_blob, concat, row_schema).
"""
