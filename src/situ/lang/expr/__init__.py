"""The expression language: text → syntax → typed tree → simplified tree → Python, numpy or Spark SQL.

`interpret` is the slow, obvious meaning that the emitters are held to. It knows types and units, no event and no part
of Situ.

Front door: syntax, scope, tree, checker.check, simplify, format, definitions, emit.
"""
