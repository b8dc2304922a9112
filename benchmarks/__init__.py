"""Benchmarks: what Situ costs, measured side by side with what one would write by hand. Run with ``make bench``."""
