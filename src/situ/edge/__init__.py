"""The stages in one process, the router that takes events in, and the library that clients use."""
