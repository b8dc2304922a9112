"""What carries messages between processes: NATS JetStream, or the memory of one process.

It owns connections, streams, buckets, durable consumers and the proxy that reads them for clients, the embedded nats-
server, credentials, and the lock of a project folder. It must not know events' types, policies or deployments; how
subjects are called is in `situ.event.subjects`, what a client may touch in `situ.protocol.permissions`.

Front door: `interface.Bus`, `interface.StoreAck`, `nats.open_bus`, `memory.MemoryBus`, `sync_bus.shared_bus`,
`address.Address`, `address.resolve_address`, `embedded_server.EmbeddedServer`, `folder_lock.FolderLock`,
`event_loop.end`.
"""
