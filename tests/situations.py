"""Policies in short, and generated cases: an ontology, what pull sources know, a policy, and what events said.

Relations are written as expressions over aliases, ``A.where = R.id``; conditions as
``not A.x > 3 or A.x > 1 ->5 [B.x > 2 and not B.x > 4] -> A.x > 2``: ``->`` is followed-by, with or without a window,
and brackets group. Times are plain numbers of microseconds. Everything generated is deterministic by seed.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from situ.lang.expr.checker.check import check
from situ.lang.expr.emit.vectors import below, column, values_of
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.scope import NameScope, Variable
from situ.lang.expr.tree import Node
from situ.lang.problems import SituError
from situ.lang.types.model import (
    BOOLEAN,
    BOX,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    POINT,
    STRING,
    TIMESTAMP,
    Attribute,
    Type,
    plain,
)
from situ.policies.check import normal_form as resolved
from situ.policies.check.normal_form import branches_of, to_normal_form
from situ.policies.enrichment.enrich import Enrichment, PushObservations
from situ.policies.enrichment.rows import BASE, scalar_fields
from situ.policies.language.syntax import ConsumptionMode
from situ.policies.model import (
    IT,
    LEFT,
    RIGHT,
    Absence,
    Alias,
    Cause,
    ConditionLiteral,
    ConditionPart,
    Disjunction,
    InstancesByConcept,
    Observation,
    Policy,
    Reach,
    Relation,
    RelationKind,
    RelationLiteral,
    SequenceLiteral,
    Side,
)
from situ.policies.ontology.model import Concept, Ontology
from situ.policies.plan import Leaf, signed_relations


def _concept(name: str, attributes: Mapping[str, Type], members: Sequence[str] = ()) -> Concept:
    declared = [Attribute(name=each, type=type, optional=True) for each, type in attributes.items()]
    return Concept(name=name, attributes=(Attribute(name="id", type=STRING), *declared), members=(name, *members))


_THING: dict[str, Type] = {
    "status": STRING,
    "level": LONG,
    "boss": STRING,
    "x": DOUBLE,
    "where": STRING,
    "near": STRING,
    "pos": POINT,
}
_PLACE: dict[str, Type] = {"floor": STRING, "limit": DOUBLE, "area": BOX, "temp": DOUBLE}

ONTOLOGY = Ontology(
    concepts={
        "thing": _concept("thing", _THING, ["robot"]),
        "robot": _concept("robot", {**_THING, "charge": DOUBLE}),
        "place": _concept("place", _PLACE),
    }
)
EVENT_BASED = {"x", "where", "near", "pos", "temp"}
"""Attributes that events bring; pull sources know the others."""


# ── policies in short ─────────────────────────────────────────────────────────────────────────────────


def condition(text: str, **concepts: str) -> Node:
    """A checked condition over variables that are instances of these concepts."""
    variables = {name: Variable(type=ONTOLOGY.concepts[concept].struct) for name, concept in concepts.items()}
    return check(text, NameScope(variables=variables), expected=BOOLEAN).tree()


def alias(text: str) -> Alias:
    """``thing A``, or ``thing A (status = 'guest')``."""
    found = re.fullmatch(r"(\w+) (\w+)(?: \((.*)\))?", text)
    assert found, text
    concept, name, constraint = found.groups()
    node = None
    if constraint:
        scope = NameScope(variables={IT: Variable(type=ONTOLOGY.concepts[concept].struct)}, bare=IT)
        node = check(constraint, scope, expected=BOOLEAN).tree()
    return Alias(name=name, concept=concept, constraint=node, text=constraint or "")


_USE = re.compile(r"\b([A-Z])\.(\w+)")


def relation(text: str, aliases: Iterable[Alias], reach: float | None = None) -> Relation:
    """A relation over at most two aliases, the one used first on the left."""
    concepts = {each.name: each.concept for each in aliases}
    used: dict[str, list[str]] = {}
    for name, attribute in _USE.findall(text):
        used.setdefault(name, []).append(attribute)
    variables = dict(zip(used, (LEFT, RIGHT), strict=False))
    test = condition(
        _USE.sub(lambda found: f"{variables[found[1]]}.{found[2]}", text),
        **{variables[name]: concepts[name] for name in used},
    )
    sides = [
        Side(
            alias=name,
            attributes=tuple(dict.fromkeys(attributes)),
            event=next((each for each in attributes if each in EVENT_BASED), ""),
        )
        for name, attributes in used.items()
    ]
    right = sides[1] if len(sides) == 2 else None
    far = None if reach is None else Reach(left=_COORDINATES, right=_COORDINATES, distance=reach)
    return Relation(text=text, left=sides[0], right=right, test=test, reach=far, compares=True)


_COORDINATES = (("pos", "x"), ("pos", "y"))


class Conditions:
    """Conditions in short → what a policy consists of. Each literal has a place of its own."""

    def __init__(self, aliases: Iterable[Alias]) -> None:
        self.aliases = tuple(aliases)
        self.places = 0

    def read(self, text: str) -> resolved.ResolvedCondition:
        words = [each for each in re.split(r"(\[|\]| or | and | ->\d* )", text) if each and each.strip()]
        self.words = [each.strip() for each in words][::-1]
        found = self._or()
        assert not self.words, text
        return found

    def _next(self) -> str:
        return self.words[-1] if self.words else ""

    def _or(self) -> resolved.ResolvedCondition:
        parts = [self._and()]
        while self._next() == "or":
            self.words.pop()
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else resolved.ResolvedAny(tuple(parts))

    def _and(self) -> resolved.ResolvedCondition:
        parts = [self._sequence()]
        while self._next() == "and":
            self.words.pop()
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else resolved.ResolvedAll(tuple(parts))

    def _sequence(self) -> resolved.ResolvedCondition:
        found = self._factor()
        while self._next().startswith("->"):
            within = self.words.pop()[2:]
            found = resolved.ResolvedSequence(found, self._factor(), int(within) if within else None)
        return found

    def _factor(self) -> resolved.ResolvedCondition:
        word = self.words.pop()
        if word != "[":
            self.places += 1
            return resolved.ResolvedRelation(_is(word, self.aliases, self.places))
        found = self._or()
        assert self.words.pop() == "]"
        return found


def _is(text: str, aliases: Iterable[Alias], place: int) -> RelationLiteral:
    far = re.search(r"distance\(.*\) <= (\d+)$", text)
    made = relation(text.removeprefix("not "), aliases, float(far[1]) if far else None)
    return RelationLiteral(made, text.startswith("not "), place)


def policy(
    aliases: str,
    *clauses: str,
    window: int = 5,
    consumption: str = "chronicle",
    hold: int | None = None,
    name: str = "p",
) -> Policy:
    """``policy("thing A, place R (limit > 3)", "A.where = R.id", "not A.x > 3 or A.x > 5")``."""
    declared = tuple(alias(text) for text in re.split(r", (?=\w+ \w+(?: \(|,|$))", aliases))
    reading = Conditions(declared)
    whole = resolved.ResolvedAll(tuple(map(reading.read, clauses)))
    try:
        conditions, normal = to_normal_form(whole, window, 10_000)
    except SituError as refused:
        if refused.code != "S151":
            raise
        # Nobody can write it, but it has a meaning: it finds nothing.
        conditions, normal = branches_of(whole, window, 10_000)[0], ()
    return Policy(
        name=name,
        aliases=declared,
        conditions=conditions,
        clauses=normal,
        window=window,
        hold=2 * window if hold is None else hold,
        consumption=ConsumptionMode(consumption),
    )


def saw(
    identity: str,
    attribute: str,
    value: Any,
    time: int,
    *,
    id: str = "",
    source: str = "s",
    concept: str = "",
    push: str = "",
) -> Observation:
    """An event said so."""
    return Observation(
        push=push or attribute,
        concept=concept or ("place" if attribute == "temp" else "thing"),
        identity=identity,
        attribute=attribute,
        value=value,
        time=time,
        cause=Cause(source, id or f"{identity}-{attribute}-{time}"),
    )


# ── rows of leaves, one by one ────────────────────────────────────────────────────────────────────────


def leaf_rows(
    leaf: Leaf, observations: Iterable[Observation], instances: InstancesByConcept, ontology: Ontology = ONTOLOGY
) -> pa.RecordBatch:
    """What enrichment makes of observations for a leaf, in their order; row by row."""
    rows: list[tuple[Any, ...]] = []
    for each in observations:
        members = ontology.concepts[leaf.concept].members
        if each.attribute != leaf.attribute or each.concept not in members:
            continue
        instance = _instance(ontology, instances, leaf.concept, each.identity)
        if not _true(leaf.constraint, {IT: instance}):
            continue
        seen = {**instance, leaf.attribute: each.value}
        row = (each.time, each.cause.source, each.cause.id, each.push, 0, each.identity)
        if leaf.test is None:
            rows.append((*row, *(_stored(_at(seen, s.path), s.type) for s in leaf.scalars)))
        elif not leaf.other:
            if _true(leaf.test, {leaf.observed: seen}):
                rows.append(row)
        else:
            unobserved = RIGHT if leaf.observed == LEFT else LEFT
            for identity in _identities(ontology, instances, leaf.other):
                other = _instance(ontology, instances, leaf.other, identity)
                if _true(leaf.other_constraint, {IT: other}) and _true(
                    leaf.test, {leaf.observed: seen, unobserved: other}
                ):
                    rows.append((*row, identity))
    schema = leaf_schema(leaf)
    # By place: an attribute may have the name of another column.
    arrays = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def leaf_schema(leaf: Leaf) -> pa.Schema:
    """The columns of a leaf's rows."""
    names = ["source", "id", "push", "pos", "identity", *(["other"] if leaf.other else [])]
    scalars = [(".".join(each.path), _arrow(each.type)) for each in leaf.scalars]
    types = {"pos": pa.int64()}
    return pa.schema([("time", pa.int64()), *((name, types.get(name, pa.string())) for name in names), *scalars])


def _arrow(type: Type) -> pa.DataType:
    given = plain(type)
    if given == DOUBLE:
        return pa.float64()
    if given == BOOLEAN:
        return pa.bool_()
    return pa.int64() if given in (INT, LONG, TIMESTAMP, DURATION) else pa.string()


def _stored(value: Any, type: Type) -> Any:
    given = plain(type)
    if value is None or given in (DOUBLE, BOOLEAN, INT, LONG, STRING):
        return value
    assert given not in (TIMESTAMP, DURATION), "not generated"
    return json.dumps(value)


def _at(value: Any, path: Sequence[str]) -> Any:
    for step in path:
        value = None if value is None else value.get(step)
    return value


def _true(node: Node | None, values: Mapping[str, Any]) -> bool:
    try:
        return node is None or interpret(node, values) is True
    except FAILURES:
        return False


def _identities(ontology: Ontology, instances: InstancesByConcept, concept: str) -> list[str]:
    return sorted({each for member in ontology.concepts[concept].members for each in instances.get(member, {})})


def _instance(ontology: Ontology, instances: InstancesByConcept, concept: str, identity: str) -> dict[str, Any]:
    found: dict[str, Any] = {"id": identity}
    for member in ontology.concepts[concept].members:
        for name, value in instances.get(member, {}).get(identity, {}).items():
            if value is not None:
                found.setdefault(name, value)
    return found


# ── generated cases ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Observations are in the order they arrive, none of them ``lateness`` or more behind one before it."""

    seed: int
    ontology: Ontology = field(repr=False)
    instances: InstancesByConcept
    policy: Policy = field(repr=False)
    text: str
    observations: tuple[Observation, ...]
    keep: Mapping[str, int]
    lateness: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What arrives together, and the watermark after it: nothing older than that will come."""

    observations: tuple[Observation, ...]
    watermark: int


def batches(case: Case, dice: random.Random) -> list[Batch]:
    """The observations of a case cut anywhere, some batches empty; the last watermark is beyond everything."""
    cuts = sorted(dice.randrange(len(case.observations) + 1) for _ in range(dice.randrange(1, 8)))
    found, highest = [], min((each.time for each in case.observations), default=0)
    for start, end in zip([0, *cuts], [*cuts, len(case.observations)], strict=True):
        taken = case.observations[start:end]
        highest = max([highest, *(each.time for each in taken)])
        found.append(Batch(taken, highest - case.lateness))
    return [*found, Batch((), highest + 100 * (case.policy.window + max(case.keep.values(), default=0)))]


def generate(seed: int) -> Case:
    """A case with two to five aliases and whatever operators the dice say; each third is about steps and branches."""
    return (_Steps if seed % 3 == 2 else _Generator)(seed).case()


_UNARY = ("{a}.x > {n}", "{a}.x <= {n}", "{a}.where = '{place}'", "{a}.pos.x < {n}", "10 / {a}.x > {n}")
_QUERIED = (
    "{a}.where = {r}.id",
    "{a}.where = {r}.id",
    "{a}.where = {r}.id",
    "{a}.x > {r}.limit",
    "inside({a}.pos, {r}.area)",
    "{a}.x + {a}.level > {r}.limit",
    "{r}.floor = {a}.where",
)
_NEAR = ("{a}.near = {b}.id", "{a}.near = {b}.id", "{b}.status = {a}.near", "{a}.x <= {b}.level")
_CORRELATED = (
    "{a}.where = {b}.where",
    "{a}.where = {b}.where",
    "abs({a}.x - {b}.x) <= 1",
    "{a}.x = {b}.x",
    "{a}.x < {b}.x",
    "{a}.x + {a}.level > {b}.x",
    "{a}.where = {b}.near",
    "{a}.near = {b}.id AND {b}.x > {n}",
    "distance({a}.pos, {b}.pos) <= 1",
    "distance({a}.pos, {b}.pos) <= 2",
    "{a}.pos.x < {b}.x",
    "10 / {a}.x > {b}.x",
)
_WARM = ("{a}.x > {r}.temp", "{a}.where = {r}.id AND {r}.temp > {n}")
_TIMELESS = ("{a}.boss = {b}.id", "{a}.id = {b}.id", "{a}.status = {b}.status", "{a}.level < {b}.level")
_STATED = ("{a}.level > 1", "{a}.status = 'guest'")
_CONSTRAINTS = (
    "",
    "",
    "",
    "",
    "",
    "",
    "status = 'guest'",
    "status = 'staff'",
    "level > 0",
    "level < 3",
    "NOT boss IS NULL",
)
_LIMITS = ("", "", "", "", "floor = 'f1'", "limit < 3")


class _Generator:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        self.things = [str(each) for each in range(1, self.dice.choice((3, 3, 4, 5)))]
        self.places = [f"r{each}" for each in range(1, self.dice.choice((2, 3, 3, 4)))]

    def case(self) -> Case:
        dice = self.dice
        unit = dice.choice((1, 1, 1_000_000))
        window = dice.randrange(2, 8) * unit
        aliases, names = self._aliases()
        self.window, self.unit = window, unit
        clauses = self._clauses(names)
        used = {name for clause in clauses for name, _ in _USE.findall(clause)}
        declared = ", ".join(text for name, text in aliases.items() if name in used)
        consumption = dice.choice(list(ConsumptionMode))
        made = policy(declared, *clauses, window=window, consumption=consumption, hold=dice.randrange(4) * window)
        lateness = dice.choice((0, unit, 3 * unit))
        pushes = ["x", "where", "near", "pos", "temp", "robot-x", "robot-where", "robot-near"]
        kept = {
            push: dice.randrange(1, 5) * window + dice.choice((0, 1, -1)) for push in pushes if dice.random() < 0.15
        }
        return Case(
            seed=self.seed,
            ontology=ONTOLOGY,
            instances=self._instances(),
            policy=made,
            text=f"{declared} | {' & '.join(clauses)} | {window} {consumption}",
            observations=tuple(self._observations(made, lateness)),
            keep=kept,
            lateness=lateness,
        )

    # ── the policy ──

    def _aliases(self) -> tuple[dict[str, str], dict[str, list[str]]]:
        dice = self.dice
        count = dice.choice((2, 2, 3, 3, 4, 5, 5))
        names: dict[str, list[str]] = {"thing": [], "place": []}
        texts = {}
        for name in "ABCDE"[:count]:
            concept = "thing" if not names["thing"] or dice.random() < 0.6 else "place"
            names[concept].append(name)
            written = "robot" if concept == "thing" and dice.random() < 0.1 else concept
            limit = dice.choice(_CONSTRAINTS if concept == "thing" else _LIMITS)
            texts[name] = f"{written} {name}" + (f" ({limit})" if limit else "")
        return texts, names

    def _relation(self, names: dict[str, list[str]], timed: bool = True) -> str:
        dice = self.dice
        things, places = names["thing"], names["place"]
        forms: list[tuple[str, ...]] = [_UNARY]
        if places:
            forms += [_QUERIED, _QUERIED, _QUERIED, _WARM]
        if len(things) > 1:
            forms += [_NEAR, _CORRELATED, _CORRELATED, _CORRELATED]
        if not timed:
            forms = [_TIMELESS, _STATED] if len(things) > 1 else [_STATED]
        a = dice.choice(things)
        b = dice.choice([each for each in things if each != a] or [a])
        form = dice.choice(dice.choice(forms))
        return form.format(a=a, b=b, r=dice.choice(places or [""]), n=dice.randrange(3), place=dice.choice(self.places))

    def _one(self, names: dict[str, list[str]], pool: list[str], negated: float, *, timed: bool = True) -> str:
        dice = self.dice
        reused = [each for each in pool if timed]
        made = dice.choice(reused) if reused and dice.random() < 0.3 else self._relation(names, timed)
        if timed:
            pool.append(made)
        return f"not {made}" if dice.random() < negated else made

    def _sequence(self, names: dict[str, list[str]], pool: list[str]) -> str:
        """Two steps or more; some of them read the same, some are to be absent, some are several."""
        dice = self.dice
        found = []
        for _ in range(dice.choice((2, 2, 2, 2, 3, 3, 4))):
            bias = dice.random()
            if dice.random() < 0.12:
                word = dice.choice((" or ", " and "))
                found.append(f"[{word.join(self._one(names, pool, bias) for _ in range(2))}]")
            elif found and not found[-1].startswith("[") and dice.random() < 0.15:
                found.append(found[-1].removeprefix("not "))
            else:
                found.append(self._one(names, pool, bias))
        text = found[0]
        for each in found[1:]:
            within = dice.choice(("", "", str(dice.randrange(1, 2 * self.window // self.unit) * self.unit)))
            text += f" ->{within} {each}"
        return text

    def _literal(self, names: dict[str, list[str]], pool: list[str], negated: float) -> str:
        if self.dice.random() < 0.35:
            return self._sequence(names, pool)
        return self._one(names, pool, negated, timed=self.dice.random() < 0.9)

    def _clause(self, names: dict[str, list[str]], pool: list[str], depth: int = 0) -> str:
        """Literals joined by ``or``, some of which are several joined by ``and``, and so on."""
        dice = self.dice
        bias = dice.choice((0.1, 0.5, 0.9))
        seen: dict[str, str] = {}
        for _ in range(dice.choice((1, 1, 2, 2, 3)) if not depth else 2):
            if dice.random() < (0.15 if depth < 2 else 0):
                made = " and ".join(self._grouped(names, pool, depth) for _ in range(2))
            else:
                made = self._literal(names, pool, bias)
            seen.setdefault(made.removeprefix("not ") if " ->" not in made else made, made)
        return " or ".join(seen.values())

    def _grouped(self, names: dict[str, list[str]], pool: list[str], depth: int) -> str:
        made = self._clause(names, pool, depth + 1)
        return f"[{made}]" if " or " in made else made

    def _clauses(self, names: dict[str, list[str]]) -> list[str]:
        """One that can trigger, and others; no literal together with its opposite in one ``or``."""
        dice = self.dice
        pool: list[str] = []
        trigger = self._relation(names)
        pool.append(trigger)
        found = [trigger if dice.random() < 0.7 else self._literal(names, pool, 0.2)]
        for _ in range(dice.choice((0, 1, 1, 1, 2, 2, 3))):
            clause = self._clause(names, pool)
            if clause not in found:
                found.append(clause)
        if not any(self._triggers(clause) for clause in found):
            found.append(trigger)
        dice.shuffle(found)
        return found

    def _triggers(self, clause: str) -> bool:
        """Whether something in it, by itself, happens whatever else is chosen."""
        if re.search(r" or | and |\[", clause):
            return False
        steps = re.split(r" ->\d* ", clause)
        if len(steps) > 1:
            return not all(each.startswith("not ") for each in steps)
        return not clause.startswith("not ") and any(each in EVENT_BASED for _, each in _USE.findall(clause))

    # ── what is known, and what happened ──

    def _instances(self) -> InstancesByConcept:
        dice = self.dice
        known: dict[str, dict[str, dict[str, Any]]] = {"thing": {}, "robot": {}, "place": {}}
        for each in self.things:
            if dice.random() < 0.1:
                continue
            attributes = {
                "status": dice.choice(("guest", "staff", "guest", "staff", self.places[0])),
                "level": dice.randrange(4),
                "boss": dice.choice(self.things),
            }
            said = {name: value for name, value in attributes.items() if dice.random() < 0.9}
            known["robot" if dice.random() < 0.2 else "thing"][each] = said
        for each in self.places:
            x, y = dice.randrange(3), dice.randrange(3)
            attributes = {
                "floor": dice.choice(("f1", "f2", self.places[0])),
                "limit": float(dice.randrange(4)),
                "area": {"x1": float(x), "y1": float(y), "x2": float(x + 2), "y2": float(y + 2)},
            }
            known["place"][each] = {name: value for name, value in attributes.items() if dice.random() < 0.95}
        return known

    def _observations(self, made: Policy, lateness: int) -> list[Observation]:
        """Of what the policy looks at, mostly; close enough in time for something to happen."""
        dice = self.dice
        watched = sorted(
            {
                (made.alias(side.alias).concept, side.event)
                for part in signed_relations(made)
                for side in part.relation.sides
                if side.event
            }
        )
        count = dice.randrange(6, 34 if len(made.clauses) < 3 else 22)
        span = dice.choice((2, 3, 4)) * made.window // self.unit
        found = []
        for number in range(count):
            time = dice.randrange(span + 1) * self.unit + dice.choice((0, 0, 0, 1, -1))
            source = dice.choice(("s1", "s2"))
            concept, attribute = dice.choice(watched)
            seen = self._observation(concept, attribute, time, source, f"e{dice.randrange(100)}-{number}")
            found.append(seen)
            if dice.random() < 0.1:  # one event through two push sources
                found.append(self._observation(*dice.choice(watched), time, source, seen.cause.id))
            if dice.random() < 0.1:  # ids are those of a source
                found.append(
                    self._observation(concept, attribute, time, "s1" if source == "s2" else "s2", seen.cause.id)
                )
        each_once = {(each.push, each.cause, each.identity): each for each in found}
        return sorted(each_once.values(), key=lambda each: each.time + (dice.random() * lateness if lateness else 0))

    def _observation(self, concept: str, attribute: str, time: int, source: str, id: str) -> Observation:
        dice = self.dice
        values = {
            "x": float(dice.randrange(5)),
            "where": dice.choice(self.places),
            "near": dice.choice(self.things),
            "pos": {"x": float(dice.randrange(4)), "y": float(dice.randrange(4))},
            "temp": float(dice.randrange(5)),
        }
        robot = concept == "robot" or (concept == "thing" and dice.random() < 0.15)
        identity = dice.choice(self.places if concept == "place" else self.things)
        value = None if dice.random() < 0.02 else values[attribute]
        return saw(
            identity,
            attribute,
            value,
            time,
            id=id,
            source=source,
            concept="robot" if robot else concept,
            push=f"robot-{attribute}" if robot else attribute,
        )


class _Steps(_Generator):
    """Few identities and short conditions, so that what has several steps or branches happens now and then."""

    _FORMS = ("{a}.where = '{place}'", "{a}.where = '{place}'", "{a}.x > {n}", "{a}.x <= {n}")

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.things = ["1", "2"][: self.dice.choice((1, 2, 2))]
        self.places = ["r1", "r2"]

    def _aliases(self) -> tuple[dict[str, str], dict[str, list[str]]]:
        names = ["A", "B"][: self.dice.choice((1, 1, 2))]
        return {name: f"thing {name}" for name in names}, {"thing": names, "place": []}

    def _relation(self, names: dict[str, list[str]], timed: bool = True) -> str:
        dice, things = self.dice, names["thing"]
        a, b = (things * 2)[:2] if dice.random() < 0.8 else (things * 2)[1::-1]
        if len(things) == 2 and dice.random() < 0.2:
            return dice.choice((f"{a}.where = {b}.where", f"{a}.id = {b}.id" if not timed else f"{a}.x < {b}.x"))
        return dice.choice(self._FORMS).format(a=a, n=dice.randrange(1, 3), place=dice.choice(self.places))

    def _clauses(self, names: dict[str, list[str]]) -> list[str]:
        dice = self.dice
        pool: list[str] = []
        found = [self._chain(names, pool) if dice.random() < 0.7 else self._branches(names, pool)]
        if dice.random() < 0.4:
            found.append(dice.choice((self._branches, self._chain, self._clause))(names, pool))
        if not any(self._triggers(clause) for clause in found):
            found.append(self._relation(names))
        return found

    def _chain(self, names: dict[str, list[str]], pool: list[str]) -> str:
        """From something that happens to something that happens, mostly; between them, what is absent or not."""
        dice = self.dice
        text = self._one(names, pool, 0.1)
        for place in range(dice.choice((1, 2, 2, 2, 3))):
            step = self._one(names, pool, 0.6 if place == 0 else 0.2)
            if dice.random() < 0.15:
                step = f"[{step}{dice.choice((' or ', ' and '))}{self._one(names, pool, 0.3)}]"
            within = dice.choice(("", "", str(dice.randrange(1, self.window // self.unit + 1) * self.unit)))
            text += f" ->{within} {step}"
        return text

    def _branches(self, names: dict[str, list[str]], pool: list[str]) -> str:
        """One of which at least has several parts."""
        one, two = self._one(names, pool, 0.1), self._one(names, pool, 0.3)
        other = self._one(names, pool, 0.4) if self.dice.random() < 0.6 else f"[{self._chain(names, pool)}]"
        return f"[{one} and {two}] or {other}"


def signs(parts: Iterable[ConditionPart]) -> set[str]:
    """Which kinds of literals conditions have: ``+``, ``-``, ``+>-`` and so on, ``=`` for constraints; and more.

    ``step twice`` is one that reads as another of its sequence, ``gap`` an absence between what is to happen, ``long
    gap`` one with a length, ``branch of several`` an ``or`` of which a branch has several parts, ``or in or`` one
    inside of such a branch.
    """
    found = set()
    for part in parts:
        match part:
            case Absence(literals=literals):
                found |= set(map(_sign, literals))
            case Disjunction(branches=branches, absent=absent):
                found |= {"or"} | signs(absent) | {"or of both"} if absent else {"or"}
                for branch in branches:
                    found |= signs(branch)
                    found |= {"branch of several"} if len(branch) > 1 else set()
                    found |= {"or in or"} if any(isinstance(each, Disjunction) for each in branch) else set()
            case _:
                found.add(_sign(part))
                found |= set(_of_sequence(part)) if isinstance(part, SequenceLiteral) else set()
    return found


def _sign(literal: ConditionLiteral) -> str:
    if isinstance(literal, RelationLiteral):
        return ("=" if literal.relation.kind is RelationKind.CONSTRAINT else "") + "+-"[literal.negated]
    return f"{'+-'[literal.first.negated]}>{'+-'[literal.second.negated]}"


def _of_sequence(then: SequenceLiteral) -> Iterable[str]:
    texts = [each.relation.text for each in then.parts]
    if len(set(texts)) < len(texts):
        yield "step twice"
    if then.between:
        yield f"gap {_sign(then)}"
        if any(gap.within for gap in then.between):
            yield "long gap"


def observation_batches(observations: Iterable[Observation], enrichment: Enrichment) -> Iterator[PushObservations]:
    """Observations as columns, a batch for each push source; those that nobody looks at are left out."""
    together: dict[tuple[str, str, str], list[Observation]] = {}
    for each in observations:
        together.setdefault((each.push, each.concept, each.attribute), []).append(each)
    for (_, concept, attribute), some in together.items():
        if not enrichment.is_wanted(concept, attribute):
            continue
        scalars = enrichment.scalars(concept, attribute)
        base = zip(*((each.time, *each.cause, each.push, 0, each.identity) for each in some), strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(base, BASE, strict=True)]
        arrays += [column([below({attribute: each.value}, s.path) for each in some], s.type) for s in scalars]
        rows = pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*BASE, *scalar_fields(scalars)]))
        yield PushObservations(concept=concept, attribute=attribute, rows=rows)


def read_rows(leaf: Leaf, batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The rows one by one, as :func:`make_rows` takes them."""
    first = batch.num_columns - len(leaf.scalars)
    columns = [
        array.to_pylist() if place < first else values_of(array, leaf.scalars[place - first].type)
        for place, array in enumerate(batch.columns)
    ]
    return zip(*columns, strict=True)
