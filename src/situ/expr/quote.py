"""Values as literals of Spark SQL."""

from __future__ import annotations


def spark_text(value: str) -> str:
    """Quoted so that no character can end the literal or start an escape, whatever the session's settings."""
    return "'" + "".join(_CHARACTERS.get(c, c) for c in value) + "'"


# The dollar sign too: Spark would replace ${…} in the text of a query by settings of its own.
_CHARACTERS = {"$": "\\u0024", "\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\u0000", "\x1a": "\\u001A"}


def spark_name(value: str) -> str:
    return "`" + value.replace("`", "``") + "`"
