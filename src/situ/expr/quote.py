"""Values as literals of Spark SQL."""

from __future__ import annotations

from situ.catalogue import NOT_IN_LANGUAGE
from situ.errors import SituError


def spark_text(value: str) -> str:
    """Quoted so that no character can end the literal or start an escape, whatever the session's settings."""
    return "'" + "".join(_CHARACTERS.get(c, c) for c in value) + "'"


# The dollar sign too: Spark would replace ${…} in the text of a query by settings of its own.
_CHARACTERS = {"$": "\\u0024", "\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\u0000", "\x1a": "\\u001A"}


def spark_name(value: str) -> str:
    """Quoted likewise. Names have no escapes, so one that Spark would replace by a setting cannot be written."""
    if "${" in value:
        raise SituError(NOT_IN_LANGUAGE(found=f"The name `{value}`"))
    return "`" + value.replace("`", "``") + "`"
