"""The page of all explanations as JSON, and their JSON Schemas, from the structs that are their JSON form."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from reference.markdown import anchored, code, head, sections, table
from situ.explain.context import ContextExplanation
from situ.explain.event import EventExplanation
from situ.explain.expression import ExpressionExplanation
from situ.explain.functions import FunctionExplanation
from situ.explain.fused_transform import FusedExplanation
from situ.explain.match_report import DetectionExplanation, MissExplanation
from situ.explain.policy import PolicyExplanation
from situ.explain.subscription import SubscriptionExplanation
from situ.explain.transform import TransformExplanation
from situ.explain.transform_why import FilterExplanation, RuleExplanation
from situ.explain.types import CodeExplanation, TypeExplanation
from situ.lang.json_form import Explanation, json_fields
from situ.lang.problems import Problem, Severity
from situ.lang.tags import TagSet
from situ.quality.explanation.model import ExpectationExplanation, PublisherExplanation
from situ.stages.explain_visibility import EventVisibilityExplanation, OneSideExplanation

SCHEMAS = "reference/explanations.schema.json"

COMMANDS: Mapping[str, tuple[Any, bool]] = {
    "situ explain types": (TypeExplanation, True),
    "situ explain types TYPE": (TypeExplanation, False),
    "situ explain expression TEXT": (ExpressionExplanation, False),
    "situ explain functions": (FunctionExplanation, True),
    "situ explain subscription CLIENT/NAME": (SubscriptionExplanation, False),
    "situ explain event EVENT": (EventExplanation, False),
    "situ explain visibility EVENT --to CLIENT/NAME": (EventVisibilityExplanation | OneSideExplanation, False),
    "situ explain quality EXPECTATION": (ExpectationExplanation, False),
    "situ explain quality --publisher CLIENT": (PublisherExplanation, False),
    "situ explain context CONTEXT": (ContextExplanation, False),
    "situ explain transform --context CONTEXT": (TransformExplanation, False),
    "situ explain transform --context CONTEXT --why ATTRIBUTE": (RuleExplanation, False),
    "situ explain transform --context CONTEXT --filter TEXT": (FilterExplanation, False),
    "situ explain transform --fused FROM TO": (FusedExplanation, True),
    "situ explain transform --fused FROM TO --in TYPE": (FusedExplanation, False),
    "situ explain policy NAME": (PolicyExplanation, False),
    "situ explain detection ID": (DetectionExplanation, False),
    "situ explain miss --policy NAME --at TIME": (MissExplanation, False),
    "situ explain code": (CodeExplanation, True),
    "situ explain code CODE": (CodeExplanation, False),
}
"""Each command with what it answers with ``--json``, and whether with a list of it."""

_INTRODUCTION = """\
What `situ explain … --json` answers with. Every explanation is one JSON object, or a list of them. Keys are always
there unless the table says otherwise; what does not apply is null. An answer that is refused is an object with the
key `problems`.

[explanations.schema.json](explanations.schema.json) has the same as JSON Schema: an entry of `$defs` for each object
below.
"""

_PROBLEM = {
    "code": "string",
    "severity": {"enum": [each.value for each in Severity]},
    "message": "string",
    "hint": "string",
    "file": ["string", "null"],
    "line": ["integer", "null"],
    "column": ["integer", "null"],
}
_PLAIN: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def page() -> str:
    structs = list(_structs())
    return sections(
        head("Explanations", "the structs of src/situ/explain/"),
        _INTRODUCTION,
        table(["command", "answers with"], ([code(command), _answer(*each)] for command, each in COMMANDS.items())),
        *(_section(each) for each in structs),
        anchored(2, "Problem", "Problem"),
        "What is wrong, where, and what to do about it. `file`, `line` and `column` may be null, and so may `cause`: "
        "another problem, from which this one comes. [Errors](errors.md) lists all codes.\n",
        table(["key", "type"], ([code(name), _shown_problem(each)] for name, each in _PROBLEM.items())),
    )


def schemas() -> str:
    """All schemas in one document, as the text of a file."""
    definitions = {each.__name__: _object(each) for each in _structs()}
    problem = {name: each if isinstance(each, dict) else {"type": each} for name, each in _PROBLEM.items()}
    problem["cause"] = {"anyOf": [{"$ref": "#/$defs/Problem"}, {"type": "null"}]}
    definitions["Problem"] = _closed(problem, list(problem))
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _structs() -> Iterator[type[Explanation]]:
    """Those that commands answer with, each before the parts it has."""
    waiting = list(dict.fromkeys(part for each, _ in COMMANDS.values() for part in _parts(each)))
    seen: set[type] = set()
    while waiting:
        each = waiting.pop(0)
        if each in seen:
            continue
        seen.add(each)
        yield each
        inside = [part for field in json_fields(each) for part in _parts(field.type)]
        waiting = [*dict.fromkeys(inside), *waiting]


def _parts(annotation: Any) -> Iterator[type[Explanation]]:
    if isinstance(annotation, type) and issubclass(annotation, Explanation):
        yield annotation
    for each in get_args(annotation):
        yield from _parts(each)


# ── JSON Schema ──


def _object(struct: type[Explanation]) -> dict[str, Any]:
    fields = json_fields(struct)
    said = _said(struct)
    properties = {}
    for field in fields:
        about = {"description": said[field.name]} if field.name in said else {}
        properties[field.encode_name] = {**_schema(field.type), **about}
    required = [field.encode_name for field in fields if not _may_be_left_out(struct, field)]
    return {"description": inspect.getdoc(struct), **_closed(properties, required)}


def _closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _may_be_left_out(struct: type[Explanation], field: msgspec.structs.FieldInfo) -> bool:
    return msgspec.UnsetType in get_args(field.type) or (struct.__struct_config__.omit_defaults and not field.required)


def _schema(annotation: Any) -> dict[str, Any]:
    if annotation is Any:
        return {}
    if annotation is Problem or (isinstance(annotation, type) and issubclass(annotation, Explanation)):
        return {"$ref": f"#/$defs/{annotation.__name__}"}
    if annotation in _PLAIN:
        return {"type": _PLAIN[annotation]}
    if annotation is TagSet:
        return _schema(Mapping[str, str])
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return {"enum": [each.value for each in annotation]}
    origin, inside = get_origin(annotation), [each for each in get_args(annotation) if each is not msgspec.UnsetType]
    if origin is Literal:
        return {"enum": inside}
    if origin in (Union, types.UnionType):
        return _schema(inside[0]) if len(inside) == 1 else {"anyOf": [_schema(each) for each in inside]}
    if origin is frozenset or (origin is tuple and inside[1:] == [...]):
        return {"type": "array", "items": _schema(inside[0])}
    if issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(inside[1])}
    raise TypeError(f"no JSON Schema for {annotation}")


# ── the page ──


def _answer(annotation: Any, several: bool) -> str:
    return f"a list of {_shown(annotation)}" if several else _shown(annotation)


def _link(struct: type) -> str:
    return f"[{struct.__name__}](#{struct.__name__})"


def _section(struct: type[Explanation]) -> str:
    said = _said(struct)
    rows = []
    for field in json_fields(struct):
        absent = "may be left out" if _may_be_left_out(struct, field) else ""
        about = " ".join(filter(None, (said.get(field.name, ""), absent and f"*{absent}*")))
        rows.append([code(field.encode_name), _shown(field.type), about])
    return sections(
        anchored(2, struct.__name__, struct.__name__),
        inspect.getdoc(struct) or "",
        table(["key", "type", "meaning"], rows),
    )


def _shown(annotation: Any) -> str:
    if annotation is Any:
        return "any"
    if annotation is Problem or (isinstance(annotation, type) and issubclass(annotation, Explanation)):
        return _link(annotation)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if annotation is TagSet:
        return _shown(Mapping[str, str])
    if isinstance(annotation, type):
        return " or ".join(f'"{each.value}"' for each in annotation)
    origin, inside = get_origin(annotation), [each for each in get_args(annotation) if each is not msgspec.UnsetType]
    if origin is Literal:
        return " or ".join(f'"{each}"' for each in inside)
    if origin in (tuple, frozenset):
        return f"list of {_shown(inside[0])}"
    if origin in (Union, types.UnionType):
        return " or ".join(map(_shown, inside))
    return f"object: {_shown(inside[1])} by name"


def _shown_problem(of: Any) -> str:
    return (
        " or ".join(f'"{each}"' for each in of["enum"])
        if isinstance(of, dict)
        else " or ".join([of] if isinstance(of, str) else of)
    )


def _said(struct: type[Explanation]) -> dict[str, str]:
    """What stands below fields in the source."""
    above = struct.__base__
    found = _said(above) if issubclass(above, Explanation) else {}
    [body] = ast.parse(textwrap.dedent(inspect.getsource(struct))).body
    assert isinstance(body, ast.ClassDef)
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(field.target, ast.Name)
            found[field.target.id] = inspect.cleandoc(text.value.value)
    return found
