"""The nodes that an element of XML has in YAML, at the place of the element."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from situ.documents import Mapping, Node, Scalar, Sequence
from situ.documents.core_schema import resolve
from situ.documents.nodes import placed
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
        return placed(json.loads(scalar.text), scalar)
    except (ValueError, RecursionError):
        return scalar
