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
    to_data,
)
from situ.lang.documents.reader import Fields, Reader, describe, substitute
from situ.lang.documents.yaml_text import parse_yaml

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
    "parse_json",
    "parse_yaml",
    "substitute",
    "to_data",
]
