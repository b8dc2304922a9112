"""The type system: primitives with units, structs with supertypes, lists; the table of a project's types, strict
reading and canonical writing of values, import and export of schemas.

It knows nothing of events or expressions.

Front door: Extra below, model, table, json_codec, declaration, lookup, resolve, json_schema, layout.
"""

from typing import Literal

Extra = Literal["drop", "keep", "reject"]
"""What becomes of attributes that no type declares."""
