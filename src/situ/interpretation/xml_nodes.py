"""The nodes that an element of XML has in YAML, at the place of the element."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from situ.documents import Mapping, Node, Scalar, Sequence
from situ.documents.core_schema import resolve
from situ.documents.xml_text import Element


def word(element: Element, text: str) -> Scalar:
    """A key that the YAML of an element has, at the element's name."""
    return Scalar(text, text, "", element.source, element.start + 1, element.start + 1 + len(element.name))


def mapping_of(element: Element, entries: Iterable[tuple[Scalar, Node]], under: Scalar | None = None) -> Mapping:
    return Mapping(tuple(entries), under, element.source, element.start, element.end)


def list_of(element: Element, items: Iterable[Node]) -> Sequence:
    return Sequence(tuple(items), None, element.source, element.start, element.end)


def plain(scalar: Scalar) -> Scalar:
    """What stands for a number, a boolean or nothing where plain text would."""
    return replace(scalar, value=resolve(scalar.text), style="")


def value_of(scalar: Scalar) -> Node:
    """A value in JSON, or what plain text stands for."""
    if scalar.text[:1] not in ('"', "[", "{"):
        return plain(scalar)
    try:
        return _placed(json.loads(scalar.text), scalar)
    except (ValueError, RecursionError):
        return scalar


def _placed(value: Any, at: Scalar) -> Node:
    if isinstance(value, dict):
        entries = tuple((replace(at, text=key, value=key), _placed(each, at)) for key, each in value.items())
        return Mapping(entries, None, at.source, at.start, at.end)
    if isinstance(value, list):
        return Sequence(tuple(_placed(each, at) for each in value), None, at.source, at.start, at.end)
    return replace(at, text=value if isinstance(value, str) else json.dumps(value), value=value)
