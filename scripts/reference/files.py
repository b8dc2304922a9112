"""The page of all files of a project and their keys, from the JSON Schemas that editors are given."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from reference.markdown import anchored, block, code, head, sections, table
from situ.policies.actions.model import VERBS
from situ.project.folder import FILES, FOLDERS, OWN_FOLDER
from situ.project.schemas import schemas

_INTRODUCTION = f"""\
A project is a folder with a `situ.yaml`. Declarations stand beside it, in as many files as you like: which declaration
is in which file of its folder makes no difference. [The project folder](../concepts/project.md) explains the rest.

All files are YAML 1.2, in UTF-8, without anchors, aliases and tags. `${{NAME}}` in a value is replaced by the
environment variable of that name. Every file may begin with `version: 1`.

`situ schemas` writes the JSON Schemas this page is made of to `{OWN_FOLDER}/schemas/`. Editors that know YAML use them:
the first line of each file of a new project points to them.
"""

ABOUT = {
    "situ": "The name of the project, and how it runs. Only `name` is required. Those below "
    "`overlay` are for several routers and zones: this release runs one router in one zone. It checks them all and "
    "uses `child_grace`, `duplicate_window` and `groups`.",
    "ontology": "What policies can talk about: concepts, relationships between them, measures over them. "
    "[The ontology](../concepts/situations.md#the-ontology) explains it.",
    "actions": "What policies can do, by name. [Actions](../concepts/situations.md#actions) explains them.",
    "scopes": "Who may see what: dimensions, scopes, filters at their boundaries, memberships, grants. "
    "[Visibility](../concepts/visibility.md) explains it.",
    "types": "Types of events and of their parts, and units that are not physical. "
    "[Types](../concepts/types.md) explains them.",
    "functions": "Functions of the project, which filters and other functions can call, and conversions. "
    "[How to add a function](../howto/add-a-function.md).",
    "sources": "Tables that others keep, each one of `csv`, `parquet`, `xml` and `sql`: contexts look up in them, "
    "and those with a `concept` tell policies of its instances; and push sources, events that do. "
    "[How to look up in tables](../howto/look-up-in-tables.md), "
    "[how to describe a domain](../howto/describe-a-domain.md).",
    "contexts": "What values mean to those who are in a context, as differences from root or from another context; one "
    "context a file. [Contexts](../concepts/contexts.md) explains them; files `contexts/*.xml` are "
    "[the same in XML](../howto/write-a-context-in-xml-or-python.md).",
    "clients": "Who publishes what, and who asks for what. [How to write a filter](../howto/write-a-filter.md).",
    "quality": "What subscriptions need, what publishers can do, and how it is decided whether to do it. "
    "[Quality](../concepts/quality.md) explains it.",
}

EXAMPLES = {
    "situ": """\
version: 1
name: smart-building
limits: {expression_nodes: 2000}""",
    "ontology": """\
version: 1
concepts:
  person: {id: string, status: string, position: Point m}
  visitor(person): {host: string}                # all that a person has, and a host
  room: {id: string, security: string, area: Box m, floor: string}
  floor: {id: string}
groups: {places: [room, floor]}
containers: {room: floor}                        # R is part of F
relationships:
  inside: {between: [person.position, room.area], function: inside}
  within: {between: [person.position, person.position], function: within, parameter: {name: distance, unit: m}}
measures:
  distance: {between: [person.position, person.position], function: distance, unit: m}""",
    "actions": """\
version: 1
actions:
  open window: {command: "window-{R.id}", data: {open: true}}
  close window: {command: "window-{R.id}", data: {open: false}}
opposed: [[open window, close window]]""",
    "scopes": """\
version: 1
dimensions:
  tenant:
    mode: closed
    scopes:
      house: {}
      sales: {in: [house], output: "type IS ExpressOrder"}  # only these leave it
      storage: {in: [house]}
clients: {shop: {tenant: [sales]}, warehouse: {tenant: [storage]}}
grants: [{to: auditor, dimension: tenant, may: [observe]}]""",
    "types": """\
version: 1
units: {EUR: currency}
types:
  PersonId(string): {}                           # a named primitive
  Line: {article: string, price: "decimal(18,2) EUR", count: {type: int, default: 1}}
events:
  Order: {customer: PersonId, lines: [Line], note: optional string}
  ExpressOrder(Order): {within: duration}        # a subtype""",
    "functions": """\
version: 1
functions:
  near: "(a: Point m, b: Point m, limit: double m) -> boolean = distance(a, b) <= limit"
  total:
    signature: "(price: double EUR, count: int) -> double EUR"
    expr: "price * count"
  to_yards: "double m -> double yd = value / 0.9144"    # a conversion: of one value, in plain numbers""",
    "sources": """\
version: 1
pull:
  persons: {csv: people.csv, columns: {nr: PersonId, role: optional string}, key: nr}
  rates:
    parquet: data/rates.parquet
    columns: {base: string, quote: string, rate: double, valid_from: timestamp}
    key: [base, quote]
    as_of: valid_from
  badges:
    sql: "SELECT tag, person FROM badges WHERE active"
    url: "${PEOPLE_DB}"
    columns: {tag: string, person: PersonId}
    max_age: 1 min""",
    "contexts": """\
version: 1
context: acme.us
extends: root
units: {USD: currency}
types:
  UsLine: {article: string, price: "decimal(18,2) USD", count: {type: int, default: 1}}
events:
  UsOrder: {customer: PersonId, lines: [UsLine], remark: optional string}
maps:
  - out: Order -> UsOrder
    attributes: {remark: note}                   # the others go by their names
rules:
  out: [Line -> to_us_line]
functions:
  to_us_line:
    signature: Line -> UsLine
    time: event
    lookup: {fx: {source: rates, key: {base: "'EUR'", quote: "'USD'"}, as_of: valid_from}}
    expr: struct(value.article AS article, to_decimal(value.price * fx.rate, 18, 2) AS price, value.count AS count)""",
    "clients": """\
version: 1
clients:
  shop:
    advertisements: {orders: {type: Order}}
  warehouse:
    subscriptions: {express: {types: [ExpressOrder], where: "size(lines) < 100", durable: true}}""",
    "quality": """\
version: 1
properties:
  traceability: {levels: [none, batch, item], determined_by: publisher}
expectations:
  - subscription: warehouse/express
    any_of:                                      # alternatives; the satisfied one that is worth most is in force
      - {id: steady, utility: 10, need: {rate: {lb: 5, ub: 10}, confidence: {lb: 75, each: true}}}
      - {id: coarse, utility: 4, need: {rate: {lb: 1/min}}}
profiles:
  - publisher: shop
    type: ExpressOrder
    mode: calm
    modes:
      - {name: calm, values: {rate: 2, confidence: 90}, cost: 1}
      - {name: busy, values: {rate: 60, confidence: 80}, cost: 8}
    capabilities:
      traceability: {lb: none, ub: item, cv: batch, cost: {none: 0, batch: 1, item: 5}}
actions:
  - {property: rate, direction: up, action: adaptPublisher, cost: 0.1}
strategy: {default: pareto, ExpressOrder: {name: utility, budget: 50}}""",
}


# What the schemas leave to the description of what is above.
_MEANINGS = {
    "bus.nats": "addresses of a NATS server or cluster",
    "bus.tls": "files for TLS",
    "bus.tls.ca": "certificates of those who sign",
    "bus.tls.cert": "own certificate",
    "bus.tls.key": "own key",
    "bus.credentials": "file with the credentials",
    "spark.conf.SETTING": "one of them",
    "ATTRIBUTE.type": "the type alone",
    "ATTRIBUTE.unit": "the unit",
    "ATTRIBUTE.optional": "whether it may be missing",
    "ATTRIBUTE.default": "what stands for a missing value, as it would stand in an event",
    "units.UNIT": "what kind of thing it is",
    "groups.GROUP": "its members",
    "containers.CONCEPT": "what it is part of",
    "relationships.RELATIONSHIP": "one, or a list of several between other concepts",
    "parameter.name": "what it is called in the function",
    "parameter.unit": "its unit",
    "measures.MEASURE": "one, or a list of several between other concepts",
    "actions.ACTION": "one thing to do, or a list of several",
    **{f"ACTION.{verb}": f"`{verb}`, and of whom or what" for verb in VERBS},
    "pull.SOURCE.attributes.TARGET": "the column of an attribute",
    "cost.points": "pairs of a value and its cost, joined by straight lines",
    "cost.NAME": "of one level",
    "strategy.TYPE": "its name alone, or with options",
    "values.PROPERTY": "the value that holds in this mode",
    "per_key.KEY": "the bound of this key",
    "functions.FUNCTION": "the short form, `SIGNATURE = EXPRESSION`, or the long one",
}

# What the writer of a file names, by the key it stands under.
_NAMED = {
    "types": "TYPE",
    "events": "TYPE",
    "TYPE": "ATTRIBUTE",
    "concepts": "CONCEPT",
    "CONCEPT": "ATTRIBUTE",
    "groups": "GROUP",
    "containers": "CONCEPT",
    "relationships": "RELATIONSHIP",
    "measures": "MEASURE",
    "actions": "ACTION",
    "units": "UNIT",
    "functions": "FUNCTION",
    "pull": "SOURCE",
    "push": "SOURCE",
    "columns": "ATTRIBUTE",
    "lookup": "NAME",
    "state": "NAME",
    "key": "COLUMN",
    "attributes": "TARGET",
    "keep": "NAME",
    "clients": "CLIENT",
    "dimensions": "DIMENSION",
    "links": "SCOPE",
    "conf": "SETTING",
    "properties": "PROPERTY",
    "need": "PROPERTY",
    "capabilities": "PROPERTY",
    "values": "PROPERTY",
    "per_key": "KEY",
    "strategy": "TYPE",
}


def page() -> str:
    parts = [head("Files", "src/situ/project/schemas.py"), _INTRODUCTION, "## Where things stand\n", _places()]
    for kind, schema in schemas().items():
        parts += [
            anchored(2, code(schema["title"]), kind),
            ABOUT[kind],
            block(EXAMPLES[kind], "yaml"),
            table(["key", "form", "default", "meaning"], _keys(schema, "")),
        ]
    return sections(*parts)


def _places() -> str:
    rows = [[code(file), "read", "the project" if kind == "situ" else kind] for file, kind in FILES.items()]
    rows += [[code(f"{folder}/*.yaml"), "read", folder] for folder in FOLDERS]
    rows += [[code("contexts/*.xml"), "read", "contexts in XML"]]
    rows += [[code("policies/*.dpl"), "read", "[policies](../concepts/situations.md#policies)"]]
    rows += [[code("policies/*.test.yaml"), "read by `situ test`", "tests of policies"]]
    rows += [[code("functions/*.py"), "read", "[functions in Python](../howto/write-functions-in-python.md)"]]
    rows += [[code(f"{OWN_FOLDER}/"), "own", "what runs and editors need; never in git"]]
    return table(["place", "", "what is in it"], rows)


def _keys(schema: Mapping[str, Any], above: str, *, alone: bool = True) -> Iterator[list[str]]:
    """Every key, with the way to it. What the writer names is in capitals.

    Where a value has several forms with keys, ``alone`` is false: what one of them requires, another has not.
    """
    required = schema.get("required", ()) if alone else ()
    for name, form in schema.get("properties", {}).items():
        way = f"{above}{name}"
        form = form if isinstance(form, dict) else {}
        default = "*required*" if name in required else _default(form)
        yield [code(way), _form(form), default, _meaning(form, way)]
        if not _repeats(form, schema):
            yield from _below(form, way)


def _repeats(form: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether it is a list of what stands beside it: alternatives to the one thing that could be there instead."""
    items = form.get("items")
    inner = items.get("properties", {}) if isinstance(items, dict) else {}
    return bool(inner) and all(schema["properties"].get(key) == each for key, each in inner.items())


def _below(form: Mapping[str, Any], way: str) -> Iterator[list[str]]:
    alternatives = _alternatives(form)
    alone = sum("properties" in each for each in alternatives) == 1
    for each in alternatives:
        if each.get("properties"):
            yield from _keys(each, f"{way}.", alone=alone)
        if (
            isinstance(each.get("items"), dict)
            and each["items"].get("properties")
            and each["items"] not in alternatives
        ):
            yield from _keys(each["items"], f"{way}[].", alone=alone)
        named = each.get("additionalProperties")
        if isinstance(named, dict):
            inside = f"{way}.{_NAMED.get(way.split('.')[-1], 'NAME')}"
            if _is_worth_a_row(named):
                yield [code(inside), _form(named), "", _meaning(named, inside)]
            yield from _below(named, inside)


def _is_worth_a_row(form: Mapping[str, Any]) -> bool:
    return "object" not in _types_of(form) or "anyOf" in form


def _alternatives(form: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [form, *(inner for each in form.get("anyOf", ()) for inner in _alternatives(each))]


def _types_of(form: Mapping[str, Any]) -> list[str]:
    types = form.get("type", [])
    return [types] if isinstance(types, str) else list(types)


def _form(form: Mapping[str, Any]) -> str:
    """What may be written, in words."""
    if "anyOf" in form:
        # A reference to the environment is possible everywhere; to say so in every line would hide the rest.
        forms = [_form(each) for each in form["anyOf"] if not _is_reference(each)]
        return " or ".join(dict.fromkeys(forms))
    if "const" in form:
        return code(json.dumps(form["const"]))
    if "enum" in form:
        return " · ".join(code(str(each)) for each in form["enum"])
    examples = f", as {' or '.join(code(str(each)) for each in form['examples'])}" if form.get("examples") else ""
    words = {"string": "text", "object": "keys", "array": "list", "null": ""}
    found = [words.get(each, each) for each in _types_of(form)]
    bounds = f" {form['minimum']:,} to {form['maximum']:,}" if "minimum" in form and "maximum" in form else ""
    return " or ".join(filter(None, found)) + bounds + examples


def _is_reference(form: Mapping[str, Any]) -> bool:
    return form.get("pattern") == r"\$\{"


def _default(form: Mapping[str, Any]) -> str:
    return code(_yaml(form["default"])) if "default" in form else ""


def _yaml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(each)}" for key, each in value.items()) + "}"
    return str(value)


def _meaning(form: Mapping[str, Any], way: str) -> str:
    text = form.get("description") or _MEANINGS.get(way) or _MEANINGS.get(".".join(way.split(".")[-2:]))
    if not text:
        raise ValueError(f"nothing says what `{way}` means")
    return str(text).replace("|", "&#124;").replace("[", "\\[")
