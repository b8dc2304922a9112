"""The function table: one row for each function and operator of the language, with its types, units, nulls and texts
for each engine.

Front door: table.
"""
