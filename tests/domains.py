"""Two domains to write policies about, people in a building and dangerous goods on the road, and their policies."""

from __future__ import annotations

from collections.abc import Iterable

from situ.lang.documents import parse_yaml
from situ.lang.expr.definitions import load_functions
from situ.lang.problems import Problem, Problems, SituError
from situ.lang.types.resolve import load_types
from situ.policies.check.domain import Domain
from situ.policies.check.policy import check_policy
from situ.policies.language.parse import parse_policy
from situ.policies.model import Policy
from situ.policies.ontology.load import load_ontology
from situ.policies.ontology.model import ConceptAttribute

BUILDING = """
version: 1
concepts:
  person: {id: string, status: string, position: Point m, speed: double m/s, pace: double m/s, host: string, desk: Point m}
  visitor(person): {badge: string}
  robot: {id: string, position: Point m, load: double kg}
  room: {id: string, security: string, area: Box m, floor: string}
  door: {id: string, open: boolean, position: Point m, room: string}
groups: {mobile: [person, robot]}
relationships:
  inside: {between: [person.position, room.area], function: inside}
  within: {between: [person.position, person.position], function: within, parameter: {name: distance, unit: m}, symmetric: true}
  near: {between: [person.position, robot.position], function: within, parameter: {name: distance, unit: m}, symmetric: true}
  close: {between: [mobile.position, mobile.position], function: within, parameter: {name: distance, unit: m}, symmetric: true}
  leads: {between: [door.room, room.id], function: "="}
  at-desk-of: {between: [person.position, person.desk], function: within, parameter: {name: distance, unit: m}}
  visits: {between: [person.host, person.id], function: "="}
measures:
  distance: {between: [person.position, person.position], function: distance, unit: m}
  gap: {between: [person.position, robot.position], function: distance, unit: m}
"""  # noqa: E501
BUILDING_FED = ("person.position", "person.speed", "person.pace", "robot.position", "door.open")

UNACCOMPANIED_GUEST = """policy unaccompanied-guest
window 5 s
concepts
  person A (status = 'guest')
  person B (status = 'employee')
  room   R (security = 'restricted')
conditions
  A is inside R
  A is not within 5 m of B or B is not inside R
actions
  raise alarm
"""

LOGISTICS = """
version: 1
concepts:
  substance: {id: string, dangerous: string, class: int, truck: string, position: Point m}
  truck: {id: string, driver: string}
relationships:
  inside: {between: [substance.truck, truck.id], function: "="}
measures:
  distance: {between: [substance.position, substance.position], function: distance, unit: m}
  minimumDistance: {between: [substance.class, substance.class], function: apart, unit: m}
"""
LOGISTICS_FUNCTIONS = """
version: 1
functions:
  apart: "(a: int, b: int) -> double m = CASE WHEN a = b THEN 0 m WHEN a + b > 4 THEN 5 m ELSE 2 m END"
"""
LOGISTICS_FED = ("substance.truck", "substance.position")

DANGEROUS_GOODS = """policy dangerous-goods
window 10 s
consumption all
concepts
  truck     T
  substance A (dangerous = 'yes')
  substance B (dangerous = 'yes')
conditions
  A is inside T
  B is inside T
  distance(A, B) < minimumDistance(A, B)
actions
  notify headquarters
"""


def domain(ontology: str, fed: Iterable[str], functions: str = "", types: str = "") -> Domain:
    problems = Problems()
    known = load_types([parse_yaml(types, "types.yaml")] if types else [], problems)
    declared = [parse_yaml(functions, "functions.yaml")] if functions else []
    defined = load_functions(declared, known, problems)
    loaded = load_ontology([parse_yaml(ontology, "ontology.yaml")], known, defined.callable, problems)
    problems.raise_errors()
    ends = frozenset(
        ConceptAttribute(concept=concept, attribute=name) for concept, name in (each.split(".") for each in fed)
    )
    return Domain(ontology=loaded, fed=ends, types=known)


def building() -> Domain:
    return domain(BUILDING, BUILDING_FED)


def logistics() -> Domain:
    return domain(LOGISTICS, LOGISTICS_FED, LOGISTICS_FUNCTIONS)


def checked(text: str, within: Domain) -> tuple[Policy | None, tuple[Problem, ...]]:
    """The policy, if it is one, and all that was found."""
    problems = Problems()
    try:
        written = parse_policy(text, "p.dpl")
    except SituError as error:
        return None, error.problems
    return check_policy(written, within, problems, name="p"), problems.sorted()


def policy(text: str, within: Domain) -> Policy:
    """The policy; it has no errors."""
    found, problems = checked(text, within)
    if found is None:
        raise SituError(*problems)
    return found


def conditions(*lines: str, concepts: str = "person A\nperson B\nroom R", options: str = "") -> str:
    """A policy with these conditions."""
    said = "\n".join(f"  {line}" for line in lines)
    return f"{options}\nconcepts\n{concepts}\nconditions\n{said}\nactions\n  raise alarm\n"
