"""Ontologies from the text of files, for tests."""

from __future__ import annotations

from textwrap import dedent

from situ.lang.documents import parse_yaml
from situ.lang.expr.definitions import Functions, load_functions
from situ.lang.problems import Problem, Problems
from situ.lang.types.table import Types
from situ.policies.ontology.load import load_ontology
from situ.policies.ontology.model import Ontology
from tests.types_files import types_of

NO_TYPES = types_of("types: {}")

BUILDING = """
    concepts:
      person: {id: string, status: string, position: Point m}
      room: {id: string, security: string, area: Box m}
      visitor(person): {host: string}
    relationships:
      inside: {between: [person.position, room.area], function: inside}
      within:
        between: [person.position, person.position]
        function: within
        parameter: {name: distance, unit: m}
        symmetric: true
    measures:
      distance: {between: [person.position, person.position], function: distance, unit: m}
"""
"""The domain of the security policy."""


def functions_of(text: str, types: Types = NO_TYPES) -> Functions:
    problems = Problems()
    functions = load_functions([parse_yaml(dedent(text), "functions/a.yaml")], types, problems)
    assert not list(problems), "\n".join(map(str, problems))
    return functions


def load(text: str, *, types: Types = NO_TYPES, functions: str = "") -> tuple[Ontology, tuple[Problem, ...]]:
    """The ontology of a file with this text, and the problems in order of place."""
    problems = Problems()
    known = functions_of(functions, types).callable if functions else {}
    document = parse_yaml(dedent(text), "ontology.yaml")
    return load_ontology([document], types, known, problems), problems.sorted()


def ontology_of(text: str = BUILDING, *, types: Types = NO_TYPES, functions: str = "") -> Ontology:
    """The ontology of a file in which nothing is wrong."""
    ontology, problems = load(text, types=types, functions=functions)
    assert not problems, "\n".join(map(str, problems))
    return ontology


def faults(text: str, *, types: Types = NO_TYPES, functions: str = "") -> list[str]:
    """What is wrong in the file: line, column and code."""
    found = load(text, types=types, functions=functions)[1]
    return [f"{each.location.line}:{each.location.column} {each.code.code}" for each in found if each.location]
