"""How much of a cluster a run uses: partitions, buckets, executors, and what is told of workers.

It decides from what batches say; it must not know what is in events or in the states of policies, and nothing it
decides changes what comes of a batch: that is in the offset of the batch.

Front door: `sizes.SizeStore`/`WantedSizes`, `sizes.BucketCount`, `executors.ExecutorPool`.
"""
