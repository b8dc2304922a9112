"""JSON Schemas of the project's files, so that editors complete keys and mark mistakes while they are made.

Generated from what the loaders accept. A schema knows the form of a file only: names, types, units and
expressions are checked by ``situ check``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from situ.contexts.declarations import CONTEXT_KEYS, CONVERSION_KEYS, MAPPING_KEYS
from situ.lang.documents.reader import FILE_VERSION
from situ.lang.expr.definitions import FUNCTION_KEYS
from situ.lang.tags import ANY, NONE, REST
from situ.lang.types.json_schema import DIALECT
from situ.policies.actions.load import ACTIONS_KEYS
from situ.policies.actions.model import VERBS
from situ.policies.ontology.declare import MEASURE_KEYS, ONTOLOGY_KEYS, RELATIONSHIP_KEYS
from situ.policies.ontology.relationships import FUNCTIONS
from situ.project.folder import FOLDERS, OWN_FOLDER
from situ.project.quality_schema import BOOLEAN, TEXT, named_form, object_form, quality_schema, text_form
from situ.routing.load import ADVERTISEMENT_KEYS, CLIENT_KEYS, SUBSCRIPTION_KEYS
from situ.routing.topics import DELIVERIES, FORMATS, STARTS
from situ.scopes.graph import RIGHTS
from situ.scopes.load_scopes import DIMENSION_KEYS, GRANT_KEYS, LINK_KEYS, MODES, POLICY_KEYS, RELEASE_KEYS, SCOPE_KEYS
from situ.scopes.load_scopes import KEYS as SCOPES_KEYS
from situ.settings.model import settings_schema
from situ.sources.declare import KINDS as PLACES
from situ.sources.declare import PUSH_KEYS, SOURCE_KEYS
from situ.sources.declare import REQUIRED as PUSH_REQUIRED

_COUNT = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": r"\$\{"}]}
_ONE_LINE = {"type": "string", "pattern": "->.*=", "examples": ["double m -> double yd = value * 1.09"]}
_TYPE_HEAD = r"^\s*[A-Za-z][A-Za-z0-9_.]*\s*(\(.*\))?\s*$"
_WORD = r"^[A-Za-z_][A-Za-z0-9_]*$"
_SOURCE_NAME = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
_RELATIONSHIP = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"
_CONTEXT_ID = r"^[a-z][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)*$"
_CLIENT_NAME = r"^[A-Za-z0-9-]{1,64}$"
_MEMBER_NAME = r"^[A-Za-z0-9_-]{1,64}$"


def schemas() -> Mapping[str, dict[str, Any]]:
    """The schema of each kind of file, by the name of the kind."""
    bodies = {
        "situ": settings_schema(),
        "ontology": _ontology(),
        "actions": _actions(),
        "scopes": _scopes(),
        "types": _types(),
        "functions": _functions(),
        "sources": _sources(),
        "contexts": _contexts(),
        "clients": _clients(),
        "quality": quality_schema(),
    }
    return MappingProxyType({kind: _document(kind, body) for kind, body in bodies.items()})


def write_schemas(path: Path) -> tuple[Path, ...]:
    """Put the schemas into the project, where the first line of its files looks for them."""
    folder = path / OWN_FOLDER / "schemas"
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for kind, schema in schemas().items():
        file = folder / f"{kind}.json"
        file.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(file)
    return tuple(written)


def _document(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    version = {"const": FILE_VERSION, "description": "version of the form of this file"}
    return {
        "$schema": DIALECT,
        "title": f"{kind}/*.yaml" if kind in FOLDERS else f"{kind}.yaml",
        **body,
        "properties": {"version": version, **body["properties"]},
    }


def _attribute() -> dict[str, Any]:
    return {
        "description": "[optional] TYPE [UNIT], or {type, unit, optional, default}",
        "anyOf": [
            {**TEXT, "examples": ["double m", "optional string", "[Line]"]},
            {"type": "array", "minItems": 1, "maxItems": 1},
            object_form(
                {"type": {"type": ["string", "array"]}, "unit": TEXT, "optional": BOOLEAN, "default": True}, ("type",)
            ),
        ],
    }


def _types() -> dict[str, Any]:
    declared = {"type": ["object", "null"], "propertyNames": {"pattern": _WORD}, "additionalProperties": _attribute()}
    return object_form(
        {
            "types": named_form(_TYPE_HEAD, declared, "types that are parts of events, as Name or Name(Super, Other)"),
            "events": named_form(_TYPE_HEAD, declared, "types that can be published"),
            "units": named_form(_WORD, {**TEXT, "examples": ["currency", "label"]}, "units that are not physical"),
        }
    )


def _ontology() -> dict[str, Any]:
    attribute = _attribute()
    attribute["description"] = "TYPE [UNIT], or {type, unit}"
    del attribute["anyOf"][-1]["properties"]["default"]
    concept = {"type": ["object", "null"], "propertyNames": {"pattern": _WORD}, "additionalProperties": attribute}
    end = {**TEXT, "pattern": r"^[^.]+\.[^.]+$", "examples": ["person.position"]}
    fields = {
        "between": {"type": "array", "items": end, "minItems": 2, "maxItems": 2, "description": "its two ends"},
        "function": {**TEXT, "description": "over both values", "examples": [*FUNCTIONS, "a function of functions/"]},
        "parameter": {
            **object_form({"name": TEXT, "unit": TEXT}, ("name",)),
            "description": "what policies say beside the two, as `5 m` in `within 5 m`",
        },
        "symmetric": {**BOOLEAN, "description": "whether either side may come first"},
        "unit": text_form("the unit of the result"),
    }
    relationship = object_form({key: fields[key] for key in RELATIONSHIP_KEYS}, RELATIONSHIP_KEYS[:2])
    measure = object_form({key: fields[key] for key in MEASURE_KEYS}, MEASURE_KEYS[:2])
    concepts = {"type": "array", "items": TEXT, "minItems": 1}
    sections = {
        "concepts": named_form(
            _TYPE_HEAD, concept, "what there is, as name or name(general, other), with its attributes"
        ),
        "groups": named_form(_WORD, concepts, "concepts under one name"),
        "containers": named_form(_WORD, TEXT, "concepts, and of which other one each is a part"),
        "relationships": named_form(_RELATIONSHIP, _one_or_more(relationship), "what policies say of two concepts"),
        "measures": named_form(_WORD, _one_or_more(measure), "values over two concepts"),
    }
    return object_form({key: sections[key] for key in ONTOLOGY_KEYS})


def _actions() -> dict[str, Any]:
    step = {
        "type": "object",
        "description": f"one of {', '.join(VERBS)}, and what belongs to it",
        "properties": dict.fromkeys(VERBS, TEXT),
        "anyOf": [{"required": [verb]} for verb in VERBS],
    }
    pair = {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}
    sections = {
        "actions": {
            "type": ["object", "null"],
            "description": "what policies can do, by name, as `raise alarm`",
            "additionalProperties": _one_or_more(step),
        },
        "opposed": {"type": ["array", "null"], "items": pair, "description": "pairs of which one undoes the other"},
    }
    return object_form({key: sections[key] for key in ACTIONS_KEYS})


def _one_or_more(form: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [form, {"type": "array", "items": form, "minItems": 1}]}


def _functions() -> dict[str, Any]:
    about = {
        "signature": "(a: TYPE [UNIT], …) -> TYPE [UNIT], or for conversions TYPE [UNIT] -> TYPE [UNIT]",
        "expr": "an expression over the parameters, or over `value`",
    }
    long_form = object_form({key: {**TEXT, "description": about[key]} for key in FUNCTION_KEYS}, FUNCTION_KEYS)
    short_form = {**TEXT, "pattern": "->.*=", "examples": ["(a: Point m, b: Point m) -> double m = distance(a, b)"]}
    return object_form({"functions": named_form(_WORD, {"anyOf": [short_form, long_form]}, "functions by name")})


def _sources() -> dict[str, Any]:
    columns = {"type": "object", "minProperties": 1, "propertyNames": {"pattern": _WORD}}
    fields = {
        "csv": {**TEXT, "description": "a file with a line of column names, relative to the project"},
        "parquet": {**TEXT, "description": "a file, relative to the project"},
        "xml": {**TEXT, "description": "a file, relative to the project"},
        "rows": {**TEXT, "description": "of an XML file, the path of its rows", "examples": ["//room"]},
        "sql": {**TEXT, "description": "a table of a database, or a SELECT of the columns"},
        "url": {**TEXT, "description": "the database", "examples": ["${PEOPLE_DB}", "sqlite:///people.db"]},
        "columns": {**columns, "description": "the columns that are used", "additionalProperties": _column()},
        "key": {
            "description": "the columns that tell rows apart",
            "anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}],
        },
        "as_of": {**TEXT, "description": "the column that says from when on a row is valid"},
        "max_age": {**TEXT, "description": "how old what was read may become", "examples": ["1 min"]},
        "concept": {**TEXT, "description": "the concept of the ontology of whose instances it tells, one in a row"},
        "attributes": {
            "type": "object",
            "description": "attributes of the concept with their columns, where these have other names",
            "additionalProperties": TEXT,
        },
        "scopes": _tags("the scopes of its rows"),
    }
    source = object_form({key: fields[key] for key in SOURCE_KEYS}, ("columns",))
    one_place = {"oneOf": [{"required": [place]} for place in PLACES]}
    return object_form(
        {
            "pull": named_form(_SOURCE_NAME, {**source, **one_place}, "tables that are read, by name"),
            "push": named_form(_SOURCE_NAME, _push(), "events that bring an attribute of a concept, by name"),
        }
    )


def _column() -> dict[str, Any]:
    attribute = _attribute()
    *others, long_form = attribute["anyOf"]
    path = text_form("in an XML file, the path from the row to the cell, as `@id` or `box`")
    of_xml = {**long_form, "properties": {**long_form["properties"], "xpath": path}}
    return {**attribute, "anyOf": [*others, of_xml]}


def _push() -> dict[str, Any]:
    duration = {**TEXT, "examples": ["2 s"]}
    fields = {
        "event": text_form("an event type, with its subtypes"),
        "concept": text_form("the concept of the ontology of whose instances it tells"),
        "id": text_form("the path of the identity in the event"),
        "attribute": text_form("the attribute that it brings"),
        "value": text_form("the path of the value in the event"),
        "time": text_form("the path of a timestamp in the event that says when it happened; else the event's own time"),
        "lateness": {**duration, "description": "how much later than others an event may come"},
        "idle": {**duration, "description": "after which silence it is waited for no longer"},
        "keep": {
            **TEXT,
            "pattern": "^last ",
            "description": "how long the last value stands",
            "examples": ["last 10 min"],
        },
    }
    return object_form({key: fields[key] for key in PUSH_KEYS}, PUSH_REQUIRED)


def _contexts() -> dict[str, Any]:
    arrow = {**TEXT, "pattern": r"^\s*\S+\s*->\s*\S+\s*$"}
    rule = {**TEXT, "pattern": r"->\s*[A-Za-z_][A-Za-z0-9_]*\s*$", "examples": ["LogInfo.Address -> identity"]}
    rules = {"type": ["array", "null"], "items": rule}
    origin = {
        "description": "a path of the source, {expr: EXPRESSION} or {default: VALUE}",
        "anyOf": [
            TEXT,
            object_form({"expr": text_form("an expression over the source as it came")}, ("expr",)),
            object_form({"default": {"description": "the value it always has"}}, ("default",)),
        ],
    }
    attributes = {"type": ["object", "null"], "description": "what does not go by name", "additionalProperties": origin}
    mappings = {
        "in": {**arrow, "description": "event type of the context -> event type of root"},
        "out": {**arrow, "description": "event type of root -> event type of the context"},
        "both": {**TEXT, "pattern": "<->", "description": "event type of root <-> event type of the context"},
    }
    mapping = object_form({**{key: mappings[key] for key in MAPPING_KEYS}, "attributes": attributes})
    one_way = {"oneOf": [{"required": [key]} for key in MAPPING_KEYS]}
    ways = {"out": "from root to the context", "in": "from the context to root"}
    directions = {key: {**rules, "description": about} for key, about in ways.items()}
    grouped = {**object_form(directions), "type": ["object", "null"]}
    fields = {
        "extends": {**TEXT, "pattern": _CONTEXT_ID, "description": "the context it inherits from; root if absent"},
        "derive": {**BOOLEAN, "description": "whether event types that rules change get types of their own"},
        **_types()["properties"],
        "maps": {
            "type": ["array", "null"],
            "description": "which event type becomes which",
            "items": {**mapping, **one_way},
        },
        "rules": {"description": "which function converts what: PATTERN -> FUNCTION", "anyOf": [rules, grouped]},
        "kept": {**grouped, "description": "rules that Situ put in, so that new ones further up change nothing here"},
        "functions": named_form(_WORD, {"anyOf": [_ONE_LINE, _conversion()]}, "functions by name"),
    }
    identifier = {**TEXT, "pattern": _CONTEXT_ID, "description": "its identifier", "examples": ["acme.us"]}
    return object_form({"context": identifier, **{key: fields[key] for key in CONTEXT_KEYS}}, ("context",))


def _expressions(about: str, each: str) -> dict[str, Any]:
    names = {"type": "object", "propertyNames": {"pattern": _WORD}, "description": about}
    return {**names, "additionalProperties": text_form(each)}


def _conversion() -> dict[str, Any]:
    lookup = {
        "source": text_form("a table of sources/"),
        "key": _expressions("the columns that must have a value", "the value, over `value` and `event`"),
        "as_of": text_form("a column of instants: the last row not after the function's `time`"),
    }
    state = {
        "event": text_form("the event type of root that is remembered"),
        "key": text_form("an expression over it: whose it is"),
        "keep": _expressions("what is remembered of it", "an expression over it"),
        "history": text_form("for how long events that came later are passed over, as `10 min`"),
        "ttl": text_form("after which time without a new one it is forgotten, as `24 h`"),
        "max_keys": {**_COUNT, "description": "how many keys are remembered at most"},
    }
    fields = {
        "signature": {**TEXT, "description": "TYPE [UNIT] -> TYPE [UNIT]"},
        "expr": {**TEXT, "description": "an expression over `value`, `event` and what is looked up or remembered"},
        "value": {**TEXT, "description": "instead of an expression, the column that is the result"},
        "python": {**TEXT, "description": "instead of an expression, a function of functions/*.py: `file.function`"},
        "code": {**TEXT, "description": "the text of that file, which Situ puts in"},
        "time": {**TEXT, "description": "`event`, `now` or an instant: the time that counts"},
        "lookup": named_form(
            _WORD, object_form(lookup, ("source", "key")), "rows of sources, by the name they are read as"
        ),
        "key": {**TEXT, "description": "whose remembered values count"},
        "state": named_form(
            _WORD, object_form(state, ("event", "key", "keep", "ttl", "max_keys")), "what is remembered"
        ),
        "missing": {
            "description": "without a row: `error`, `null`, `hold 5 s` or {default: VALUE}",
            "anyOf": [
                {"type": ["string", "null"]},
                object_form({"default": {"description": "the result, as it would stand in an event"}}, ("default",)),
            ],
        },
        "nulls": {"enum": ["call", "skip"], "description": "whether it is called for null, too"},
        "lossy": {**BOOLEAN, "description": "whether it loses information"},
        "inverse": {**TEXT, "description": "the function that leads back"},
    }
    return object_form({key: fields[key] for key in CONVERSION_KEYS}, ("signature",))


def _tags(about: str) -> dict[str, Any]:
    """Per dimension one scope, or `any`; `rest` is for those that are not named."""
    rest = {"enum": [ANY, NONE], "description": "the dimensions that are not named"}
    return {**named_form(_CLIENT_NAME, text_form("a scope, or `any`"), about), "properties": {REST: rest}}


def _scopes() -> dict[str, Any]:
    names = {"type": ["array", "null"], "items": TEXT}
    link = {"up": text_form("what may go from the scope into this one"), "down": text_form("what may come back")}
    fields = {
        "in": {**names, "description": "the scopes that it is directly in"},
        "output": text_form("what may leave it: an expression that is true or false"),
        "input": text_form("what may come in"),
        "links": named_form(
            _CLIENT_NAME, object_form({key: link[key] for key in LINK_KEYS}), "filters of single memberships"
        ),
        "carriers": {**names, "description": "the zones that may hold its events"},
    }
    scope = {**object_form({key: fields[key] for key in SCOPE_KEYS}), "type": ["object", "null"]}
    parts = {
        "mode": {"enum": list(MODES), "description": "closed: who says nothing there sees nothing and is not seen"},
        "scopes": named_form(_CLIENT_NAME, scope, "scopes by name"),
    }
    dimension = {**object_form({key: parts[key] for key in DIMENSION_KEYS}), "type": ["object", "null"]}
    policy = object_form({key: _tags(about) for key, about in zip(POLICY_KEYS, ("as whom", "to whom"), strict=True)})
    rights = {
        "type": "array",
        "items": {"enum": list(RIGHTS)},
        "minItems": 1,
        "description": ", ".join(f"`{right}`" for right in RIGHTS),
    }
    memberships = named_form(_CLIENT_NAME, {**names, "description": "scopes of a dimension"}, "by dimension")
    grant = object_form(
        {
            "to": text_form("a client, a policy or a person"),
            "dimension": text_form("the dimension"),
            "may": rights,
            "scopes": {**names, "description": "only there and below; without it, everywhere"},
        },
        GRANT_KEYS,
    )
    release = object_form(
        {
            "policy": text_form("whose situations are released"),
            "dimensions": {**names, "description": "where only the policy's own tags count"},
            "keep": {**names, "description": "what is left of their attributes"},
            "by": text_form("the administrator who says so"),
        },
        RELEASE_KEYS,
    )
    sections = {
        "dimensions": named_form(_CLIENT_NAME, dimension, "ways of dividing the world, by name"),
        "clients": named_form(_MEMBER_NAME, memberships, "the scopes that clients and sources are directly in"),
        "policies": named_form(_CLIENT_NAME, policy, "the tags that policies read and publish with"),
        "grants": {"type": ["array", "null"], "items": grant, "description": "who may do what"},
        "releases": {"type": ["array", "null"], "items": release, "description": "situations that may be seen further"},
    }
    return object_form({key: sections[key] for key in SCOPES_KEYS})


_TOPIC = {**TEXT, "pattern": r"^[A-Za-z0-9._-]{1,249}$"}
_SOURCE = {
    "topics": {"type": "array", "items": _TOPIC, "minItems": 1, "description": "topics whose records are its events"},
    "group": text_form("the consumer group under which Kafka is told how far it is; if absent, one of its own"),
    "format": {"enum": list(FORMATS), "description": "of the records; `cloudevents`, or `json` if there is a `type`"},
    "type": text_form("the event type whose data the records are"),
    "time": text_form("the field of a record that says the time of the event; if absent, the record's own"),
    "id": text_form("the field that says its id; if absent, it follows from topic, partition and offset"),
    "source": text_form("the field that says its source; if absent, the client"),
    "key": text_form("the attribute that the key of a record is put into"),
    "start": {"enum": list(STARTS), "description": "where a topic is begun that was never read; `begin` if absent"},
}
_TARGET = {
    "topic": {**_TOPIC, "description": "the topic that it is delivered to"},
    "key": text_form("the attribute that is the key of a record; if absent, the key of the event"),
    "format": {"enum": list(FORMATS), "description": "of the records; `json` if absent"},
}


def _clients() -> dict[str, Any]:
    event = {**TEXT, "description": "an event type"}
    context = {**TEXT, "pattern": _CONTEXT_ID, "description": "the context in whose terms it speaks; root if absent"}
    fields = {
        "types": {"type": "array", "items": event, "minItems": 1, "description": "event types, with their subtypes"},
        "where": {**TEXT, "description": "which of them: an expression that is true or false"},
        "durable": {**BOOLEAN, "description": "whether events are kept while the client is away"},
        "context": {**context, "description": "another context than the client's, for this one alone"},
        "type": event,
        "scopes": _tags("other scopes than the client's, for this one alone"),
        "kafka": {**object_form(_TARGET, ("topic",)), "description": "the topic of Kafka that it is delivered to"},
        "delivery": {
            "enum": list(DELIVERIES),
            "description": "how events reach the topic; `real-time`: what Spark SQL can at once; `queued` if absent",
        },
    }
    advertisement = object_form({key: fields[key] for key in ADVERTISEMENT_KEYS}, ("type",))
    below = {
        "advertisements": (advertisement, "what the client publishes, by name"),
        "subscriptions": (object_form({key: fields[key] for key in SUBSCRIPTION_KEYS}, ("types",)), "what it asks for"),
    }
    named = {key: named_form(_CLIENT_NAME, *value) for key, value in below.items()}
    topics = {**object_form(_SOURCE, ("topics",)), "description": "the topics of Kafka that its events come from"}
    members = {"context": context, "scopes": _tags("its scopes"), "kafka": topics, **named}
    client = {
        **object_form({key: members[key] for key in CLIENT_KEYS}),
        "type": ["object", "null"],
    }
    return object_form({"clients": named_form(_CLIENT_NAME, client, "clients by name")})
