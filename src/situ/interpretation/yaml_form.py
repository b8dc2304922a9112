"""A context that was written otherwise, as the YAML of a file of ``contexts/``."""

from __future__ import annotations

from typing import Any

import yaml

from situ.documents import Document, to_data
from situ.documents.core_schema import resolve


class _Dumper(yaml.SafeDumper):
    """Writes what our reader reads: nothing by reference, in quotes what would be taken for another value."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  the library asks about each value
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    quoted = resolve(text) != text
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if quoted else None)


_Dumper.add_representer(str, _text)


def as_yaml(document: Document) -> str:
    """The file that declares the same; nothing for a document that has no meaning."""
    if document.root is None:
        return ""
    return yaml.dump(to_data(document.root), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=112)
