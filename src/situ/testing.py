"""What users and benchmarks need to try a project without its real producers and consumers."""
