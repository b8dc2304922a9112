"""The kernel: detects the situations of one policy, batch by batch, by joins over sorted columns."""
