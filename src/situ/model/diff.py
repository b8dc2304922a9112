"""What changed between two deployments, thing by thing, in the words of the files.

Compares canonical forms, so what was only written otherwise is no change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from situ.contexts.python_files import code_digest
from situ.contexts.table import as_file
from situ.lang.types.declaration import print_type
from situ.lang.types.json_codec import encode
from situ.lang.types.model import Attribute, Named, Struct, format_attribute, own_attributes
from situ.model.deployment import Deployment, canonical
from situ.policies.actions.load import actions_as_json
from situ.policies.actions.model import DeclaredActions
from situ.policies.load import policies_as_json
from situ.policies.ontology.load import ONTOLOGY_KINDS, ontology_as_json
from situ.policies.ontology.model import Ontology
from situ.quality.model.declarations import Quality
from situ.quality.model.json_form import quality_as_json
from situ.quality.model.shapes import shape_as_json
from situ.routing.model import ClientDeclaration
from situ.scopes.graph import ScopeGraph
from situ.scopes.json_form import scopes_as_json
from situ.settings import settings_as_json

What = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDetail:
    """One part of a thing that changed: an attribute, the filter, a single setting. None where it is not there."""

    part: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentChange:
    """One thing that is other than before. ``before`` and ``after`` are the whole of it, None where it is not there."""

    kind: str
    name: str
    what: What
    before: str | None
    after: str | None
    details: tuple[ChangeDetail, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.what}"

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "what": self.what,
            "before": self.before,
            "after": self.after,
            "details": [{"part": d.part, "before": d.before, "after": d.after} for d in self.details],
        }


def diff_deployments(old: Deployment | None, new: Deployment) -> tuple[DeploymentChange, ...]:
    """What has to happen to the old to become the new; None stands for nothing but the default settings."""
    before, after = _things(old or Deployment()), _things(new)
    return tuple(change for kind in after for change in _changes(kind, before[kind], after[kind]))


@dataclass(frozen=True, slots=True)
class _DeclaredObject:
    """Something declared, as text; its parts by name where it has any."""

    whole: str
    parts: Mapping[str, str]


def _changes(
    kind: str, before: Mapping[str, _DeclaredObject], after: Mapping[str, _DeclaredObject]
) -> Iterator[DeploymentChange]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        what: What = "added" if old is None else "removed" if new is None else "changed"
        yield DeploymentChange(
            kind=kind,
            name=name,
            what=what,
            before=old.whole if old is not None else None,
            after=new.whole if new is not None else None,
            details=tuple(_details(old.parts, new.parts)) if old is not None and new is not None else (),
        )


def _details(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[ChangeDetail]:
    """In the order of the new parts, those that are gone last."""
    for part in (*after, *(gone for gone in before if gone not in after)):
        if before.get(part) != after.get(part):
            yield ChangeDetail(part=part, before=before.get(part), after=after.get(part))


# ── declared things as text ───────────────────────────────────────────────────────────────────────


def _things(deployment: Deployment) -> dict[str, dict[str, _DeclaredObject]]:
    types = deployment.types
    return {
        "setting": {
            name: _DeclaredObject(text, {}) for name, text in _settings(settings_as_json(deployment.settings), "")
        },
        "unit": {name: _DeclaredObject(kind, {}) for name, kind in types.units.labels.items()},
        "type": {each.name: _type(each) for each in types.declared if each.name not in types.events},
        "event": {each.name: _type(each) for each in types.declared if each.name in types.events},
        "function": {
            name: _DeclaredObject(f"{each.signature} = {each.text}", {"signature": each.signature, "expr": each.text})
            for name, each in deployment.functions.items()
        },
        "source": {name: _source(each.as_json()) for name, each in deployment.sources.items()},
        **_ontology(deployment.ontology),
        "push": {name: _declared(each.as_json()) for name, each in deployment.push.items()},
        **_actions(deployment.actions),
        "policy": {
            name: _DeclaredObject(text, {})
            for name, text in policies_as_json(deployment.policies, deployment.stopped).items()
        },
        "suspended": {name: _DeclaredObject("suspended", {}) for name in deployment.suspended},
        "start": {name: _declared(each.as_json()) for name, each in deployment.starts.items()},
        "context": {id: _context(id, body) for id, body in deployment.contexts.as_json().items()},
        **_scopes(deployment.scopes),
        "client": {name: _client(each) for name, each in deployment.clients.items()},
        "advertisement": {id: _declared(each.as_json()) for id, each in deployment.advertisements.items()},
        "subscription": {id: _declared(each.as_json()) for id, each in deployment.subscriptions.items()},
        **_quality(deployment.quality),
        "shape": {id: _named(id, _declared(shape_as_json(each))) for id, each in deployment.shapes.items()},
    }


def _settings(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _settings(below, f"{path}.{key}" if path else key)
    elif value != "":
        yield path, _shown(value)


def _type(type: Named | Struct) -> _DeclaredObject:
    if isinstance(type, Named):
        return _DeclaredObject(print_type(type), {"based on": str(type.base)})
    parts = {"extends": ", ".join(above.name for above in type.supers)} if type.supers else {}
    return _DeclaredObject(
        print_type(type), {**parts, **{each.name: _attribute(each) for each in own_attributes(type)}}
    )


def _attribute(attribute: Attribute) -> str:
    text = format_attribute(attribute)
    if attribute.default is None:
        return text
    return f"{text} (default {_shown(encode(attribute.type, attribute.default))})"


def _ontology(ontology: Ontology) -> dict[str, dict[str, _DeclaredObject]]:
    """Concepts attribute by attribute, the rest as it is written."""
    written = ontology_as_json(ontology)
    concepts = {}
    for name, body in written["concepts"].items():
        parts = {"specialises": ", ".join(body["supers"])} if "supers" in body else {}
        parts |= dict(body["attributes"])
        concepts[name] = _DeclaredObject(", ".join(f"{key}: {text}" for key, text in parts.items()), parts)
    others = {
        ONTOLOGY_KINDS[section]: {name: _DeclaredObject(_shown(body), {}) for name, body in written[section].items()}
        for section in ONTOLOGY_KINDS
        if section != "concepts"
    }
    return {"concept": concepts, **others}


def _actions(actions: DeclaredActions) -> dict[str, dict[str, _DeclaredObject]]:
    written = actions_as_json(actions)
    return {
        "action": {name: _DeclaredObject(_shown(body), {}) for name, body in written["actions"].items()},
        "opposed": {" and ".join(pair): _DeclaredObject(_shown(pair), {}) for pair in written["opposed"]},
    }


def _source(body: Mapping[str, Any]) -> _DeclaredObject:
    """Column by column: most changes are about one of them."""
    columns = {name: _shown(column) for name, column in body["columns"].items()}
    others = {key: _shown(value) for key, value in body.items() if key != "columns"}
    listed = ", ".join(f"{name}: {text}" for name, text in columns.items())
    whole = ", ".join(f"{key}: {text}" for key, text in {**others, "columns": f"{{{listed}}}"}.items())
    return _DeclaredObject(whole, {**others, **columns})


def _context(id: str, body: Mapping[str, Any]) -> _DeclaredObject:
    """Declaration by declaration: a mapping, a rule, a type, a function is a part, under the words of its file."""
    file = as_file(id, body)
    parts: dict[str, str] = {key: _shown(file[key]) for key in ("extends", "derive") if key in file}
    for section in ("units", "types", "events", "functions"):
        parts |= {f"{section} {name}": _shown(_abridged(each)) for name, each in file.get(section, {}).items()}
    for section, word in (("rules", ""), ("kept", "kept ")):
        for direction, rules in file.get(section, {}).items():
            parts |= {f"{word}{direction} {rule.rpartition(' -> ')[0]}": rule.rpartition(" -> ")[2] for rule in rules}
    for mapping in file.get("maps", ()):
        (direction, types), *others = mapping.items()
        source, _, target = types.partition(" -> ")
        parts[f"{direction} {source} becomes"] = f"{target} {_shown(dict(others)['attributes'])}" if others else target
    return _DeclaredObject(", ".join(f"{key}: {text}" for key, text in parts.items()) or id, parts)


def _abridged(declared: Any) -> Any:
    """The code of a function is as long as its file: its digest tells whether it is another."""
    if not isinstance(declared, dict) or not isinstance(declared.get("code"), str):
        return declared
    return {**declared, "code": code_digest(declared["code"])[:12]}


def _client(client: ClientDeclaration) -> _DeclaredObject:
    return _named(client.name, _declared(client.as_json()))


def _scopes(graph: ScopeGraph) -> dict[str, dict[str, _DeclaredObject]]:
    """Scope by scope, client by client: under words of their own, for clients and policies are there, too."""
    written = scopes_as_json(graph)
    dimensions: dict[str, Any] = written.get("dimensions", {})
    return {
        "dimension": {name: _declared({"mode": body.get("mode", "open")}) for name, body in dimensions.items()},
        "scope": {
            f"{dimension}/{name}": _named(name, _declared(scope))
            for dimension, body in dimensions.items()
            for name, scope in body["scopes"].items()
        },
        "membership": {name: _named(name, _declared(where)) for name, where in written.get("clients", {}).items()},
        "tags": {name: _declared(tags) for name, tags in written.get("policies", {}).items()},
        "grant": {
            f"{each['to']} in {each['dimension']}" + (f" {_shown(each['scopes'])}" if "scopes" in each else ""): (
                _declared({"may": each["may"]})
            )
            for each in written.get("grants", ())
        },
        "release": {
            f"{each['policy']} in {_shown(each['dimensions'])}": _declared({"keep": each["keep"], "by": each["by"]})
            for each in written.get("releases", ())
        },
    }


def _quality(quality: Quality) -> dict[str, dict[str, _DeclaredObject]]:
    """One by one, under the names that they are known by; actions by what they do, for they have none."""
    written = quality_as_json(quality)
    properties, strategies = written.get("properties", {}), written.get("strategy", {})
    return {
        "property": {name: _declared(body) for name, body in properties.items()},
        "expectation": {each["id"]: _declared(_but(each, "id")) for each in written.get("expectations", ())},
        "profile": {
            f"{each['publisher']}/{each['type']}": _declared(_but(each, "publisher", "type"))
            for each in written.get("profiles", ())
        },
        "adaptation": {
            f"{each.property} {each.direction} {each.action}": _declared({"cost": body.get("cost", 0)})
            for each, body in zip(quality.actions, written.get("actions", ()), strict=True)
        },
        "strategy": {type: _DeclaredObject(_shown(body), {}) for type, body in strategies.items()},
    }


def _but(body: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in keys}


def _named(name: str, thing: _DeclaredObject) -> _DeclaredObject:
    """Something that is only there is shown by its name."""
    return thing if thing.parts else _DeclaredObject(name, {})


def _declared(body: Mapping[str, Any]) -> _DeclaredObject:
    parts = {key: _shown(value) for key, value in body.items()}
    return _DeclaredObject(", ".join(f"{key}: {text}" for key, text in parts.items()), parts)


def _shown(value: Any) -> str:
    """A JSON value as it would stand in a file; lists of names without quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return f"[{', '.join(value)}]"
    return canonical(value)
