"""The files of ``sources/`` → pull sources by name, every one checked against the types of the project."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from situ.catalogue import BAD_NAME, DECLARED_TWICE
from situ.documents import Document, Fields, Node, Reader, Scalar, parse_json
from situ.errors import Problems
from situ.expr.faults import NO_FAULTS, Faults
from situ.sources.declare import Declaring
from situ.sources.model import Source
from situ.types.declare import is_nothing
from situ.types.table import Types

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""Names of sources: words, since functions and policies mention them."""


def load_sources(
    documents: Iterable[Document], types: Types, problems: Problems, *, faults: Faults = NO_FAULTS
) -> Mapping[str, Source]:
    """Read and check what all these documents declare together; what is wrong is reported and left out."""
    read, declaring = Reader(problems), Declaring(types, problems, faults)
    found: dict[str, Source] = {}
    places: dict[str, Scalar] = {}
    for document in documents:
        if document.root is not None and is_nothing(document.root):
            problems.extend(document.problems)
            continue
        fields = read.document(document, optional=("pull",))
        for key, node in _entries(fields):
            first = places.setdefault(key.text, key)
            if first is not key:
                place = str(first.location)
                problems.add(DECLARED_TWICE(key.location, what="The source", name=key.text, first=place))
            named = _check_name(key, problems)
            source = declaring.source(key, node)
            if source is not None and named and first is key:
                found[key.text] = source
    return MappingProxyType({name: found[name] for name in sorted(found)})


def sources_from_json(value: Any, types: Types) -> Mapping[str, Source]:
    """The sources that ``sources_as_json`` wrote; ValueError for what it cannot have written."""
    problems = Problems()
    document = parse_json(json.dumps({"pull": value}), "sources")
    sources = load_sources([document], types, problems)
    if problems.errors:
        raise ValueError("; ".join(map(str, problems.errors)))
    # Places in what was written here are no places in any file.
    return MappingProxyType({name: replace(each, location=None) for name, each in sources.items()})


def _check_name(key: Scalar, problems: Problems) -> bool:
    if NAME.fullmatch(key.text):
        return True
    reason = "it has other characters" if len(key.text) <= 64 else "it is too long"
    remedy = "Use letters, digits, `_` and `-`, at most 64, and no digit first."
    problems.add(BAD_NAME(key.location, name=key.text or " ", what="a source", reason=reason, remedy=remedy))
    return False


def _entries(fields: Fields | None) -> tuple[tuple[Scalar, Node], ...]:
    """A section that is there without content is empty: someone is about to write it."""
    node = fields.node("pull") if fields is not None else None
    return () if fields is None or node is None or is_nothing(node) else fields.entries("pull")
