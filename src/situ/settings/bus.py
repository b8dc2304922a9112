"""The setting ``bus``: what carries events between processes, in its several forms.

``embedded`` · ``memory`` · ``nats://host:4222`` · ``{nats: [urls], tls: {ca, cert, key}, credentials: file}`` ·
``{files: folder}``. Knows how these are written, not what a bus does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from situ.catalogue import MISSING_KEY, NOT_A_CHOICE, UNKNOWN_KEY
from situ.documents import Fields, Mapping, Node, Reader, Scalar, Sequence, describe
from situ.errors import nearest
from situ.settings.kinds import Kind, Text, is_unresolved, text_of

_WORDS = ("embedded", "memory")
_FORMS = (*_WORDS, "nats://host:4222", "{nats: […]}", "{files: …}")
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"
_ADDRESS = re.compile(rf"(?:nats|tls)://(?:[^\s/@]+@)?{_HOST}(?::[0-9]{{1,5}})?/?")
_TLS = ("ca", "cert", "key")
_KEYS = ("nats", "files", "tls", "credentials")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bus:
    """``kind`` is ``embedded``, ``memory``, ``files`` (then there is a folder) or ``nats`` (then there are servers)."""

    kind: str = "embedded"
    folder: Text | None = None
    servers: tuple[Text, ...] = ()
    credentials: Text | None = None
    ca: Text | None = None
    cert: Text | None = None
    key: Text | None = None


def _read_bus(node: Node, read: Reader) -> Bus | None:
    if isinstance(node, Mapping):
        fields = read.fields(node, optional=_KEYS)
        return _read_mapping(fields) if fields is not None else None
    scalar = read.scalar(node)
    if scalar is None:
        return None
    if scalar.text in _WORDS:
        return Bus(kind=scalar.text)
    if _ADDRESS.fullmatch(scalar.text) or is_unresolved(scalar.text):
        return Bus(kind="nats", servers=(text_of(scalar),))
    similar = () if scalar.substituted else nearest(scalar.text, _FORMS)
    found = describe(scalar) if scalar.substituted else f"`{scalar.text}`"
    read.problems.add(NOT_A_CHOICE(scalar.location, found=found, nearest=similar, choices=_FORMS))
    return None


def _read_mapping(fields: Fields) -> Bus | None:
    if "files" in fields:
        for key in ("nats", "tls", "credentials"):
            if (stray := fields.mapping.key(key)) is not None:
                problem = UNKNOWN_KEY(stray.location, key=key, nearest=(), known=("files",))
                fields.read.problems.add(problem)
        folder = fields.scalar("files")
        return Bus(kind="files", folder=text_of(folder)) if folder is not None else None
    if "nats" not in fields:
        fields.read.problems.add(MISSING_KEY(fields.mapping.location, key="nats", where="in `bus`"))
        return None
    servers = tuple(server for node in _addresses(fields) if (server := _address(node, fields.read)) is not None)
    tls = fields.fields("tls", optional=_TLS)
    keys = {key: _text(tls, key) for key in _TLS} if tls is not None else {}
    return Bus(kind="nats", servers=servers, credentials=_text(fields, "credentials"), **keys) if servers else None


def _addresses(fields: Fields) -> tuple[Node, ...]:
    """One address may stand alone, several in a list."""
    node = fields.node("nats")
    if isinstance(node, Scalar):
        return (node,)
    items = fields.items("nats")
    if isinstance(node, Sequence) and not items:
        fields.read.wrong(node, "at least one address such as `nats://host:4222`")
    return items


def _address(node: Node, read: Reader) -> Text | None:
    scalar = read.scalar(node)
    if scalar is None:
        return None
    if _ADDRESS.fullmatch(scalar.text) or is_unresolved(scalar.text):
        return text_of(scalar)
    read.wrong(scalar, "an address such as `nats://host:4222`")
    return None


def _text(fields: Fields, key: str) -> Text | None:
    scalar = fields.scalar(key)
    return None if scalar is None else text_of(scalar)


def _write_bus(bus: Bus) -> Any:
    if bus.kind in _WORDS:
        return bus.kind
    if bus.folder is not None:
        return {"files": bus.folder.written}
    result: dict[str, Any] = {"nats": [server.written for server in bus.servers]}
    if bus.credentials is not None:
        result["credentials"] = bus.credentials.written
    tls = {key: value.written for key in _TLS if (value := getattr(bus, key)) is not None}
    return {**result, "tls": tls} if tls else result


_TEXT = {"type": "string"}
_OBJECT = {"type": "object", "additionalProperties": False}

BUS: Kind[Bus] = Kind(
    _read_bus,
    _write_bus,
    {
        "anyOf": [
            {"enum": list(_WORDS)},
            {"type": "string", "pattern": r"^(nats|tls)://|\$\{"},
            {**_OBJECT, "required": ["files"], "properties": {"files": _TEXT}},
            {
                **_OBJECT,
                "required": ["nats"],
                "properties": {
                    "nats": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]},
                    "tls": {**_OBJECT, "properties": dict.fromkeys(_TLS, _TEXT)},
                    "credentials": _TEXT,
                },
            },
        ]
    },
)
