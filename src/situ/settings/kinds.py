"""Kinds of settings: how one value of ``situ.yaml`` is read, written back and described to editors.

A kind knows nothing of the setting it serves. Values that may hold secrets are :class:`Text`: what a snapshot shows of
them is what stands in the file. Numbers, words and texts come first, then the kind of the setting ``bus``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import msgspec

from situ.lang.catalogue import BAD_NAME, BAD_QUANTITY, BUS_WITHOUT_CLIENTS, MISSING_KEY, NOT_A_CHOICE
from situ.lang.documents import Fields, MappingNode, Node, Reader, ScalarNode, SequenceNode, describe
from situ.lang.problems import Location, SituError, nearest
from situ.lang.quantities import format_duration, parse_duration, parse_size

T = TypeVar("T")

_SIZES = (
    *((f"{prefix}iB", 1024**power) for power, prefix in ((5, "P"), (4, "T"), (3, "G"), (2, "M"), (1, "K"))),
    *((f"{prefix}B", 1000**power) for power, prefix in ((5, "P"), (4, "T"), (3, "G"), (2, "M"), (1, "k"))),
)
REFERENCE = "${"


class Kind(msgspec.Struct, Generic[T], frozen=True):
    """How a value is read (None after a problem was noted), written as JSON, and described by a JSON Schema."""

    read: Callable[[Node, Reader], T | None]
    write: Callable[[T], Any]
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Text:
    """A text that may come from the environment: as ``written``, ``${NAME}`` and all, and the ``value`` it has here.

    Two are equal if they are written alike, so what a deployment is does not depend on secrets, and shows none.
    """

    written: str
    value: str = field(compare=False, repr=False)


def plain(text: str) -> Text:
    return Text(text, text)


def text_of(scalar: ScalarNode) -> Text:
    return Text(scalar.written.text if scalar.written is not None else scalar.text, scalar.text)


def is_unresolved(text: str) -> bool:
    """Whether references are still in it: in a snapshot, or after a problem that was reported."""
    return REFERENCE in text


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────


def integer(least: int, most: int) -> Kind[int]:
    return Kind(
        lambda node, read: read.integer(node, least=least, most=most),
        lambda value: value,
        {"type": "integer", "minimum": least, "maximum": most},
    )


AUTO = 0
"""Where a number may be left to Situ: what stands for that."""


def integer_or_auto(least: int, most: int) -> Kind[int]:
    """A number, or ``auto``."""

    def read(node: Node, read: Reader) -> int | None:
        if isinstance(node, ScalarNode) and node.text == "auto":
            return AUTO
        return read.integer(node, least=least, most=most, instead="`auto`")

    number = {"type": "integer", "minimum": least, "maximum": most}
    return Kind(read, lambda value: value or "auto", {"anyOf": [{"enum": ["auto"]}, number]})


def boolean() -> Kind[bool]:
    return Kind(lambda node, read: read.boolean(node), lambda value: value, {"type": "boolean"})


def duration(least: timedelta = timedelta(0)) -> Kind[timedelta]:
    def read(node: Node, read: Reader) -> timedelta | None:
        return _quantity(node, read, parse_duration, "a duration such as `5 s`", least, format_duration)

    schema = {"type": "string", "pattern": r"^\s*[+]?[0-9.]+([eE][-+]?[0-9]+)?\s+\S+\s*$", "examples": ["5 s", "7 d"]}
    return Kind(read, format_duration, schema)


def size(least: int = 0) -> Kind[int]:
    def read(node: Node, read: Reader) -> int | None:
        return _quantity(node, read, parse_size, "a size such as `512 KiB`", least, format_size)

    pattern = r"^\s*[+]?[0-9.]+([eE][-+]?[0-9]+)?\s+([kMGTP]|[KMGTP]i)?B\s*$"
    return Kind(read, format_size, {"type": "string", "pattern": pattern, "examples": ["512 KiB", "10 GiB"]})


def format_size(value: int) -> str:
    for name, unit in _SIZES:
        if value and value % unit == 0:
            return f"{value // unit} {name}"
    return f"{value} B"


Q = TypeVar("Q", int, timedelta)


def _quantity(
    node: Node,
    read: Reader,
    parse: Callable[[str, Location | None], Q],
    expected: str,
    least: Q,
    show: Callable[[Q], str],
) -> Q | None:
    """A number without unit is no text for YAML, but what is missing is the unit, not the quotes."""
    if not isinstance(node, ScalarNode) or isinstance(node.value, bool) or node.value is None:
        read.wrong(node, expected)
        return None
    try:
        value = parse(node.text, node.location)
    except SituError as error:
        # What the environment holds is not shown, not even when it is wrong.
        read.wrong(node, expected) if node.substituted else read.problems.extend(error.problems)
        return None
    if value >= least:
        return value
    shown = describe(node) if node.substituted else node.text
    remedy = f"It must be at least {show(least)}."
    what = expected.removeprefix("a ").split(" such")[0]
    read.problems.add(BAD_QUANTITY(node.location, text=shown, what=f"possible {what} here", remedy=remedy))
    return None


# ── words and texts ───────────────────────────────────────────────────────────────────────────────


def choice(*choices: str) -> Kind[str]:
    return Kind(lambda node, read: read.choice(node, choices), str, {"enum": list(choices)})


def name(what: str, pattern: str, remedy: str) -> Kind[str]:
    """A name of a certain form."""
    form = re.compile(pattern)

    def read(node: Node, read: Reader) -> str | None:
        scalar = read.scalar(node)
        if scalar is None or form.fullmatch(scalar.text) or is_unresolved(scalar.text):
            return scalar.text if scalar else None
        shown = describe(scalar) if scalar.substituted else scalar.text
        reason = "it has other characters or is too long" if scalar.text else "it is empty"
        read.problems.add(BAD_NAME(scalar.location, name=shown, what=what, reason=reason, remedy=remedy))
        return None

    return Kind(read, str, {"type": "string", "pattern": f"^{pattern}$"})


def text(pattern: str, examples: Collection[str]) -> Kind[Text]:
    """A text of a certain form, which may hold secrets."""
    form = re.compile(pattern)

    def read(node: Node, read: Reader) -> Text | None:
        scalar = read.scalar(node)
        if scalar is None:
            return None
        if form.fullmatch(scalar.text) or is_unresolved(scalar.text):
            return text_of(scalar)
        similar = () if scalar.substituted else nearest(scalar.text, examples)
        found = describe(scalar) if scalar.substituted else f"`{scalar.text}`"
        read.problems.add(NOT_A_CHOICE(scalar.location, found=found, nearest=similar, choices=tuple(examples)))
        return None

    return Kind(read, lambda value: value.written, {"type": "string", "examples": list(examples)})


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
SCHEMES = ("file", "s3a", "s3", "hdfs", "viewfs", "gs", "gcs", "abfs", "abfss")
"""Of the URIs that `situ.storage` and Spark both know."""


def folder(examples: Collection[str], *, empty: bool = False) -> Kind[Text]:
    """A folder of this machine, or a URI of one that others reach, too; ``empty``: or none."""
    form = text(r"(?s).*" if empty else r"(?s).+", examples)

    def read(node: Node, read: Reader) -> Text | None:
        found = form.read(node, read)
        # What is in the environment may be another one where the project runs.
        scheme = _SCHEME.match(found.value) if found is not None and found.written == found.value else None
        if scheme is None or scheme[1] in SCHEMES:
            return found
        known = tuple(f"{each}://" for each in SCHEMES)
        problem = NOT_A_CHOICE(node.location, found=f"`{scheme[0]}`", nearest=nearest(scheme[0], known), choices=known)
        read.problems.add(problem)
        return None

    return Kind(read, form.write, form.schema)


def _read_conf(node: Node, read: Reader) -> tuple[tuple[str, Text], ...] | None:
    mapping = read.mapping(node)
    if mapping is None:
        return None
    found: dict[str, Text] = {}
    for key, value in mapping.entries:
        if not key.text.startswith("spark."):
            remedy = "Settings of Spark begin with `spark.`, those of Hadoop with `spark.hadoop.`."
            reason = "it does not begin with `spark.`"
            what = "a setting of Spark"
            read.problems.add(BAD_NAME(key.location, name=key.text, what=what, reason=reason, remedy=remedy))
        elif not isinstance(value, ScalarNode) or value.value is None:
            read.wrong(value, "a text, a number, `true` or `false`")
        else:
            found[key.text] = text_of(value)
    return tuple(sorted(found.items()))


def _write_conf(value: tuple[tuple[str, Text], ...]) -> dict[str, str]:
    return {key: each.written for key, each in value}


CONF: Kind[tuple[tuple[str, Text], ...]] = Kind(
    _read_conf,
    _write_conf,
    MappingProxyType(
        {
            "type": "object",
            "propertyNames": {"pattern": r"^spark\."},
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        }
    ),
)
"""Settings handed on to Spark as they are, by name."""


def _read_paths(node: Node, read: Reader) -> tuple[Text, ...] | None:
    if not isinstance(node, SequenceNode):
        read.wrong(node, "a list of folders, such as `[/srv/tables]`")
        return None
    found = [scalar for each in node.items if (scalar := read.scalar(each)) is not None]
    return tuple(map(text_of, found))


PATHS: Kind[tuple[Text, ...]] = Kind(
    _read_paths,
    lambda value: [each.written for each in value],
    MappingProxyType({"type": "array", "items": {"type": "string"}}),
)
"""Files or folders."""


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The setting ``bus``: what carries events between processes, in its several forms.
#
# ``embedded`` · ``nats://host:4222`` · ``{nats: [urls], tls: {ca, cert, key}, credentials: file}``. Knows how these are
# written, not what a bus does. Earlier releases read ``memory`` and ``{files: folder}`` too, which nothing could run.

_EMBEDDED = "embedded"
_FORMS = (_EMBEDDED, "nats://host:4222", "{nats: […]}")
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"
_ADDRESS = re.compile(rf"(?:nats|tls)://(?:[^\s/@]+@)?{_HOST}(?::[0-9]{{1,5}})?/?")
_TLS = ("ca", "cert", "key")
_KEYS = ("nats", "tls", "credentials")
# Why a project cannot run on it, and what serves instead.
_UNREACHABLE = MappingProxyType(
    {
        "memory": (
            "it lives inside one process, and clients are processes of their own",
            "Tests take `situ.testing.MemoryBus`.",
        ),
        "files": (
            "files carry nothing to clients",
            "`situ replay --files FOLDER` reads events from files.",
        ),
    }
)


class BusSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``kind`` is ``embedded``, or ``nats`` (then there are servers)."""

    kind: str = _EMBEDDED
    servers: tuple[Text, ...] = ()
    credentials: Text | None = None
    ca: Text | None = None
    cert: Text | None = None
    key: Text | None = None


def _read_bus(node: Node, read: Reader) -> BusSettings | None:
    if isinstance(node, MappingNode):
        if (files := node.key("files")) is not None:
            _refuse("files", files.location, read)
            return None
        fields = read.fields(node, optional=_KEYS)
        return _read_mapping(fields) if fields is not None else None
    scalar = read.scalar(node)
    if scalar is None:
        return None
    if scalar.text == _EMBEDDED:
        return BusSettings()
    if scalar.text in _UNREACHABLE:
        _refuse(scalar.text, scalar.location, read)
        return None
    if _ADDRESS.fullmatch(scalar.text) or is_unresolved(scalar.text):
        return BusSettings(kind="nats", servers=(text_of(scalar),))
    similar = () if scalar.substituted else nearest(scalar.text, _FORMS)
    found = describe(scalar) if scalar.substituted else f"`{scalar.text}`"
    read.problems.add(NOT_A_CHOICE(scalar.location, found=found, nearest=similar, choices=_FORMS))
    return None


def _refuse(bus: str, location: Location | None, read: Reader) -> None:
    reason, instead = _UNREACHABLE[bus]
    read.problems.add(BUS_WITHOUT_CLIENTS(location, bus=bus, reason=reason, instead=instead))


def _read_mapping(fields: Fields) -> BusSettings | None:
    if "nats" not in fields:
        fields.read.problems.add(MISSING_KEY(fields.mapping.location, key="nats", where="in `bus`"))
        return None
    servers = tuple(server for node in _addresses(fields) if (server := _address(node, fields.read)) is not None)
    tls = fields.fields("tls", optional=_TLS)
    keys = {key: _text(tls, key) for key in _TLS} if tls is not None else {}
    return (
        BusSettings(kind="nats", servers=servers, credentials=_text(fields, "credentials"), **keys) if servers else None
    )


def _addresses(fields: Fields) -> tuple[Node, ...]:
    """One address may stand alone, several in a list."""
    node = fields.node("nats")
    if isinstance(node, ScalarNode):
        return (node,)
    items = fields.items("nats")
    if isinstance(node, SequenceNode) and not items:
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


def _write_bus(bus: BusSettings) -> Any:
    if bus.kind == _EMBEDDED:
        return bus.kind
    result: dict[str, Any] = {"nats": [server.written for server in bus.servers]}
    if bus.credentials is not None:
        result["credentials"] = bus.credentials.written
    tls = {key: value.written for key in _TLS if (value := getattr(bus, key)) is not None}
    return {**result, "tls": tls} if tls else result


_TEXT = {"type": "string"}
_OBJECT = {"type": "object", "additionalProperties": False}

BUS: Kind[BusSettings] = Kind(
    _read_bus,
    _write_bus,
    {
        "anyOf": [
            {"enum": [_EMBEDDED]},
            {"type": "string", "pattern": r"^(nats|tls)://|\$\{"},
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
