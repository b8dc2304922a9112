"""What carries messages between processes: NATS JetStream, files, or the memory of one process."""
