"""What values mean to whom: contexts, and how events pass from one to another."""
