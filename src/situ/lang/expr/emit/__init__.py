"""Typed tree → code: Python source for one row, numpy over columns, Spark SQL text.

Front door: python, numpy, spark, vectors.
"""
