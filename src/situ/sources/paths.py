"""Paths into XML: the small part of XPath that finds rows and the cells of a row.

``//room``, ``floor/room[@kind='lab']``, ``@id``, ``box/@x1``, ``../@id``, ``name/text()``. It is what the XML library
of Python understands, with attributes, texts and parents at its ends. No table is read here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

_ATTRIBUTE = re.compile(r"(?P<path>.*?)(?:^|/)@(?P<name>[\w.:{}-]+)", re.DOTALL)
_TEXT = re.compile(r"(?P<path>.*?)(?:^|/)text\(\)", re.DOTALL)
_FUNCTION = re.compile(r"[\w-]+\(|::|\||\$")
_QUOTED_OR_LAST = re.compile(r"'[^']*'|\"[^\"]*\"|\[last\(\)(?:-\d+)?\]|\{[^}]*\}")
_PREFIX = re.compile(r"\w:\w")
_LONGEST = 1_000
_KNOWN = "Paths have names, `*`, `//`, `..`, conditions such as `[@id='a']`, and end with `@name`, `text()` or a name."


class BadPath(Exception):
    """The path cannot be used, with what to do about it."""

    def __init__(self, reason: str, remedy: str = _KNOWN) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPath:
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
    if not path or len(path) > _LONGEST:
        raise BadPath("it is empty" if not path else "it is too long")
    bare = _QUOTED_OR_LAST.sub("", path)
    if _FUNCTION.search(bare):
        raise BadPath("functions, axes and alternatives are not understood")
    if _PREFIX.search(bare):
        remedy = "Write `{*}room` for a room of any namespace, or `{http://…}room` for one of this."
        raise BadPath("prefixes of namespaces are not known", remedy)
    try:
        if path.endswith("/"):
            raise SyntaxError
        Element("row").findall(path)
    except (SyntaxError, KeyError, ValueError, TypeError, IndexError):
        raise BadPath("it is not understood") from None
