"""Strategies: rules by which it is decided whether to satisfy what could be satisfied."""
