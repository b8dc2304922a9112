"""JSON Schemas for editors: they accept what the loaders accept, and know the same keys."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from situ.lang.documents import parse_yaml, to_data
from situ.project.check import check_folder
from situ.project.create import example_folder
from situ.project.folder import KINDS, POLICY, kind_of
from situ.project.schemas import schemas, write_schemas
from situ.settings import Settings, settings_as_json
from tests.project_files import MINIMAL, write
from tests.unit.model.test_deployment import FILES
from tests.unit.settings.test_model import DOCUMENTED

SCHEMAS = schemas()
FOLDERS = {
    "situ": "situ.yaml",
    "types": "types/a.yaml",
    "functions": "functions/a.yaml",
    "sources": "sources/a.yaml",
    "contexts": "contexts/a.yaml",
    "clients": "clients/a.yaml",
    "quality": "quality/a.yaml",
}


def complaints(kind: str, text: str) -> list[str]:
    root = parse_yaml(text, "file.yaml").root
    assert root is not None
    validator = jsonschema.Draft202012Validator(SCHEMAS[kind])
    return [error.message for error in validator.iter_errors(to_data(root))]


def test_there_is_a_schema_for_every_kind_of_file() -> None:
    assert tuple(SCHEMAS) == KINDS
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert json.loads(json.dumps(schema)) == schema


def test_the_example_and_the_reference_are_valid() -> None:
    source = example_folder()
    for file in check_folder(source, {}).files:
        kind = kind_of(file)
        assert kind is not None
        if kind == POLICY:
            continue  # it has a language of its own
        assert complaints(kind, (source / file).read_text()) == [], file
    assert complaints("situ", DOCUMENTED) == []
    assert jsonschema.Draft202012Validator(SCHEMAS["situ"]).is_valid(settings_as_json(Settings(name="x")))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("situ", "name: x\nbus: {nats: [nats://a], tls: {ca: x}}\n"),
        ("situ", "name: x\nbus: ${BUS}\nbatch:\n  events: ${EVENTS}\n"),
        ("situ", "name: x\nbus: {nats: [nats://a]}\nspark: {conf: {spark.x: true}}\n"),
        (
            "ontology",
            "concepts: {a: {id: string}, b(a): }\nrelationships: {r: [{between: [a.id, b.id], function: =}]}\n",
        ),
        ("sources", "push: {s: {event: E, concept: c, id: a, attribute: b, value: c.d, keep: last 1 min}}\n"),
        ("sources", "pull: {s: {xml: a, rows: //b, columns: {c: {type: Box m, xpath: d}}, concept: e, key: c}}\n"),
        ("actions", "actions: {raise alarm: {log: a}, b: [{log: c}]}\nopposed: [[raise alarm, b]]\n"),
        ("types", "version: 1\ntypes:\nevents: {A(B): }\nunits: {EUR: currency}\n"),
        ("types", "types: {A: {x: {type: [B], unit: m, optional: true, default: {y: 1}}, z: [A]}}\n"),
        ("functions", "functions: {f: 'a -> b = c', g: {signature: a -> b, expr: c}}\n"),
        ("sources", "pull:\n"),
        ("sources", "pull: {s: {csv: a, columns: {a: int, b: {type: int, default: 1}}, key: a, max_age: 1 min}}\n"),
        ("sources", "pull: {s: {sql: t, url: '${DB}', columns: {a: string, t: date}, key: [a], as_of: t}}\n"),
        (
            "contexts",
            "context: a.b\nextends: a\nderive: true\nrules: [A -> f]\nmaps:\nfunctions:\ntypes: {A: {x: int}}\n",
        ),
        ("contexts", "context: a\nrules: {out: ['A.b[] -> f'], in: }\nmaps: [{both: A <-> B, attributes: {x: y.z}}]\n"),
        ("contexts", "context: a\nmaps: [{in: A -> B, attributes: {x: {expr: a}, y.z: {default: [1]}}}]\n"),
        (
            "contexts",
            "context: a\nfunctions: {f: a -> b = c, g: {signature: a -> b, expr: c, missing: null, time: now}}\n",
        ),
        (
            "contexts",
            "context: a\nfunctions: {f: {signature: a -> b, lookup: {l: {source: s, key: {c: value}}}, value: l.d}}\n",
        ),
        ("clients", "clients: {a: {context: acme.us}}\n"),
        ("quality", "properties: {noise: {range: [0, null], unit: dB, improve: minimise, quantum: 1}}\n"),
        ("quality", "expectations: [{subscription: a/b, id: E, need: {rate: {lb: 5/min, keep: last}}, from: 2}]\n"),
        ("quality", "expectations: [{subscription: a/b, any_of: [{id: E, need: {imprecision of t: {ub: 1}}}]}]\n"),
        ("quality", "profiles: [{publisher: p, type: T, mode: a, modes: [{name: a, values: {rate: 2}, cost: 1}]}]\n"),
        ("quality", "profiles: [{publisher: p, type: T, capabilities: {trust: {cv: low, cost: {low: 1}}}}]\n"),
        ("quality", "actions: [{property: rate, direction: down, sequence: [thin]}]\nstrategy: {default: pareto}\n"),
        ("clients", "clients: {a: , b: {}, c: {subscriptions: {s: {types: [A], where: x, durable: false}}}}\n"),
    ],
)
def test_forms_that_are_accepted(kind: str, text: str) -> None:
    assert complaints(kind, text) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("situ", "zone: x\n"),
        ("situ", "name: x\nnmae: y\n"),
        ("situ", "name: a b\n"),
        ("situ", "name: x\nengine: flink\n"),
        ("situ", "name: x\nbatch: {events: 0}\n"),
        ("situ", "name: x\nlog: {age: 5}\n"),
        ("situ", "name: x\nlog: {size: 5 m}\n"),
        ("situ", "name: x\nspark: {conf: {x: 1}}\n"),
        ("situ", "name: x\nversion: 2\n"),
        ("situ", "name: x\nbus: {nast: []}\n"),
        ("types", "type: {}\n"),
        ("types", "types: {A: {x: 5}}\n"),
        ("types", "types: {A: {x: {unit: m}}}\n"),
        ("types", "types: {A: {1x: int}}\n"),
        ("functions", "functions: {f: {signature: a -> b}}\n"),
        ("functions", "functions: {f: {signature: a -> b, expr: c, time: now}}\n"),
        ("functions", "functions: {f: value * 2}\n"),
        ("sources", "pushes: {}\n"),
        ("sources", "pull: {s: {columns: {a: int}}}\n"),
        ("sources", "pull: {s: {csv: a, parquet: b, columns: {a: int}}}\n"),
        ("sources", "pull: {s: {csv: a}}\n"),
        ("sources", "pull: {s: {csv: a, columns: {}}}\n"),
        ("sources", "pull: {s: {csv: a, columns: {a: int}, key: []}}\n"),
        ("sources", "pull: {s: {csv: a, columns: {a: int}, max_age: 5}}\n"),
        ("sources", "pull: {1s: {csv: a, columns: {a: int}}}\n"),
        ("clients", "clients: {a b: {}}\n"),
        ("quality", "expectation: []\n"),
        ("quality", "properties: {noise: {rnage: [0, 1]}}\n"),
        ("quality", "properties: {noise: {levels: [a]}}\n"),
        ("quality", "expectations: [{id: E}]\n"),
        ("quality", "expectations: [{subscription: a/b, id: E, utility: -1}]\n"),
        ("quality", "expectations: [{subscription: a/b, any_of: [{id: E, from: 0}]}]\n"),
        ("quality", "profiles: [{publisher: p}]\n"),
        ("quality", "profiles: [{publisher: p, type: T, capabilities: {rate: {lb: 1}}}]\n"),
        ("quality", "actions: [{property: rate, direction: sideways, action: thin}]\n"),
        ("quality", "strategy: {default: {lambda: 2}}\n"),
        ("clients", "clients: {a: {context: Us}}\n"),
        ("contexts", "extends: root\n"),
        ("contexts", "context: Us\n"),
        ("contexts", "context: us\nrule: []\n"),
        ("contexts", "context: us\nrules: {both: []}\n"),
        ("contexts", "context: us\nrules: [A]\n"),
        ("contexts", "context: us\nmaps: [{out: A}]\n"),
        ("contexts", "context: us\nmaps: [{attributes: {}}]\n"),
        ("contexts", "context: us\nfunctions: {f: value * 2}\n"),
        ("contexts", "context: us\nfunctions: {f: {expr: value}}\n"),
        ("contexts", "context: us\nfunctions: {f: {signature: int -> int, expr: value, nulls: maybe}}\n"),
        (
            "contexts",
            "context: us\nfunctions: {f: {signature: int -> int, expr: s.a, state: {s: {event: E, keep: {}}}}}\n",
        ),
        ("clients", "clients: {a: {subscriptions: {s: {where: x}}}}\n"),
        ("clients", "clients: {a: {subscriptions: {s: {types: []}}}}\n"),
        ("clients", "clients: {a: {advertisements: {s: {type: [A]}}}}\n"),
    ],
)
def test_mistakes_that_editors_mark_are_mistakes(kind: str, text: str, tmp_path: Path) -> None:
    assert complaints(kind, text) != []
    checked = check_folder(write(tmp_path, {**MINIMAL, FOLDERS[kind]: text}), {})
    assert checked.deployment is None


def test_every_key_of_a_schema_is_known_to_the_loader_and_the_other_way_round(tmp_path: Path) -> None:
    """What a loader calls an unknown key lists all that it knows: the very keys of the schema."""
    sections: dict[str, tuple[str, Any]] = {
        "situ": ("zzz: 1", SCHEMAS["situ"]),
        "types": ("zzz: 1", SCHEMAS["types"]),
        "functions": ("functions: {f: {zzz: 1}}", _below(SCHEMAS["functions"], "functions", 1)),
        "sources": ("pull: {s: {zzz: 1}}", _below(SCHEMAS["sources"], "pull")),
        "contexts": ("context: a\nzzz: 1", SCHEMAS["contexts"]),
        "clients": ("clients: {a: {zzz: 1}}", _below(SCHEMAS["clients"], "clients")),
        "quality": ("properties: {a: {zzz: 1}}", _below(SCHEMAS["quality"], "properties")),
    }
    for kind, (text, schema) in sections.items():
        checked = check_folder(write(tmp_path / kind, {**MINIMAL, FOLDERS[kind]: text}), {})
        known = next(problem.values["known"] for problem in checked.problems if problem.code.code == "P103")
        assert set(known) == set(schema["properties"]), kind
    assert set(SCHEMAS["situ"]["properties"]) == {"version", *(each.name for each in fields(Settings))}


def _below(schema: dict[str, Any], key: str, form: int | None = None) -> dict[str, Any]:
    value: dict[str, Any] = schema["properties"][key]["additionalProperties"]
    return value if form is None else value["anyOf"][form]


def test_every_setting_says_what_it_is_for() -> None:
    def walk(schema: dict[str, Any], path: str) -> list[str]:
        missing = []
        for key, form in schema.get("properties", {}).items():
            if not form.get("description"):
                missing.append(f"{path}{key}")
            missing += walk(form, f"{path}{key}.")
        return missing

    assert walk(SCHEMAS["situ"], "") == []


def test_files_are_written_where_the_first_lines_of_files_look(tmp_path: Path) -> None:
    written = write_schemas(tmp_path)
    assert [file.relative_to(tmp_path).as_posix() for file in written] == [
        f".situ/schemas/{kind}.json" for kind in KINDS
    ]
    assert json.loads(written[0].read_text()) == SCHEMAS["situ"]
    assert write_schemas(tmp_path) == written


def test_declared_files_of_other_tests_are_valid() -> None:
    for file, text in FILES.items():
        kind = kind_of(file)
        assert kind is not None
        assert complaints(kind, "\n".join(line[8:] for line in text.splitlines())) == []
