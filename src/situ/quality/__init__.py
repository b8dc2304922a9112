"""Quality: what subscribers need, what publishers can give, and what follows from both. No I/O, no clock, no Spark."""
