"""Syntax → typed tree: names resolved, types and units settled, every problem reported with its place.

Front door: check, coerce.
"""
