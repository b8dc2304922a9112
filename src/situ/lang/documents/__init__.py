"""YAML and JSON text → values that know their position; what every part's loader builds on."""

from situ.lang.documents.json_text import parse_json
from situ.lang.documents.nodes import (
    Document,
    DocumentLimits,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    SourceText,
    is_nothing,
    to_data,
)
from situ.lang.documents.reader import Fields, Reader, describe, substitute

__all__ = [
    "Document",
    "DocumentLimits",
    "Fields",
    "MappingNode",
    "Node",
    "Reader",
    "ScalarNode",
    "SequenceNode",
    "SourceText",
    "describe",
    "is_nothing",
    "parse_json",
    "parse_yaml",
    "substitute",
    "to_data",
]

_LIMITS = DocumentLimits()


def parse_yaml(data: str | bytes, file: str, limits: DocumentLimits = _LIMITS, *, fast: bool = True) -> Document:
    """Read one YAML document. Whatever the text, the answer is nodes or problems, never an exception.

    ``fast`` only chooses between PyYAML's two parsers, which are loaded with the first document.
    """
    from situ.lang.documents.yaml_text import read_yaml

    return read_yaml(data, file, limits, fast=fast)
