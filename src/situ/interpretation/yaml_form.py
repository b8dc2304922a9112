"""A context that was written otherwise, as the YAML of a file of ``contexts/``."""

from __future__ import annotations

import re
from typing import Any

import yaml

from situ.documents import Document, to_data
from situ.documents.core_schema import resolve

_UNSEEN = re.compile("[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""What can only be written as an escape."""


class _Dumper(yaml.SafeDumper):
    """Writes what our reader reads: nothing by reference, in quotes what would be taken for another value."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  the library asks about each value
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if _UNSEEN.search(text):
        style = '"'
    elif resolve(text) != text:
        style = "'"
    elif "\n" in text:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def as_yaml(document: Document) -> str:
    """The file that declares the same; nothing for a document that has no meaning."""
    if document.root is None:
        return ""
    return yaml.dump(to_data(document.root), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=112)
