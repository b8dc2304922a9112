"""The security policy and rows for it: guests and employees on their way through a building.

People go in groups of three, two guests and an employee, from room to room; a room takes about twenty people, every
fifth room is restricted. Everyone is seen once a second. In every two hundredth group the employee stays away. Rows of
leaves are made here as enrichment makes them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from situ.lang.documents import parse_yaml
from situ.lang.problems import Problems
from situ.lang.types.table import Types
from situ.policies.check.domain import Domain
from situ.policies.check.policy import check_policy
from situ.policies.enrichment.rows import BASE, row_schema
from situ.policies.language.parse import parse_policy
from situ.policies.ontology.load import load_ontology
from situ.policies.ontology.model import ConceptAttribute
from situ.policies.plan import Leaf, PolicyPlan, plan_policy

SECOND = 1_000_000
ONTOLOGY = """
concepts:
  person: {id: string, status: string, position: Point m}
  room: {id: string, security: string, area: Box m}
relationships:
  inside: {between: [person.position, room.area], function: inside}
  within:
    between: [person.position, person.position]
    function: within
    parameter: {name: distance, unit: m}
    symmetric: true
"""
_POLICY = """
policy {name}
window {window} s
concepts
  person A (status = '{guest}')
  person B (status = '{employee}')
  room R (security = 'restricted')
conditions
  A is inside R
  A is not within 5 m of B or B is not inside R
actions
  raise alarm
"""
_GROUP, _ROOM, _LONELY = 3, 20, 200


def domain() -> Domain:
    problems = Problems()
    ontology = load_ontology([parse_yaml(ONTOLOGY, "ontology.yaml")], Types(types={}, events=frozenset()), {}, problems)
    problems.raise_errors()
    types = Types(types={}, events=frozenset())
    return Domain(
        ontology=ontology, fed=frozenset({ConceptAttribute(concept="person", attribute="position")}), types=types
    )


def security_plan(
    of: Domain, *, name: str = "alone", window: int = 5, guest: str = "guest", employee: str = "employee"
) -> PolicyPlan:
    """The plan of the security policy."""
    problems = Problems()
    text = parse_policy(_POLICY.format(name=name, window=window, guest=guest, employee=employee), "policy.dpl")
    policy = check_policy(text, of, problems)
    problems.raise_errors()
    assert policy is not None
    return plan_policy(policy, of.ontology)


class Building:
    """People on their way. Events are numbered; each has its person, instant and place."""

    def __init__(self, people: int, seed: int = 7) -> None:
        dice = np.random.default_rng(seed)
        self.people = people
        self.rooms = max(5, people // _ROOM)
        self._order = dice.permutation(people)
        self._phases = np.sort(dice.integers(0, SECOND, people))
        self._hops = dice.integers(0, 10_000, people)
        self._names = pa.array([f"person {number}" for number in range(people)])
        self._rooms = pa.array([f"room {number}" for number in range(self.rooms)])

    def rows(self, plan: PolicyPlan, start: int, count: int) -> dict[Leaf, pa.RecordBatch]:
        """The rows of all leaves of the security policy for events from ``start`` on."""
        events = np.arange(start, start + count)
        seconds, places = np.divmod(events, self.people)
        who = self._order[places]
        times = seconds * SECOND + self._phases[places]
        guests = who % _GROUP > 0
        rooms, x, y = self._where(who, seconds)
        inside = rooms % 5 == 0
        found = {}
        for each in plan.leaves:
            leaf = each.leaf
            guest = "guest" in repr(leaf.constraint)
            seen = (guests if guest else ~guests) & (inside if leaf.other else True)
            rows = np.flatnonzero(seen)
            values = [x[rows], y[rows]] if leaf.scalars else [self._rooms.take(pa.array(rooms[rows]))]
            found[leaf] = self._batch(leaf, events[rows], times[rows], who[rows], values)
        return found

    def time(self, event: int) -> int:
        return (event // self.people) * SECOND + int(self._phases[event % self.people])

    def _where(
        self, who: npt.NDArray[np.int64], seconds: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        group = who // _GROUP
        lonely = group % _LONELY == 0
        away = lonely & (who % _GROUP == 0)
        hops = self._hops[group] + (seconds + self._hops[group]) // 30
        rooms = (hops * 7919 + group + away) % self.rooms
        step = who % _GROUP
        corner = np.where(lonely, 15.0, 0.0)  # where the employees of other groups do not go
        x = 30.0 * (rooms % 100) + 3 + (hops % 4) + 0.4 * step + corner
        y = 30.0 * (rooms // 100) + 3 + (group % 4) + 0.3 * step + corner
        return rooms, x, y

    def _batch(
        self,
        leaf: Leaf,
        events: npt.NDArray[np.int64],
        times: npt.NDArray[np.int64],
        who: npt.NDArray[np.int64],
        values: list[object],
    ) -> pa.RecordBatch:
        count = len(events)
        base = {
            "time": pa.array(times),
            "source": pa.repeat("reader", count),
            "id": pa.array(events).cast(pa.string()),
            "push": pa.repeat("seen", count),
            "pos": pa.array(events),
            "identity": self._names.take(pa.array(who)),
        }
        columns = [*(base[name] for name in BASE.names), *map(pa.array, values)]
        return pa.RecordBatch.from_arrays(columns, schema=row_schema(leaf))
