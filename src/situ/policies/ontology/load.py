"""``ontology.yaml`` → the ontology, or everything that is wrong with it.

Generalisation, groups and containers are there for whoever writes it; behind this module there are concepts,
relationships and measures only. The canonical form of what was written travels along, so that a deployment can hold an
ontology, compare it part by part, and make the same one again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from situ.lang.documents import Document, parse_json
from situ.lang.expr.faults import NO_FAULTS, Faults
from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.expr.scope import Definition
from situ.lang.problems import Problems
from situ.lang.records import replace
from situ.lang.types.model import Attribute, format_attribute
from situ.lang.types.table import Types
from situ.policies.ontology.declare import ONTOLOGY_KEYS, OntologyText, RelationshipText, declare_ontology
from situ.policies.ontology.model import ConceptTable, Ontology, make_concepts
from situ.policies.ontology.relationships import RelationshipBuilder

_NO_FUNCTIONS: Mapping[str, Definition] = MappingProxyType({})


def load_ontology(
    documents: Iterable[Document],
    types: Types,
    functions: Mapping[str, Definition],
    problems: Problems,
    *,
    limits: ExpressionLimits = DEFAULT_LIMITS,
    faults: Faults = NO_FAULTS,
) -> Ontology:
    """Read and check what all these documents declare together; what is wrong is reported and left out.

    ``functions`` are those of the project that expressions can call.
    """
    text = declare_ontology(documents, problems)
    concepts = make_concepts(text, types, problems, faults)
    relating = RelationshipBuilder(concepts, types, functions, problems, limits=limits, faults=faults)
    return Ontology(
        concepts=concepts.by_name,
        relationships=MappingProxyType(relating.relationships(text.relationships)),
        measures=MappingProxyType(relating.measures(text.measures)),
        containers=concepts.containers,
        declared=MappingProxyType(_declared(text, concepts)),
    )


def ontology_as_json(ontology: Ontology) -> dict[str, Any]:
    """The ontology as it is written, section by section and name by name; equal ones give equal values."""
    return {section: dict(ontology.declared.get(section, {})) for section in ONTOLOGY_KEYS}


def ontology_from_json(
    value: Any,
    types: Types,
    functions: Mapping[str, Definition] = _NO_FUNCTIONS,
    limits: ExpressionLimits = DEFAULT_LIMITS,
) -> Ontology:
    """The ontology that :func:`ontology_as_json` gave; ValueError for what it cannot have given."""
    problems = Problems()
    try:
        document = ontology_document(value, "ontology.yaml")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"this is no ontology: {error!r}") from error
    ontology = load_ontology([document], types, functions, problems, limits=limits)
    if problems.errors:
        raise ValueError("; ".join(map(str, problems.errors)))
    return _without_places(ontology)


def ontology_document(value: Mapping[str, Mapping[str, Any]], file: str) -> Document:
    """What :func:`ontology_as_json` gave, or a part of it, as a file declares it."""
    return parse_json(json.dumps(ontology_as_file(value), ensure_ascii=False, indent=1), file)


def ontology_as_file(value: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The sections as people write them: ``visitor(person)`` with its attributes, one relationship without a list."""
    result: dict[str, Any] = {}
    for section in ONTOLOGY_KEYS:
        entries = value.get(section, {})
        if section == "concepts":
            result[section] = {_head(name, body): dict(body["attributes"]) for name, body in entries.items()}
        elif section in ("relationships", "measures"):
            result[section] = {name: body[0] if len(body) == 1 else body for name, body in entries.items()}
        else:
            result[section] = dict(entries)
    return {section: entries for section, entries in result.items() if entries}


def _head(name: str, body: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(body['supers'])})" if body.get("supers") else name


def _without_places(ontology: Ontology) -> Ontology:
    """Places in what was written by a program are no places in any file."""
    return replace(
        ontology,
        concepts=MappingProxyType({name: replace(each, location=None) for name, each in ontology.concepts.items()}),
        relationships=MappingProxyType(
            {name: tuple(replace(each, location=None) for each in of) for name, of in ontology.relationships.items()}
        ),
        measures=MappingProxyType(
            {name: tuple(replace(each, location=None) for each in of) for name, of in ontology.measures.items()}
        ),
    )


# ── what was written, in one form ─────────────────────────────────────────────────────────────────


def _declared(text: OntologyText, concepts: ConceptTable) -> dict[str, dict[str, Any]]:
    related: dict[str, dict[str, Any]] = {"relationships": {}, "measures": {}}
    for section, texts in (("relationships", text.relationships), ("measures", text.measures)):
        for each in texts:
            related[section].setdefault(each.name, []).append(_related(each))
    sections: dict[str, dict[str, Any]] = {
        "concepts": {name: _concept(text, concepts, name) for name in sorted(text.concepts)},
        "groups": {name: [member.text for member in text.groups[name].members] for name in sorted(text.groups)},
        "containers": {name: text.containers[name].container.text for name in sorted(text.containers)},
        **{section: dict(sorted(entries.items())) for section, entries in related.items()},
    }
    return {section: entries for section, entries in sections.items() if entries}


def _concept(text: OntologyText, concepts: ConceptTable, name: str) -> dict[str, Any]:
    # A list: attributes keep the order in which they are written.
    body: dict[str, Any] = {"attributes": [[each.name, _attribute(each)] for each in concepts.own[name]]}
    if text.concepts[name].supers:
        body["supers"] = [each.name for each in text.concepts[name].supers]
    return body


def _attribute(attribute: Attribute) -> str:
    return format_attribute(replace(attribute, optional=False))


def _related(text: RelationshipText) -> dict[str, Any]:
    body: dict[str, Any] = {"between": [each.text for each in text.ends], "function": text.function.text}
    if text.parameter is not None:
        body["parameter"] = {"name": text.parameter.name.text}
        if text.parameter.unit is not None:
            body["parameter"]["unit"] = text.parameter.unit.text
    if text.symmetric:
        body["symmetric"] = True
    if text.unit is not None:
        body["unit"] = text.unit.text
    return body
