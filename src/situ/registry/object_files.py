"""Objects in documents: which ones a file of the project declares, and the document that declares one again.

The syntax is that of the project's files, so what is shown can be written back. Whether a declaration is right is for
the loaders to say; here only its name is looked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from situ.contexts.declarations import is_root
from situ.lang.documents import Document, DocumentLimits, MappingNode, Node, ScalarNode, parse_json, parse_yaml
from situ.lang.problems import Problem
from situ.lang.types.declaration import print_types
from situ.lang.types.table import Types
from situ.lang.units import Units
from situ.model import Deployment
from situ.policies.ontology.load import ontology_as_file
from situ.registry.objects import ONTOLOGY, QUALITY, SCOPES, SETTINGS, Key, Kind, Object

_LIMITS = DocumentLimits(size=256 * 1024 * 1024, nodes=20_000_000)
"""What the registry holds was let in piece by piece, and may be more than one file could be."""

_SECTIONS: tuple[tuple[str, Kind], ...] = (
    ("units", "unit"),
    ("types", "type"),
    ("events", "event"),
    ("functions", "function"),
    ("pull", "source"),
    ("push", "push"),
    *((section, kind) for kind, section in ONTOLOGY.items()),
    ("actions", "action"),
    ("policies", "policy"),
    ("clients", "client"),
)
_OF_ROOT = _SECTIONS[:3]
"""What the file of root declares for all: its types and units are those of the project."""

_BELOW: tuple[tuple[str, Kind], ...] = (("advertisements", "advertisement"), ("subscriptions", "subscription"))


_MADE = ("client ", "advertisement ", "subscription ")


class Written(NamedTuple):
    """Where an object stands, and the text of it there."""

    file: str
    text: str


NOWHERE = Written("", "")


def declared_in(document: Document) -> Iterator[tuple[Key, Written]]:
    """The objects that a document declares, whatever else is wrong with it."""
    root = document.root
    if not isinstance(root, MappingNode):
        return
    if document.file == SETTINGS:
        yield Key("settings", SETTINGS), Written(document.file, root.source.text)
        return
    if document.file == SCOPES:
        yield Key("scopes", SCOPES), Written(document.file, root.source.text)
        return
    if document.file.startswith(f"{QUALITY}/"):
        yield Key("quality", QUALITY), Written(document.file, root.source.text)
        return
    context = root.get("context")
    if isinstance(context, ScalarNode):
        yield Key("context", context.text), Written(document.file, root.source.text)
    for section, kind in _SECTIONS if context is None else _OF_ROOT if is_root(document) else ():
        for name, node, written in _entries(root.get(section), document.file):
            yield Key(kind, name.partition("(")[0].strip()), written
            if kind == "client" and isinstance(node, MappingNode):
                for below, inner in _BELOW:
                    for part, _, text in _entries(node.get(below), document.file):
                        yield Key(inner, f"{name}/{part}"), text


def _entries(node: Node | None, file: str) -> Iterator[tuple[str, Node, Written]]:
    if isinstance(node, MappingNode):
        for key, value in node.entries:
            yield key.text, value, Written(file, node.source.text[key.start : value.end].rstrip())


# ── back into documents ───────────────────────────────────────────────────────────────────────────


def client_document(key: Key, body: Any) -> Document:
    """The document that declares one client, advertisement or subscription; its body is all of the second line."""
    client, _, name = key.name.partition("/")
    before, after = f'{{"clients":{{{_quoted(client)}:', "}}"
    if key.kind != "client":
        before, after = f'{before}{{"{key.kind}s":{{{_quoted(name)}:', "}}" + after
    return parse_json(f"{before}\n{json.dumps(body, ensure_ascii=False)}\n{after}", str(key))


def placed(problem: Problem) -> Problem:
    """A problem of a document from :func:`client_document`, with its body as the first line; others as they are."""
    place = problem.location
    made = place is not None and place.line == 2 and place.file.startswith(_MADE)
    return replace(problem, location=replace(place, line=1)) if place is not None and made else problem


def types_document(types: Types, names: Iterable[str], units: Iterable[str], file: str) -> Document:
    """These types and units of a table, as a file of ``types/`` declares them."""
    return parse_yaml(print_types(_part(types, names, units)), file, _LIMITS)


def functions_document(bodies: dict[str, Any], file: str) -> Document:
    return parse_json(json.dumps({"functions": bodies}, ensure_ascii=False, indent=1), file, _LIMITS)


def sources_document(pull: dict[str, Any], push: dict[str, Any], file: str) -> Document:
    return parse_json(json.dumps({"pull": pull, "push": push}, ensure_ascii=False, indent=1), file, _LIMITS)


def policy_document(name: str, text: str, file: str) -> Document:
    """The document that declares one policy: files of policies have a language of their own."""
    return parse_json(json.dumps({"policies": {name: text}}, ensure_ascii=False), file, _LIMITS)


def as_yaml(each: Object, deployment: Deployment) -> str:
    """One object as a file of the project that declares only it."""
    import yaml

    if each.kind in ("type", "event"):
        return print_types(_part(deployment.types, [each.name], ()))
    if each.kind == "unit":
        return print_types(_part(deployment.types, (), [each.name]))
    value = each.value
    if each.kind == "policy":
        return str(value)
    if each.kind == "suspended":
        return f"# {each.name} is suspended\n"
    if each.kind == "start":
        return f"# {each.name} starts at {value['at']}\n"
    if each.kind == "shape":
        return f"# {each.name} is shaped: {each.body}\n"
    if each.kind in ONTOLOGY:
        value = ontology_as_file({ONTOLOGY[each.kind]: {each.name: value}})
    elif each.kind == "action":
        value = {"actions": {each.name: value[0] if len(value) == 1 else value}}
    elif each.kind == "opposed":
        value = {"opposed": [value]}
    elif each.kind == "push":
        value = {"push": {each.name: value}}
    elif each.kind == "function":
        value = {"functions": {each.name: value}}
    elif each.kind == "source":
        value = {"pull": {each.name: value}}
    elif each.kind not in ("settings", "scopes", "quality", "context"):
        client, _, name = each.name.partition("/")
        value = {"clients": {client: {f"{each.kind}s": {name: value}} if name else value}}
    text: str = yaml.safe_dump(
        {"version": 1, **value}, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None
    )
    return text


def _part(types: Types, names: Iterable[str], units: Iterable[str]) -> Types:
    wanted = set(names)
    return Types(
        types={name: type for name, type in types.types.items() if name in wanted},
        events=frozenset(wanted & types.events),
        units=Units({label: types.units.labels[label] for label in units}),
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
