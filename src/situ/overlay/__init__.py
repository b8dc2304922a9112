"""The overlay: which way an event travels. Protocol, tables and state machines, without I/O."""
