"""Objects in documents: which ones a file of the project declares, and the document that declares one again.

The syntax is that of the project's files, so what is shown can be written back. Whether a declaration is right is for
the loaders to say; here only its name is looked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from situ.contexts.declarations import is_root
from situ.lang.documents import Document, DocumentLimits, MappingNode, Node, ScalarNode, parse_json, parse_yaml
from situ.lang.problems import Problem
from situ.lang.records import replace
from situ.lang.types.declaration import print_types
from situ.lang.types.table import Types
from situ.lang.units import Units
from situ.model import Deployment
from situ.model.kinds import ALONE, BELOW_CLIENT, CLIENT_KINDS, KINDS
from situ.registry.objects import Key, Object

_LIMITS = DocumentLimits(size=256 * 1024 * 1024, nodes=20_000_000)
"""What the registry holds was let in piece by piece, and may be more than one file could be."""

_MADE = tuple(f"{kind} " for kind in CLIENT_KINDS)
_SECTIONS = {kind: row for kind, row in ALONE.items() if row.section and kind not in BELOW_CLIENT}


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
    for kind, row in KINDS.items():
        if row.only and _is_all_of(document.file, row.only):
            yield Key(kind, row.only), Written(document.file, root.source.text)
            return
    context = root.get("context")
    if isinstance(context, ScalarNode):
        yield Key("context", context.text), Written(document.file, root.source.text)
    for kind, row in _SECTIONS.items():
        # The file of root declares types and units for all: they are those of the project. No other context does.
        if context is not None and not (row.file == "types" and is_root(document)):
            continue
        for name, node, written in _entries(root.get(row.section), document.file):
            yield Key(kind, name.partition("(")[0].strip()), written
            if kind == "client" and isinstance(node, MappingNode):
                for inner in BELOW_CLIENT:
                    for part, _, text in _entries(node.get(KINDS[inner].section), document.file):
                        yield Key(inner, f"{name}/{part}"), text


def _is_all_of(file: str, name: str) -> bool:
    """Whether the file declares the one thing of this name, which is a file or a folder of the project."""
    return file == name if name.endswith(".yaml") else file.startswith(f"{name}/")


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
        before, after = f'{before}{{"{KINDS[key.kind].section}":{{{_quoted(name)}:', "}}" + after
    return parse_json(f"{before}\n{json.dumps(body, ensure_ascii=False)}\n{after}", str(key))


def placed(problem: Problem) -> Problem:
    """A problem of a document from :func:`client_document`, with its body as the first line; others as they are."""
    place = problem.location
    made = place is not None and place.line == 2 and place.file.startswith(_MADE)
    return replace(problem, location=replace(place, line=1)) if place is not None and made else problem


def types_document(types: Types, names: Iterable[str], units: Iterable[str], file: str) -> Document:
    """These types and units of a table, as a file of ``types/`` declares them."""
    return parse_yaml(print_types(_part(types, names, units)), file, _LIMITS)


def sections_document(sections: Mapping[str, Any], file: str) -> tuple[Document, ...]:
    """What stands in the sections of a file, as a document; none if there is nothing in them."""
    if not any(sections.values()):
        return ()
    return (parse_json(json.dumps(sections, ensure_ascii=False, indent=1), file, _LIMITS),)


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
    value = KINDS[each.kind].as_file(KINDS[each.kind], each.name, each.value)
    if isinstance(value, str):
        return value
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
