"""The files of ``sources/`` → pull and push sources by name, every one checked against the types of the project."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from situ.lang.catalogue import BAD_NAME, DECLARED_TWICE
from situ.lang.documents import Document, Fields, Node, Reader, ScalarNode, is_nothing, parse_json
from situ.lang.expr.faults import NO_FAULTS, Faults
from situ.lang.problems import Problems
from situ.lang.records import replace
from situ.lang.types.table import Types
from situ.sources.declare import PushSourceReader, SourceReader
from situ.sources.model import Push, Source

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""Names of sources: words, since functions and policies mention them."""


T = TypeVar("T", Source, Push)

_SECTIONS = ("pull", "push")


def load_sources(
    documents: Iterable[Document], types: Types, problems: Problems, *, faults: Faults = NO_FAULTS
) -> Mapping[str, Source]:
    """The tables that all these documents declare together; what is wrong is reported and left out."""
    return _load("pull", "The source", SourceReader(types, problems, faults).source, documents, problems)


def load_pushes(
    documents: Iterable[Document], types: Types, problems: Problems, *, faults: Faults = NO_FAULTS
) -> Mapping[str, Push]:
    """The push sources that all these documents declare together; what is wrong is reported and left out."""
    return _load("push", "The push source", PushSourceReader(types, problems, faults).push, documents, problems)


def _load(
    section: str,
    what: str,
    declare: Callable[[ScalarNode, Node], T | None],
    documents: Iterable[Document],
    problems: Problems,
) -> Mapping[str, T]:
    read = Reader(problems)
    found: dict[str, T] = {}
    places: dict[str, ScalarNode] = {}
    for document in documents:
        if document.root is not None and is_nothing(document.root):
            problems.extend(document.problems)
            continue
        fields = read.document(document, optional=_SECTIONS)
        for key, node in _entries(fields, section):
            first = places.setdefault(key.text, key)
            if first is not key:
                problems.add(DECLARED_TWICE(key.location, what=what, name=key.text, first=str(first.location)))
            named = _check_name(key, problems)
            source = declare(key, node)
            if source is not None and named and first is key:
                found[key.text] = source
    return MappingProxyType({name: found[name] for name in sorted(found)})


def sources_from_json(value: Any, types: Types) -> Mapping[str, Source]:
    """The sources that ``sources_as_json`` wrote; ValueError for what it cannot have written."""
    problems = Problems()
    sources = load_sources([parse_json(json.dumps({"pull": value}), "sources")], types, problems)
    # Places in what was written here are no places in any file.
    right = _right(sources, problems)
    return MappingProxyType({name: replace(each, location=None, tagged=None) for name, each in right.items()})


def pushes_from_json(value: Any, types: Types) -> Mapping[str, Push]:
    """The push sources that ``pushes_as_json`` wrote; ValueError for what it cannot have written."""
    problems = Problems()
    pushes = load_pushes([parse_json(json.dumps({"push": value}), "sources")], types, problems)
    return MappingProxyType({name: replace(each, location=None) for name, each in _right(pushes, problems).items()})


def _right(found: Mapping[str, T], problems: Problems) -> Mapping[str, T]:
    if problems.errors:
        raise ValueError("; ".join(map(str, problems.errors)))
    return found


def _check_name(key: ScalarNode, problems: Problems) -> bool:
    if NAME.fullmatch(key.text):
        return True
    reason = "it has other characters" if len(key.text) <= 64 else "it is too long"
    remedy = "Use letters, digits, `_` and `-`, at most 64, and no digit first."
    problems.add(BAD_NAME(key.location, name=key.text or " ", what="a source", reason=reason, remedy=remedy))
    return False


def _entries(fields: Fields | None, section: str) -> tuple[tuple[ScalarNode, Node], ...]:
    """A section that is there without content is empty: someone is about to write it."""
    node = fields.node(section) if fields is not None else None
    return () if fields is None or node is None or is_nothing(node) else fields.entries(section)
