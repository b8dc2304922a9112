"""Topics of Kafka as sources of clients and targets of subscriptions.

It owns how Kafka and a schema registry are reached, what a record means as an event and an event as a record, reading
at the edge and writing for both engines. Spark's own reading of topics is in `situ.spark`, on top of this. It must not
know stages or plans: what it reads goes the way of any client's messages.

Front door: `connection` (KafkaAddress, use_settings, group_of, library), `records` (KafkaRecord, RecordMessage,
pack_records, incarnation_of), `formats` (reader_of, writer_of), `positions` (TopicPositions, Extent, first_offset,
taken_of, within), `partition_reader` (RangeReader), `ingress` (TopicIngress), `delivery` (TopicDeliveries),
`worker_thread` (WorkerThread).
"""
