"""YAML and JSON text → values that know their position; what every part's loader builds on."""

from situ.documents.environment import substitute
from situ.documents.json_text import parse_json
from situ.documents.nodes import Document, Mapping, Node, Scalar, Sequence, to_data
from situ.documents.reading import Fields, Reader, describe
from situ.documents.source import Limits, Source
from situ.documents.yaml_text import parse_yaml

__all__ = [
    "Document",
    "Fields",
    "Limits",
    "Mapping",
    "Node",
    "Reader",
    "Scalar",
    "Sequence",
    "Source",
    "describe",
    "parse_json",
    "parse_yaml",
    "substitute",
    "to_data",
]
