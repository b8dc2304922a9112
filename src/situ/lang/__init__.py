"""What every declaration is written in: problems and their catalogue, documents with places, units and quantities, the
type system, the expression language.

It knows no part of Situ, does no I/O and has no clock.

Front door: problems, catalogue, json_form, documents, units, quantities, types, expr.
"""
