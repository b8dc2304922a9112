"""The plan of a policy: its leaves, what is computed of each relation, for how long what is remembered, and where.

`leaves_of` gives the leaves of a relation, which enrichment fills; `plan_policy` makes the `PolicyPlan` that the kernel
runs and ``situ explain policy`` shows; `partition_rows` puts rows into partitions.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from situ.lang.catalogue import EVERYTHING_EVERYWHERE, ONE_PARTITION
from situ.lang.expr.limits import Remembering, once
from situ.lang.expr.tree import Node, Read, walk
from situ.lang.problems import Problem
from situ.lang.types.model import Type
from situ.policies.language.syntax import ConsumptionMode
from situ.policies.model import (
    LEFT,
    RIGHT,
    Absence,
    Clause,
    ConditionLiteral,
    ConditionPart,
    Disjunction,
    Policy,
    Relation,
    RelationKind,
    RelationLiteral,
    SequenceLiteral,
    Side,
    is_negative,
    literals_of,
)
from situ.policies.ontology.model import Ontology

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Leaves: what enrichment makes of events before anything is remembered. A leaf is one use of an event-based attribute.
# With a test it gives *occurrences* of a relation that has no other event-based side: rows of an observed identity and,
# if the relation has two sides, of each instance of the other concept for which the test holds. Without one it gives
# *observations*: rows of an identity and of the values that relations between two event-based sides will look at.
# Leaves are plain data; policies that have equal ones share their rows.


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafScalar:
    """A value that tests read below an attribute: ``("position", "x")``."""

    path: tuple[str, ...]
    type: Type = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf(Remembering):
    """The attribute of a concept that events bring, what the observed instance must satisfy, and what is made of it."""

    concept: str
    attribute: str
    constraint: Node | None = None
    """Over ``it``: query attributes of the observed instance."""
    test: Node | None = None
    """Over ``left`` and ``right``; None: observations."""
    observed: str = LEFT
    """Which variable of the test the observed instance is."""
    other: str = ""
    """The concept of the other side of the test; empty if it has none."""
    other_constraint: Node | None = None
    scalars: tuple[LeafScalar, ...] = ()
    """Of observations: what their rows carry, in the order of paths."""

    @once
    def _hash(self) -> int:
        return hash((self.concept, self.attribute, self.constraint, self.test, self.other, self.other_constraint))

    def __hash__(self) -> int:
        return self._hash  # leaves are looked up for every policy in every batch, and trees are long


def relations_of(policy: Policy) -> tuple[Relation, ...]:
    """The relations of a policy, each once, in the order they stand."""
    found: dict[str, Relation] = {}
    for part in sorted(signed_relations(policy), key=lambda part: part.place):
        found.setdefault(part.relation.text, part.relation)
    return tuple(found.values())


def signed_relations(policy: Policy) -> Iterator[RelationLiteral]:
    """Every step and every literal that is none of a sequence."""
    for literal in literals_of(policy.conditions):
        yield from literal_relations(literal)


def literal_relations(literal: ConditionLiteral) -> tuple[RelationLiteral, ...]:
    """The relations of a literal with their signs, in their order."""
    return (literal,) if isinstance(literal, RelationLiteral) else literal.parts


def always_observed(conditions: Iterable[ConditionPart]) -> frozenset[str]:
    """The aliases of which events say who they are, whichever branches are chosen."""
    found: set[str] = set()
    for part in conditions:
        match part:
            case RelationLiteral() | SequenceLiteral():
                sides = (side for each in literal_relations(part) if not each.negated for side in each.relation.sides)
                found.update(side.alias for side in sides if side.event)
            case Disjunction(branches=branches, absent=()):
                found.update(frozenset.intersection(*map(always_observed, branches)))
            case Disjunction() | Absence():
                pass
    return frozenset(found)


def leaves_of(policy: Policy, relation: Relation) -> tuple[Leaf, ...]:
    """The leaf of each event-based side of a relation, the left one first."""
    leaves = (
        _leaf_of_side(policy, relation, variable, side) for variable, side in _named_sides(relation) if side.event
    )
    return tuple(map(_the_same, leaves))


@lru_cache(maxsize=1 << 16)
def _the_same(leaf: Leaf) -> Leaf:
    """Of equal leaves always one and the same: whoever looks it up need not compare it."""
    return leaf


def _named_sides(relation: Relation) -> Iterator[tuple[str, Side]]:
    yield LEFT, relation.left
    if relation.right is not None:
        yield RIGHT, relation.right


def _leaf_of_side(policy: Policy, relation: Relation, variable: str, side: Side) -> Leaf:
    alias = policy.alias(side.alias)
    if relation.kind is RelationKind.CORRELATION:
        return Leaf(
            concept=alias.concept,
            attribute=side.event,
            constraint=alias.constraint,
            scalars=scalars_read(relation.test, variable),
        )
    others = [each for name, each in _named_sides(relation) if name != variable]
    other = policy.alias(others[0].alias) if others else None
    return Leaf(
        concept=alias.concept,
        attribute=side.event,
        constraint=alias.constraint,
        test=relation.test,
        observed=variable,
        other=other.concept if other else "",
        other_constraint=other.constraint if other else None,
    )


def scalars_read(test: Node, variable: str) -> tuple[LeafScalar, ...]:
    """What a test reads of one variable, each path once, in order."""
    reads = [node for node in walk(test) if isinstance(node, Read) and node.variable == variable]
    found = {node.path: LeafScalar(path=node.path, type=node.type) for node in reads}
    return tuple(found[path] for path in sorted(found))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The plan. Times are whole microseconds. How long something is needed is said as an age: how far behind the watermark
# something may lie and still be looked at.
#
# Partitions: rows that bind the *partition alias* go to the partition of that identity, all others to every partition.
# That is exact if every match binds the alias, because some clause can be met by nothing else, and if no event that is
# spent by pairing could have partners in two partitions. Where a sequence asks for the absence of something with *any*
# identity in the place of the alias, the rows of that go to every partition, too.


class LeafUse(msgspec.Struct, frozen=True, kw_only=True):
    """One use of a leaf: as which alias its observed identity counts, and as which the other, if it has one."""

    leaf: int
    """Its place in the plan."""
    observed: str
    other: str = ""


class RelationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is computed of a relation.

    ``positive``: its occurrences are found as events come, pairs as ``consumption`` says. ``negated``: they are looked
    for when something else depends on their absence, and any pair counts.
    """

    relation: Relation
    uses: tuple[LeafUse, ...]
    """For each event-based side, the left one first."""
    positive: bool
    negated: bool
    consumption: ConsumptionMode
    kept: int
    """The age of occurrences that are looked at, of those found as events come."""
    free: frozenset[str] = frozenset()
    """Aliases that may be anything where it is the negated side of a sequence: the other side does not bind them."""

    @property
    def spends(self) -> bool:
        """Whether an event counts in one occurrence at most."""
        pairs = self.relation.kind is RelationKind.CORRELATION
        return pairs and self.positive and self.consumption is not ConsumptionMode.ALL

    @property
    def places(self) -> tuple[tuple[int, str], ...]:
        """Where its causes are, as leaves; one for each event of an occurrence."""
        return tuple((use.leaf, use.observed) for use in self.uses)


class SequencePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence that occurs: at least one side of it is positive."""

    then: SequenceLiteral
    kept: int

    @property
    def binds(self) -> tuple[str, ...]:
        return binds(self.then)


class AbsencePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What must be absent, how long that takes to settle, and the ``or`` in which it is chosen beside others."""

    absence: Absence
    choice: Disjunction | None
    wait: int


class LeafPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of the rows of a leaf: those up to this age, and the events behind them, if anyone asks."""

    leaf: Leaf
    kept: int
    causes: bool
    column: str
    """Which column has the identity of the partition alias; empty: rows go to every partition."""


class OperatorMode(Enum):
    """How an operator is computed."""

    ENRICHED = "joined to tables before the kernel"
    COLUMNS = "in columns"
    IN_ORDER = "candidates in columns, then one event after the other"


class Operator(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the logic tree as it is run, for people to read."""

    kind: str
    text: str
    runs: OperatorMode
    window: int = 0


class PolicyPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    policy: Policy
    ontology: Ontology
    leaves: tuple[LeafPlan, ...]
    relations: tuple[RelationPlan, ...]
    sequences: tuple[SequencePlan, ...]
    """Those that read the same are one."""
    absences: tuple[AbsencePlan, ...]
    """In the order they stand in the conditions."""
    wait: int
    """The longest time between the last occurrence of a match and its report."""
    causes: int
    """The age up to which the events behind occurrences can be asked for."""
    recurs: int
    """How long after its report the same detection could be found once more."""
    partition: str
    """The partition alias; empty: all in one place."""
    reason: str
    """Why."""
    warning: Problem | None
    operators: tuple[Operator, ...]

    @property
    def grows(self) -> bool:
        """Whether more events only ever bring more detections: nothing has to be absent, and no event is spent."""
        parts = (part for each in self.sequences for part in each.then.parts)
        return not (self.absences or any(part.negated for part in parts) or any(each.spends for each in self.relations))

    def leaf(self, leaf: Leaf) -> LeafPlan:
        return next(each for each in self.leaves if each.leaf == leaf)

    def relation(self, relation: Relation) -> RelationPlan:
        return next(each for each in self.relations if each.relation == relation)


def plan_policy(policy: Policy, ontology: Ontology) -> PolicyPlan:
    """The plan of a checked policy."""
    relations = relations_of(policy)
    leaves = tuple(dict.fromkeys(leaf for relation in relations for leaf in leaves_of(policy, relation)))
    absences = tuple(_absences(policy))
    wait = max((each.wait for each in absences), default=0)
    ages = _Ages(policy, wait)
    planned = tuple(_relation_plan(policy, relation, leaves, ages) for relation in relations)
    sequences = tuple(SequencePlan(then=then, kept=kept) for then, kept in ages.sequences.items())
    ahead = max((each.then.span for each in sequences), default=0)
    alias, reason, warning = _partition(policy, planned, leaves)
    return PolicyPlan(
        policy=policy,
        ontology=ontology,
        leaves=tuple(_leaf_plan(policy, place, leaf, planned, ages, alias) for place, leaf in enumerate(leaves)),
        relations=planned,
        sequences=sequences,
        absences=absences,
        wait=wait,
        causes=wait + 2 * policy.window + ahead,
        recurs=wait + ahead,
        partition=alias,
        reason=reason,
        warning=warning,
        operators=tuple(_operators(policy, planned, sequences)),
    )


# ── literals ──


def binds(literal: ConditionLiteral) -> tuple[str, ...]:
    """The aliases that an occurrence of a literal binds, each once."""
    given = (part for part in literal_relations(literal) if not part.negated)
    return tuple(dict.fromkeys(alias for part in given for alias in part.relation.aliases))


def always_bound(conditions: Iterable[ConditionPart]) -> frozenset[str]:
    """The aliases that are bound whichever branches are chosen."""
    found: set[str] = set()
    for part in conditions:
        match part:
            case RelationLiteral() | SequenceLiteral():
                found.update(binds(part))
            case Disjunction(branches=branches, absent=()):
                found.update(frozenset.intersection(*map(always_bound, branches)))
            case Disjunction() | Absence():
                pass
    return frozenset(found)


def absences_of(conditions: Iterable[ConditionPart]) -> Iterator[tuple[Absence, Disjunction | None]]:
    """What is to be absent, in order, with the ``or`` it is chosen in beside what is to happen."""
    for part in conditions:
        match part:
            case Absence():
                yield part, None
            case Disjunction(branches=branches, absent=absent):
                for branch in branches:
                    yield from absences_of(branch)
                yield from ((each, part) for each in absent)
            case RelationLiteral() | SequenceLiteral():
                pass


def _absences(policy: Policy) -> Iterator[AbsencePlan]:
    for absence, choice in absences_of(policy.conditions):
        waits = [each.within if isinstance(each, SequenceLiteral) else policy.window for each in absence.literals]
        if choice is not None:
            waits.append(policy.window)  # until then another branch may still be met beside the rest
        yield AbsencePlan(absence=absence, choice=choice, wait=max(waits))


class _Ages:
    """How long what is needed: occurrences as found (``picked``), any pairs (``any``), and sequences."""

    def __init__(self, policy: Policy, wait: int) -> None:
        self.picked: dict[str, int] = {}
        self.any: dict[str, int] = {}
        self.sequences: dict[SequenceLiteral, int] = {}
        self.free: dict[str, set[str]] = {}
        self._window, self._wait = policy.window, wait
        self._look(policy.conditions, policy.window)
        for then in self.sequences:
            for part in then.parts:
                self._needed(self.any if part.negated else self.picked, part.relation, then.span)
                if part.negated:
                    free = set(part.relation.aliases) - set(binds(then))
                    self.free.setdefault(part.relation.text, set()).update(free)

    def _look(self, conditions: Iterable[ConditionPart], beside: int) -> None:
        for part in conditions:
            match part:
                case RelationLiteral():
                    self._needed(self.picked, part.relation, beside)
                case SequenceLiteral():
                    then = part.unplaced
                    self.sequences[then] = max(self.sequences.get(then, 0), beside)
                case Absence(literals=literals):
                    self._absent(literals)
                case Disjunction(branches=branches, absent=absent):
                    for branch in branches:
                        # Whether a branch could be met is asked again when the absent one is settled.
                        self._look(branch, self._window + self._wait if absent else beside)
                    self._look(absent, beside)

    def _absent(self, literals: Iterable[ConditionLiteral]) -> None:
        for literal in literals:
            back = self._wait + (self._window if isinstance(literal, RelationLiteral) else 0)
            for part in literal_relations(literal):
                self._needed(self.any, part.relation, back)

    @staticmethod
    def _needed(ages: dict[str, int], relation: Relation, age: int) -> None:
        ages[relation.text] = max(ages.get(relation.text, 0), age)


def _relation_plan(policy: Policy, relation: Relation, leaves: Sequence[Leaf], ages: _Ages) -> RelationPlan:
    uses = []
    event_based = [(name, side) for name, side in zip((LEFT, RIGHT), relation.sides, strict=False) if side.event]
    for leaf, (_, side) in zip(leaves_of(policy, relation), event_based, strict=True):
        others = (
            [each.alias for each in relation.sides if each is not side] if relation.kind is RelationKind.QUERY else []
        )
        uses.append(LeafUse(leaf=leaves.index(leaf), observed=side.alias, other=others[0] if others else ""))
    return RelationPlan(
        relation=relation,
        uses=tuple(uses),
        positive=relation.text in ages.picked,
        negated=relation.text in ages.any,
        consumption=policy.consumption,
        kept=ages.picked.get(relation.text, 0),
        free=frozenset(ages.free.get(relation.text, ())),
    )


def _leaf_plan(
    policy: Policy, place: int, leaf: Leaf, relations: Sequence[RelationPlan], ages: _Ages, alias: str
) -> LeafPlan:
    kept, causes = 0, False
    for each in relations:
        if all(use.leaf != place for use in each.uses):
            continue
        text = each.relation.text
        if each.relation.kind is RelationKind.CORRELATION:
            back = (policy.window, ages.any[text] + policy.window if each.negated else 0)
            causes = True  # an event does not pair with itself
        else:
            back = (ages.picked.get(text, 0), ages.any.get(text, 0))
        kept, causes = max(kept, *back), causes or each.positive
    return LeafPlan(leaf=leaf, kept=kept, causes=causes, column=_column(relations, place, alias))


# ── partitions ──


def _column(relations: Sequence[RelationPlan], leaf: int, alias: str) -> str:
    """Where rows of a leaf have the identity of an alias, if they have it in every use and it counts there."""
    columns = {
        "" if alias in relation.free else "identity" if use.observed == alias else "other" if use.other == alias else ""
        for relation in relations
        for use in relation.uses
        if use.leaf == leaf
    }
    return columns.pop() if alias and len(columns) == 1 else ""


def _partition(
    policy: Policy, relations: Sequence[RelationPlan], leaves: Sequence[Leaf]
) -> tuple[str, str, Problem | None]:
    bound = always_bound(policy.conditions)
    always = [alias.name for alias in policy.aliases if alias.name in bound]
    spent = {alias for each in relations if each.spends for alias in each.relation.aliases}
    candidates = [alias for alias in always if alias not in spent]
    if candidates:
        everywhere = {
            alias: sum(not _column(relations, leaf, alias) for leaf in range(len(leaves))) for alias in candidates
        }
        best = min(candidates, key=lambda alias: everywhere[alias])
        told = f"every match binds `{best}`; {everywhere[best]} of {len(leaves)} leaves go everywhere"
        if everywhere[best] < len(leaves):
            return best, told, None
        return best, told, EVERYTHING_EVERYWHERE(policy.location, policy=policy.name, alias=best)
    if not always:
        reason = "no alias is bound by every match: each clause can be met without it, or by something absent"
        remedy = "Name an alias in a line of its own that says what is so, not what is not."
    else:
        pairs = ", ".join(f"`{each.relation.text}`" for each in relations if each.spends)
        reason = f"{policy.consumption} consumption spends each event once, so all candidates of {pairs} must meet"
        remedy = "If any fitting pair may count, write `consumption all`."
    return "", reason, ONE_PARTITION(policy.location, policy=policy.name, reason=reason, remedy=remedy)


def partition_of(texts: Sequence[str], partitions: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The partition of each identity: the same in every process, for good."""
    import numpy as np

    return np.array([zlib.crc32(text.encode()) % partitions for text in texts], np.int64)


def partition_rows(plan: PolicyPlan, leaf: Leaf, batch: pa.RecordBatch, partitions: int) -> list[pa.RecordBatch]:
    """The rows of a leaf for each partition."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    column = plan.leaf(leaf).column
    if partitions == 1 or not plan.partition:
        return [batch, *[batch.slice(0, 0)] * (partitions - 1)]
    if not column:
        return [batch] * partitions
    encoded = batch.column(column)
    if not pa.types.is_dictionary(encoded.type):
        encoded = pc.dictionary_encode(encoded)
    parts_of = partition_of(encoded.dictionary.to_pylist(), partitions)
    where = parts_of[encoded.indices.to_numpy(zero_copy_only=False)]
    return [batch.take(pa.array(np.flatnonzero(where == number))) for number in range(partitions)]


# ── for people ──


def _operators(policy: Policy, relations: Sequence[RelationPlan], sequences: Sequence[SequencePlan]) -> list[Operator]:
    found = []
    for each in relations:
        kind, text = each.relation.kind, each.relation.text
        if kind is RelationKind.QUERY:
            found.append(Operator(kind="query", text=text, runs=OperatorMode.ENRICHED))
        elif kind is RelationKind.CONSTRAINT:
            found.append(Operator(kind="constraint", text=text, runs=OperatorMode.COLUMNS))
        else:
            runs = OperatorMode.IN_ORDER if each.spends else OperatorMode.COLUMNS
            found.append(Operator(kind="correlation", text=text, runs=runs, window=policy.window))
    for sequence in sequences:
        text = " followed-by ".join(f"{'not ' * part.negated}{part.relation.text}" for part in sequence.then.parts)
        found.append(Operator(kind="followed-by", text=text, runs=OperatorMode.COLUMNS, window=sequence.then.span))
    found += [
        Operator(kind="or", text=f"clause {number}", runs=OperatorMode.COLUMNS, window=_clause_wait(policy, clause))
        for number, clause in enumerate(policy.clauses, 1)
        if len(clause) > 1
    ]
    return [*found, Operator(kind="and", text=policy.name, runs=OperatorMode.COLUMNS, window=policy.window)]


def _clause_wait(policy: Policy, clause: Clause) -> int:
    """How long it takes to settle that a clause holds by what is absent."""
    negative = [literal for literal in clause if is_negative(literal)]
    waits = [literal.within if isinstance(literal, SequenceLiteral) else policy.window for literal in negative]
    if 0 < len(negative) < len(clause):
        waits.append(policy.window)
    return max(waits, default=0)
