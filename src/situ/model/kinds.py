"""The table of kinds: everything that can be declared, kind by kind, and the parts of a deployment that it makes.

A deployment has one canonical form. :data:`PARTS` are its keys: how each is written and read. :data:`KINDS` are the
kinds of things in it: where things of a kind stand in the canonical form, which file of the project declares them, how
one is shown as such a file, how two are compared, and whether one can be added and removed by itself. The registry
stores things one by one; :func:`things_in` takes a deployment apart, :func:`content_of` puts the canonical form
together again. Whoever adds a kind adds a row here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from situ.contexts.load import contexts_from_json
from situ.contexts.python_files import code_digest
from situ.contexts.table import as_file
from situ.lang.expr.definitions import callable_functions, functions_as_json, functions_from_json
from situ.lang.records import replace
from situ.lang.types.declaration import print_type
from situ.lang.types.json_codec import encode
from situ.lang.types.model import Attribute, Named, format_attribute, own_attributes
from situ.lang.types.table import Types
from situ.policies.actions.load import actions_as_json, actions_from_json
from situ.policies.actions.model import DeclaredActions
from situ.policies.load import policies_as_json, policies_from_json
from situ.policies.model import starts_as_json, starts_from_json
from situ.policies.ontology.load import ontology_as_file, ontology_as_json, ontology_from_json
from situ.quality.model.json_form import quality_as_json, quality_from_json
from situ.quality.model.shapes import shape_as_json, shape_from_json
from situ.routing.model import Advertisement, ClientDeclaration, Subscription
from situ.scopes.json_form import scopes_as_json, scopes_from_json
from situ.scopes.stamp_codec import StampNumbers
from situ.settings import Settings, settings_as_json, settings_from_json
from situ.sources.declare import PUSH_KEYS, SOURCE_KEYS
from situ.sources.load import pushes_from_json, sources_from_json
from situ.sources.model import pushes_as_json, sources_as_json

if TYPE_CHECKING:
    from situ.model.deployment import Deployment

Kind = Literal[
    "settings",
    "unit",
    "type",
    "event",
    "function",
    "source",
    "push",
    "concept",
    "group",
    "container",
    "relationship",
    "measure",
    "action",
    "opposed",
    "policy",
    "suspended",
    "start",
    "context",
    "scopes",
    "quality",
    "client",
    "advertisement",
    "subscription",
    "shape",
]


def canonical(value: Any) -> str:
    """The one text of a JSON value: sorted keys, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The parts of a deployment: the keys of its canonical form, in the order in which they are written and read. What a
# part is read with comes before it: policies are read against all the rest.


Write = Callable[["Deployment"], Any]
Read = Callable[[Any, "Deployment"], dict[str, Any]]
"""From what was written, and the deployment as far as it was read: fields of the deployment."""


class Part(msgspec.Struct, frozen=True):
    """A key of the canonical form. Unless it is ``always`` written it is left out where there is nothing to say."""

    write: Write
    read: Read
    always: bool = False
    content: bool = True
    """Whether it is declared; else it is a number that the registry gave, and the digest does not know it."""
    single: bool = False
    """Whether it is read without the others, so that a deployment takes over another one by itself."""
    sparse: bool = False
    """Whether its empty sections are left out."""


def _field(name: str, write: Callable[[Any], Any], read: Callable[[Any], Any], **how: bool) -> Part:
    """A field of the deployment that is read without any other."""
    return Part(lambda given: write(getattr(given, name)), lambda value, _: {name: read(value)}, **how)


def _typed_field(name: str, write: Callable[[Any], Any], read: Callable[[Any, Types], Any], **how: bool) -> Part:
    """A field that is read with the types."""
    return Part(lambda given: write(getattr(given, name)), lambda value, far: {name: read(value, far.types)}, **how)


def _one_by_one(name: str, read: Callable[[str, Any], Any], write: Callable[[Any], Any], **how: bool) -> Part:
    """A field of things by name, each of which is written and read by itself."""
    return _field(
        name,
        lambda things: {key: write(things[key]) for key in sorted(things)},
        lambda value: MappingProxyType({key: read(key, body) for key, body in value.items()}),
        single=True,
        **how,
    )


def _of_client(name: str, of: type[ClientDeclaration | Advertisement | Subscription]) -> Part:
    return _one_by_one(name, of.from_json, lambda thing: thing.as_json(), always=True)


def _read_version(value: Any, _: Deployment) -> dict[str, Any]:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("version")
    return {"version": value}


def _read_versions(value: Any, far: Deployment) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(type(version) is int and version > 0 for version in value.values()):
        raise TypeError("versions")
    return {"contexts": far.contexts.at_versions(value)}


def _read_functions(value: Any, far: Deployment) -> dict[str, Any]:
    return {"functions": functions_from_json(value, far.types, far.settings.expression_limits)}


def _read_contexts(value: Any, far: Deployment) -> dict[str, Any]:
    rows = {name: source.row for name, source in far.sources.items()}
    limits = far.settings.expression_limits
    return {"contexts": contexts_from_json(value, far.types, far.functions, limits, rows)}


def _read_ontology(value: Any, far: Deployment) -> dict[str, Any]:
    functions = callable_functions(far.functions)
    return {"ontology": ontology_from_json(value, far.types, functions, far.settings.expression_limits)}


def _write_visibility(deployment: Deployment) -> dict[str, Any]:
    known = deployment.epoch or deployment.numbers
    return {"epoch": deployment.epoch, **deployment.numbers.as_json()} if known else {}


def _read_visibility(value: Any, _: Deployment) -> dict[str, Any]:
    if type(value.get("epoch", 0)) is not int:
        raise TypeError("epoch")
    return {"epoch": value.get("epoch", 0), "numbers": StampNumbers.from_json(value)}


def _read_policies(value: Any, far: Deployment) -> dict[str, Any]:
    found = policies_from_json(value, far.domain)
    return {"policies": found.running, "stopped": found.stopped}


def _write_ontology(deployment: Deployment) -> dict[str, Any]:
    return {section: things for section, things in ontology_as_json(deployment.ontology).items() if things}


def _write_actions(actions: DeclaredActions) -> dict[str, Any]:
    found = actions_as_json(actions)
    return found if any(found.values()) else {}


PARTS: Mapping[str, Part] = MappingProxyType(
    {
        "version": Part(lambda given: given.version, _read_version, always=True, content=False),
        "settings": _field("settings", settings_as_json, settings_from_json, always=True),
        "types": _field("types", Types.as_json, Types.from_json, always=True),
        "functions": Part(lambda given: functions_as_json(given.functions), _read_functions, always=True),
        "sources": _typed_field("sources", sources_as_json, sources_from_json, always=True),
        "contexts": Part(lambda given: given.contexts.as_json(), _read_contexts, always=True),
        "clients": _of_client("clients", ClientDeclaration),
        "advertisements": _of_client("advertisements", Advertisement),
        "subscriptions": _of_client("subscriptions", Subscription),
        "versions": Part(lambda given: dict(given.contexts.versions), _read_versions, always=True, content=False),
        "scopes": _field("scopes", scopes_as_json, scopes_from_json, single=True),
        "visibility": Part(_write_visibility, _read_visibility, content=False),
        "quality": _field("quality", quality_as_json, quality_from_json, single=True),
        "shapes": _one_by_one("shapes", lambda _, body: shape_from_json(body), shape_as_json),
        "ontology": Part(_write_ontology, _read_ontology, sparse=True),
        "push": _typed_field("push", pushes_as_json, pushes_from_json),
        "actions": _typed_field("actions", _write_actions, actions_from_json),
        "policies": Part(lambda given: policies_as_json(given.policies, given.stopped), _read_policies),
        "suspended": _field("suspended", sorted, frozenset),
        "starts": _field("starts", starts_as_json, starts_from_json),
    }
)
_MAY_LACK = frozenset({"versions"} | {key for key, part in PARTS.items() if not part.always})
"""What is not in all deployments: versions of contexts came later."""


def deployment_as_json(deployment: Deployment) -> dict[str, Any]:
    """The canonical form as plain JSON values."""
    found = {key: part.write(deployment) for key, part in PARTS.items()}
    return {key: value for key, value in found.items() if value or PARTS[key].always}


def read_parts(value: Any, deployment: Deployment) -> Deployment:
    """The canonical form read into an empty deployment."""
    if not isinstance(value, dict) or not PARTS.keys() - _MAY_LACK <= value.keys() <= PARTS.keys():
        raise ValueError("this is no deployment of this release: it has other parts")
    for key, part in PARTS.items():
        if key in value:
            deployment = replace(deployment, **part.read(value[key], deployment))
    return deployment


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# How things are compared: as text, part by part where they have parts, in the words of the files.


class ComparedThing(NamedTuple):
    """Something declared, as text; its parts by name where it has any."""

    whole: str
    parts: Mapping[str, str]


Compare = Callable[[str, Any, "Deployment"], ComparedThing]
"""From a name, what is stored under it, and the deployment that it is in."""

ComparedByKind = dict[str, dict[str, ComparedThing]]
CompareWhole = Callable[[Any, "Deployment"], ComparedByKind]


def _plain(_name: str, body: Any, _: Deployment) -> ComparedThing:
    """Key by key, if it has any."""
    return _keys(body) if isinstance(body, dict) else ComparedThing(_shown(body), {})


def _named(name: str, body: Any, _: Deployment) -> ComparedThing:
    """Something that is only there is shown by its name."""
    return _keys(body) if body else ComparedThing(name, {})


def _keys(body: Mapping[str, Any]) -> ComparedThing:
    return _parts({key: _shown(value) for key, value in body.items()})


def _parts(parts: Mapping[str, str]) -> ComparedThing:
    return ComparedThing(", ".join(f"{key}: {text}" for key, text in parts.items()), parts)


def _shown(value: Any) -> str:
    """A JSON value as it would stand in a file; lists of names without quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return f"[{', '.join(value)}]"
    return canonical(value)


def _compare_type(name: str, _: Any, deployment: Deployment) -> ComparedThing:
    type = deployment.types.types[name]
    if isinstance(type, Named):
        return ComparedThing(print_type(type), {"based on": str(type.base)})
    parts = {"extends": ", ".join(above.name for above in type.supers)} if type.supers else {}
    return ComparedThing(print_type(type), {**parts, **{each.name: _attribute(each) for each in own_attributes(type)}})


def _attribute(attribute: Attribute) -> str:
    text = format_attribute(attribute)
    if attribute.default is None:
        return text
    return f"{text} (default {_shown(encode(attribute.type, attribute.default))})"


def _compare_function(_name: str, body: Any, _: Deployment) -> ComparedThing:
    return ComparedThing(f"{body['signature']} = {body['expr']}", body)


def _compare_source(_name: str, body: Any, _: Deployment) -> ComparedThing:
    """Column by column: most changes are about one of them."""
    columns = {name: _shown(column) for name, column in body["columns"].items()}
    others = {key: _shown(value) for key, value in body.items() if key != "columns"}
    listed = ", ".join(f"{name}: {text}" for name, text in columns.items())
    return ComparedThing(_parts({**others, "columns": f"{{{listed}}}"}).whole, {**others, **columns})


def _compare_concept(_name: str, body: Any, _: Deployment) -> ComparedThing:
    """Attribute by attribute."""
    supers = {"specialises": ", ".join(body["supers"])} if "supers" in body else {}
    return _parts({**supers, **dict(body["attributes"])})


def _compare_context(id: str, body: Any, _: Deployment) -> ComparedThing:
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
        source, _arrow, target = types.partition(" -> ")
        parts[f"{direction} {source} becomes"] = f"{target} {_shown(dict(others)['attributes'])}" if others else target
    return ComparedThing(_parts(parts).whole or id, parts)


def _abridged(declared: Any) -> Any:
    """The code of a function is as long as its file: its digest tells whether it is another."""
    if not isinstance(declared, dict) or not isinstance(declared.get("code"), str):
        return declared
    return {**declared, "code": code_digest(declared["code"])[:12]}


def _compare_settings(body: Any, _: Deployment) -> ComparedByKind:
    return {"setting": {name: ComparedThing(text, {}) for name, text in _each_setting(body, "")}}


def _each_setting(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _each_setting(below, f"{path}.{key}" if path else key)
    elif value != "":
        yield path, _shown(value)


def _compare_scopes(body: Any, deployment: Deployment) -> ComparedByKind:
    """Scope by scope, client by client: under words of their own, for clients and policies are there, too."""
    dimensions: dict[str, Any] = body.get("dimensions", {})
    return {
        "dimension": {name: _keys({"mode": each.get("mode", "open")}) for name, each in dimensions.items()},
        "scope": {
            f"{dimension}/{name}": _named(name, scope, deployment)
            for dimension, each in dimensions.items()
            for name, scope in each["scopes"].items()
        },
        "membership": {name: _named(name, where, deployment) for name, where in body.get("clients", {}).items()},
        "tags": {name: _keys(tags) for name, tags in body.get("policies", {}).items()},
        "grant": {
            f"{each['to']} in {each['dimension']}" + (f" {_shown(each['scopes'])}" if "scopes" in each else ""): (
                _keys({"may": each["may"]})
            )
            for each in body.get("grants", ())
        },
        "release": {
            f"{each['policy']} in {_shown(each['dimensions'])}": _keys({"keep": each["keep"], "by": each["by"]})
            for each in body.get("releases", ())
        },
    }


def _compare_quality(body: Any, deployment: Deployment) -> ComparedByKind:
    """One by one, under the names that they are known by; actions by what they do, for they have none."""
    return {
        "property": {name: _keys(each) for name, each in body.get("properties", {}).items()},
        "expectation": {each["id"]: _keys(_but(each, "id")) for each in body.get("expectations", ())},
        "profile": {
            f"{each['publisher']}/{each['type']}": _keys(_but(each, "publisher", "type"))
            for each in body.get("profiles", ())
        },
        "adaptation": {
            f"{each.property} {each.direction} {each.action}": _keys({"cost": written.get("cost", 0)})
            for each, written in zip(deployment.quality.actions, body.get("actions", ()), strict=True)
        },
        "strategy": {type: ComparedThing(_shown(each), {}) for type, each in body.get("strategy", {}).items()},
    }


def _compare_suspended(_name: str, _body: Any, _: Deployment) -> ComparedThing:
    return ComparedThing("suspended", {})


def _but(body: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in keys}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The table of kinds.


class StoredAs(Enum):
    """How the things of a kind stand in the canonical form."""

    MEMBERS = "by name"
    NAMES = "a list of names"
    ITEMS = "a list of what is stored"
    WHOLE = "there is one, and it is the whole part"


AsFile = Callable[["DeclarationKind", str, Any], Any]
"""From a kind, a name and what is stored: a document that declares only it, or the text of one."""


def _in_section(kind: DeclarationKind, name: str, value: Any) -> Any:
    return {kind.section: {name: value}}


def _whole(_kind: DeclarationKind, _name: str, value: Any) -> Any:
    return value


def _of_ontology(kind: DeclarationKind, name: str, value: Any) -> Any:
    return ontology_as_file({kind.section: {name: value}})


def _below_client(kind: DeclarationKind, id: str, value: Any) -> Any:
    client, _, name = id.partition("/")
    return {"clients": {client: {kind.section: {name: value}} if name else value}}


def _action(_: DeclarationKind, name: str, value: Any) -> Any:
    return {"actions": {name: value[0] if len(value) == 1 else value}}


def _pair(_kind: DeclarationKind, _name: str, value: Any) -> Any:
    return {"opposed": [value]}


def _remark(text: str) -> AsFile:
    """What no file declares is a comment."""
    return lambda _, name, value: f"# {name} {text.format(value=value, stored=canonical(value))}\n"


def _quality_in_order(_: str, body: Any) -> Any:
    return quality_as_json(quality_from_json(body))


def _subscription_in_order(id: str, body: Any) -> Any:
    return Subscription.from_json(id, body).as_json()


class DeclarationKind(msgspec.Struct, frozen=True):
    """A kind of things that can be declared."""

    place: tuple[str, ...]
    """Where its things stand in the canonical form."""
    file: str = ""
    """The kind of files that declare it, of which there is a schema and a page; none: nobody writes it."""
    section: str = ""
    """The key there under which it stands."""
    compare: Compare = _plain
    as_file: AsFile = _in_section
    ordered: Callable[[str, Any], Any] = lambda _, body: body
    """From its name and what is stored: the same in the order in which people write it."""
    form: StoredAs = StoredAs.MEMBERS
    listed: tuple[str, ...] = ()
    """Where else their names are listed: by that they are told from things of another kind in the same place."""
    only: str = ""
    """The name of the only thing of the kind."""
    compare_whole: CompareWhole | None = None
    """Things of other kinds, which the only one of this kind is made of."""

    @property
    def alone(self) -> bool:
        """Whether one can be added, altered and removed by itself."""
        return self.form is StoredAs.MEMBERS and bool(self.file)


def _ontology_kind(section: str, compare: Compare = _plain) -> DeclarationKind:
    return DeclarationKind(("ontology", section), "ontology", section, compare, _of_ontology)


def _client_kind(section: str, compare: Compare = _plain, **how: Any) -> DeclarationKind:
    return DeclarationKind((section,), "clients", section, compare, _below_client, **how)


def _only_kind(part: str, name: str, file: str, compare: CompareWhole, **how: Any) -> DeclarationKind:
    """A part that is one thing, under this name."""
    form = StoredAs.WHOLE
    return DeclarationKind((part,), file, as_file=_whole, form=form, only=name, compare_whole=compare, **how)


def _in_order(keys: Sequence[str]) -> Callable[[str, Any], Any]:
    return lambda _, body: {key: body[key] for key in keys if key in body}


KINDS: Mapping[Kind, DeclarationKind] = MappingProxyType(
    {
        "settings": _only_kind("settings", "situ.yaml", "situ", _compare_settings),
        "unit": DeclarationKind(("types", "units"), "types", "units"),
        "type": DeclarationKind(("types", "types"), "types", "types", _compare_type),
        "event": DeclarationKind(("types", "types"), "types", "events", _compare_type, listed=("types", "events")),
        "function": DeclarationKind(("functions",), "functions", "functions", _compare_function),
        "source": DeclarationKind(("sources",), "sources", "pull", _compare_source, ordered=_in_order(SOURCE_KEYS)),
        "push": DeclarationKind(("push",), "sources", "push", ordered=_in_order(PUSH_KEYS)),
        "concept": _ontology_kind("concepts", _compare_concept),
        "group": _ontology_kind("groups"),
        "container": _ontology_kind("containers"),
        "relationship": _ontology_kind("relationships"),
        "measure": _ontology_kind("measures"),
        "action": DeclarationKind(("actions", "actions"), "actions", "actions", as_file=_action),
        "opposed": DeclarationKind(("actions", "opposed"), "actions", "opposed", as_file=_pair, form=StoredAs.ITEMS),
        "policy": DeclarationKind(("policies",), "policies", "policies", as_file=_whole),
        "suspended": DeclarationKind(
            ("suspended",), compare=_compare_suspended, as_file=_remark("is suspended"), form=StoredAs.NAMES
        ),
        "start": DeclarationKind(("starts",), as_file=_remark("starts at {value[at]}")),
        "context": DeclarationKind(("contexts",), "contexts", "", _compare_context, _whole, as_file),
        "scopes": _only_kind("scopes", "scopes.yaml", "scopes", _compare_scopes),
        "quality": _only_kind("quality", "quality", "quality", _compare_quality, ordered=_quality_in_order),
        "client": _client_kind("clients", _named),
        "advertisement": _client_kind("advertisements"),
        "subscription": _client_kind("subscriptions", ordered=_subscription_in_order),
        "shape": DeclarationKind(("shapes",), compare=_named, as_file=_remark("is shaped: {stored}")),
    }
)
ALONE: Mapping[Kind, DeclarationKind] = MappingProxyType({name: each for name, each in KINDS.items() if each.alone})
"""What can be added, altered and removed by itself."""

CLIENT_KINDS: tuple[Kind, ...] = tuple(name for name, each in KINDS.items() if each.file == "clients")
"""What clients are and declare: nothing else refers to it, so it changes without anything else being looked at."""

BELOW_CLIENT: tuple[Kind, ...] = tuple(name for name in CLIENT_KINDS if name != "client")

ONTOLOGY: Mapping[Kind, str] = MappingProxyType(
    {name: each.section for name, each in KINDS.items() if each.file == "ontology"}
)
"""The kinds of which an ontology is made, with the sections of its file."""

_TOLD_APART = {each.place: (name, each.listed) for name, each in KINDS.items() if each.listed}
_STORED_AS = {
    **{each.place: each.form for each in KINDS.values()},
    **{each.listed: StoredAs.NAMES for each in KINDS.values() if each.listed},
}


def things_in(deployment: Deployment, kinds: Iterable[Kind] = KINDS) -> Iterator[tuple[Kind, str, Any]]:
    """Everything of these kinds that is declared, in the order of the table: kind, name and what is stored."""
    written: dict[str, Any] = {}
    for kind in kinds:
        place, form = KINDS[kind].place, KINDS[kind].form
        if place[0] not in written:
            written[place[0]] = PARTS[place[0]].write(deployment)
        found = _at(written, place)
        if form is StoredAs.WHOLE:
            yield from [(kind, KINDS[kind].only, found)] if found else []
        elif form is StoredAs.NAMES:
            yield from ((kind, name, True) for name in found)
        elif form is StoredAs.ITEMS:
            yield from ((kind, " and ".join(item), item) for item in found)
        elif not KINDS[kind].listed:
            other, listed = _TOLD_APART.get(place, (kind, ()))
            names = set(_at(written, listed)) if listed else ()
            yield from ((other if name in names else kind, name, body) for name, body in found.items())


def _at(written: Any, place: tuple[str, ...]) -> Any:
    for key in place:
        written = written.get(key, {})
    return written


def content_of(stored: Iterable[tuple[Kind, str, str]]) -> str:
    """The canonical form of the deployment that things make, without numbers that the registry gives.

    Each thing comes as kind, name and canonical text. It is put together without looking into these texts, so that it
    costs little however much is declared.
    """
    found: dict[tuple[str, ...], list[tuple[str, str]]] = {place: [] for place in _STORED_AS}
    for kind, name, body in stored:
        found[KINDS[kind].place].append((name, body))
        if KINDS[kind].listed:
            found[KINDS[kind].listed].append((name, body))
    found["settings",] = found["settings",] or [("", canonical(settings_as_json(Settings())))]
    parts = []
    for key in sorted(PARTS):
        places = sorted(place for place in found if place[0] == key)
        # Pairs of actions alone, without any action, are nothing.
        there = any(found[place] for place in places if _STORED_AS[place] is not StoredAs.ITEMS)
        if not places or not (there or PARTS[key].always):
            continue
        if places == [(key,)]:
            parts.append(f'"{key}":{_text(places[0], found)}')
            continue
        kept = (place for place in places if found[place] or not PARTS[key].sparse)
        sections = ",".join(f'"{place[1]}":{_text(place, found)}' for place in kept)
        parts.append(f'"{key}":{{{sections}}}')
    return "{" + ",".join(parts) + "}"


def _text(place: tuple[str, ...], found: Mapping[tuple[str, ...], list[tuple[str, str]]]) -> str:
    match _STORED_AS[place]:
        case StoredAs.MEMBERS:
            return "{" + ",".join([f"{canonical(name)}:{body}" for name, body in sorted(found[place])]) + "}"
        case StoredAs.NAMES:
            return "[" + ",".join([canonical(name) for name, _ in sorted(found[place])]) + "]"
        case StoredAs.ITEMS:
            return "[" + ",".join(sorted(body for _, body in found[place])) + "]"
        case StoredAs.WHOLE:
            return found[place][0][1]
