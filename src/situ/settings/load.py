"""``situ.yaml`` → settings, with all that is wrong in it."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, TypeVar

from situ.catalogue import CONTRADICTION
from situ.documents import Document, Fields, Node, Reader, parse_json
from situ.errors import Problems
from situ.quantities import format_duration
from situ.settings.model import GROUP, KIND, ORDERED, Overlay, Settings, Spark
from situ.types.declare import is_nothing

G = TypeVar("G")


def load_settings(document: Document, problems: Problems) -> Settings:
    """What the document says; a setting that is wrong or absent has its default."""
    known = [each.name for each in fields(Settings) if each.name != "name"]
    found = Reader(problems).document(document, required=("name",), optional=known)
    return Settings() if found is None else _group(Settings, found)


def settings_from_json(value: Any) -> Settings:
    """The settings that ``settings_as_json`` wrote; ValueError for what it cannot have written."""
    problems = Problems()
    settings = load_settings(parse_json(json.dumps(value), "settings"), problems)
    if problems.errors:
        raise ValueError("; ".join(map(str, problems.errors)))
    return settings


def _group(of: type[G], found: Fields) -> G:
    values: dict[str, Any] = {}
    for each in fields(of):  # type: ignore[arg-type]  # every group is a dataclass
        node = found.node(each.name)
        value = None
        if node is not None:
            group = each.metadata.get(GROUP)
            value = each.metadata[KIND].read(node, found.read) if group is None else _below(group, node, found.read)
        if value is not None:
            values[each.name] = value
    settings = of(**values)
    if isinstance(settings, Spark):
        return of(**{**values, "conf": _with_default_conf(settings)})
    if isinstance(settings, Overlay):
        _check_order(settings, found)
    return settings


def _below(group: type[Any], node: Node, read: Reader) -> Any:
    if is_nothing(node):
        return None  # the key alone: someone is about to write more
    found = read.fields(node, optional=[each.name for each in fields(group)])
    return None if found is None else _group(group, found)


def _with_default_conf(spark: Spark) -> Any:
    """What a project says about Spark's own settings adds to ours and wins where both speak."""
    return tuple(sorted({**dict(Spark().conf), **dict(spark.conf)}.items()))


def _check_order(overlay: Overlay, found: Fields) -> None:
    for first, times, second in ORDERED:
        small, large = getattr(overlay, first), getattr(overlay, second)
        if times * small < large:
            continue
        key = found.mapping.key(first) or found.mapping.key(second)
        bound = f"`{second}`" if times == 1 else f"`{second}` / {times}"
        problem = CONTRADICTION(
            key.location if key is not None else found.mapping.location,
            first=first,
            found=format_duration(small),
            bound=bound,
            limit=format_duration(large / times),
            second=second,
        )
        found.read.problems.add(problem)
