"""Queries of sources: paths into XML, and SQL statements that only read.

Both are taken apart and checked here; no table is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from situ.lang.catalogue import BAD_STATEMENT
from situ.lang.expr.limits import make_room
from situ.lang.problems import Location, SituError

if TYPE_CHECKING:
    from sqlglot import exp

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Paths into XML: the small part of XPath that finds rows and the cells of a row.
#
# ``//room``, ``floor/room[@kind='lab']``, ``@id``, ``box/@x1``, ``../@id``, ``name/text()``. It is what the XML library
# of Python understands, with attributes, texts and parents at its ends.

_ATTRIBUTE = re.compile(r"(?P<path>.*?)(?:^|/)@(?P<name>[\w.:{}-]+)", re.DOTALL)
_TEXT = re.compile(r"(?P<path>.*?)(?:^|/)text\(\)", re.DOTALL)
_FUNCTION = re.compile(r"[\w-]+\(|::|\||\$")
_QUOTED_OR_LAST = re.compile(r"'[^']*'|\"[^\"]*\"|\[last\(\)(?:-\d+)?\]|\{[^}]*\}")
_PREFIX = re.compile(r"\w:\w")
_LONGEST_PATH = 1_000
_KNOWN = "Paths have names, `*`, `//`, `..`, conditions such as `[@id='a']`, and end with `@name`, `text()` or a name."


class BadPath(Exception):
    """The path cannot be used, with what to do about it."""

    def __init__(self, reason: str, remedy: str = _KNOWN) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class CellPath(msgspec.Struct, frozen=True, kw_only=True):
    """So many parents up, then elements below by ``elements`` (``.``: this one), then an attribute of theirs."""

    up: int = 0
    elements: str = "."
    attribute: str = ""


def row_path(text: str) -> str:
    """The path of rows from above the outermost element on; :class:`BadPath` if it is none."""
    path = text.strip()
    if _ATTRIBUTE.fullmatch(path):
        raise BadPath("rows are elements, not attributes")
    path = f".{path}" if path.startswith("/") else path
    _check(path)
    return path


def cell_path(text: str) -> CellPath:
    """The path of a cell from its row on; :class:`BadPath` if it is none."""
    path = text.strip()
    if path.startswith("/"):
        raise BadPath("it does not begin at the row", "Write it from the row on, as `box/@x1`, or `../@id` for above.")
    up = 0
    while path == ".." or path.startswith("../"):
        up, path = up + 1, path[3:]
    attribute = ""
    if found := _ATTRIBUTE.fullmatch(path):
        path, attribute = found["path"], found["name"]
    elif found := _TEXT.fullmatch(path):
        path = found["path"]
    elements = path or "."
    _check(elements)
    return CellPath(up=up, elements=elements, attribute=attribute)


def _check(path: str) -> None:
    if not path or len(path) > _LONGEST_PATH:
        raise BadPath("it is empty" if not path else "it is too long")
    bare = _QUOTED_OR_LAST.sub("", path)
    if _FUNCTION.search(bare):
        raise BadPath("functions, axes and alternatives are not understood")
    if _PREFIX.search(bare):
        remedy = "Write `{*}room` for a room of any namespace, or `{http://…}room` for one of this."
        raise BadPath("prefixes of namespaces are not known", remedy)
    from xml.etree.ElementTree import Element

    try:
        if path.endswith("/"):
            raise SyntaxError
        Element("row").findall(path)
    except (SyntaxError, KeyError, ValueError, TypeError, IndexError):
        raise BadPath("it is not understood") from None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# SQL statements: whether one only reads, and which columns it gives.
#
# Databases differ in what they understand, so a statement counts as read if one of the well-known dialects reads it.
# That it only reads is checked here for people; whoever runs it asks the database for a reading transaction, too.

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z_][A-Za-z0-9_$]*)?")
_FIRST = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?P<word>\w*)", re.DOTALL)
_DIALECTS = (None, "postgres", "sqlite", "mysql")
_LONGEST_STATEMENT = 20_000
_DEEPEST = 100
_AS_VIEW = "Make a view of it in the database, and name that."


class SqlStatement(msgspec.Struct, frozen=True, kw_only=True):
    """What a statement gives: the names of its columns in small letters; None where it does not say."""

    columns: frozenset[str] | None = None


def is_table(text: str) -> bool:
    """Whether this is the name of a table, alone or with that of its schema, and no statement."""
    return _NAME.fullmatch(text.strip()) is not None


def read_statement(text: str, location: Location | None = None) -> SqlStatement:
    """What a query gives; :class:`SituError` with S102 if it is none, or does more than read."""
    if is_table(text):
        return SqlStatement()
    if len(text) > _LONGEST_STATEMENT or text.count("(") > _DEEPEST:
        raise _refused(location, "it is too long or too deep", _AS_VIEW)
    first = _FIRST.match(text)
    if first is None or first["word"].upper() not in ("SELECT", "WITH"):
        reason = f"it begins with `{first['word'][:40]}`" if first and first["word"] else "it is empty"
        raise _refused(location, reason, "Write a SELECT of the declared columns, or the name of a table.")
    from sqlglot import exp

    writing = (exp.DML, exp.DDL, exp.Command, exp.Into)
    tree = _parse(text, location)
    if not isinstance(tree, exp.Query):
        raise _refused(location, f"it is no query, but {tree.key.upper()}", "Write a SELECT of the declared columns.")
    for node in tree.walk():
        if isinstance(node, exp.Placeholder | exp.Parameter):
            remedy = "Read all rows; which of them is looked up is said where it is looked up."
            raise _refused(location, f"it has the parameter `{node.sql()}`", remedy)
        if isinstance(node, writing) and not isinstance(node, exp.Query):
            raise _refused(location, f"it has a part that writes, {node.key.upper()}", "Write a SELECT alone.")
    names = [name.lower() for name in tree.named_selects if name]
    # Each database calls in its own way what the statement does not name.
    return SqlStatement(columns=None if tree.is_star or len(names) < len(tree.selects) else frozenset(names))


def _parse(text: str, location: Location | None) -> exp.Expr:
    import sqlglot
    from sqlglot.errors import SqlglotError

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
