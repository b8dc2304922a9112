"""SQL statements of sources: whether one only reads, and which columns it gives.

Databases differ in what they understand, so a statement counts as read if one of the well-known dialects reads it. That
it only reads is checked here for people; whoever runs it asks the database for a reading transaction, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from situ.catalogue import BAD_STATEMENT
from situ.errors import Location, SituError
from situ.expr.room import make_room

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z_][A-Za-z0-9_$]*)?")
_FIRST = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?P<word>\w*)", re.DOTALL)
_DIALECTS = (None, "postgres", "sqlite", "mysql")
_LONGEST = 20_000
_DEEPEST = 100
_WRITING = (exp.DML, exp.DDL, exp.Command, exp.Into)
_AS_VIEW = "Make a view of it in the database, and name that."


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a statement gives: the names of its columns in small letters; None where it does not say."""

    columns: frozenset[str] | None = None


def is_table(text: str) -> bool:
    """Whether this is the name of a table, alone or with that of its schema, and no statement."""
    return _NAME.fullmatch(text.strip()) is not None


def read_statement(text: str, location: Location | None = None) -> Statement:
    """What a query gives; :class:`SituError` with S102 if it is none, or does more than read."""
    if is_table(text):
        return Statement()
    if len(text) > _LONGEST or text.count("(") > _DEEPEST:
        raise _refused(location, "it is too long or too deep", _AS_VIEW)
    first = _FIRST.match(text)
    if first is None or first["word"].upper() not in ("SELECT", "WITH"):
        reason = f"it begins with `{first['word'][:40]}`" if first and first["word"] else "it is empty"
        raise _refused(location, reason, "Write a SELECT of the declared columns, or the name of a table.")
    tree = _parse(text, location)
    if not isinstance(tree, exp.Query):
        raise _refused(location, f"it is no query, but {tree.key.upper()}", "Write a SELECT of the declared columns.")
    for node in tree.walk():
        if isinstance(node, exp.Placeholder | exp.Parameter):
            remedy = "Read all rows; which of them is looked up is said where it is looked up."
            raise _refused(location, f"it has the parameter `{node.sql()}`", remedy)
        if isinstance(node, _WRITING) and not isinstance(node, exp.Query):
            raise _refused(location, f"it has a part that writes, {node.key.upper()}", "Write a SELECT alone.")
    names = [name.lower() for name in tree.named_selects if name]
    # Each database calls in its own way what the statement does not name.
    return Statement(columns=None if tree.is_star or len(names) < len(tree.selects) else frozenset(names))


def _parse(text: str, location: Location | None) -> exp.Expr:
    make_room()
    found: list[exp.Expr | None] | None = None
    for dialect in _DIALECTS:
        try:
            found = sqlglot.parse(text, read=dialect)
            break
        except (SqlglotError, RecursionError):
            continue
    statements = [each for each in found or () if each is not None]
    if len(statements) > 1:
        raise _refused(location, "there are several statements", "Write one SELECT.")
    if not statements:
        raise _refused(location, "it is not understood", _AS_VIEW)
    return statements[0]


def _refused(location: Location | None, reason: str, remedy: str) -> SituError:
    return SituError(BAD_STATEMENT(location, reason=reason, remedy=remedy))
