"""Filters over values of subtypes, in root's terms and in those of a context, equal the reference for generated types.

Events go the way they go in both engines: from the bytes of a message through decoding, reading and the index. The
reference converts the event first and then asks the filter, node by node, of what was made.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from situ.event.message import join_lines
from situ.event.row import Origin, Row
from situ.lang.records import replace
from situ.lang.types.json_codec import encode
from situ.lang.types.model import Struct, plain
from situ.lang.types.table import Types
from situ.routing.model import Subscription
from situ.stages.plan import Plan, compile_plan
from tests.oracles.routing import NaiveRouting
from tests.transformations import make_attributes, out_of_root
from tests.volume import seeds
from tests.zone import deployment_of

RECEIVED = 1_793_521_800_000_000
EVENTS, SUBSCRIPTIONS, MANY = 12, 10, 24
SINGLE = ("double", "double m", "int", "long", "string", "boolean", "decimal(9,2)", "timestamp", "duration")
FUNCTIONS = """
functions:
  twice: double -> double = value * 2
  other: long -> long = value - 1
  loud: string -> string = upper(value)
"""
CONTEXT = "c"


class Project:
    """A part with subtypes, whose attributes may have the same name and be something else; and rules about them."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.part = self._attributes("pq", 2)
        self.below = {name: self._attributes("rsp", 2) for name in ("B", "C", "D")}
        for attributes in self.below.values():
            for name in self.part:
                attributes.pop(name, None)

    def _attributes(self, names: str, most: int) -> dict[str, str]:
        chosen = self.dice.sample(names, self.dice.randrange(1, most + 1))
        return {name: self.dice.choice(("", "", "optional ")) + self.dice.choice(SINGLE) for name in chosen}

    @property
    def types(self) -> str:
        above = {"B": "A", "C": "A", "D": self.dice.choice(("A", "B"))}
        if above["D"] == "B":
            for name in self.below["B"]:
                self.below["D"].pop(name, None)
        lines = ["version: 1", "types:", f"  A: {_written(self.part)}"]
        lines += [f"  {name}({above[name]}): {_written(self.below[name])}" for name in "BCD"]
        lines += ["events:", "  E: {k: A, l: optional A, n: int}", "  F(E): {m: optional A}"]
        return "\n".join(lines) + "\n"

    @property
    def context(self) -> str:
        rules = [f"{type} -> {name}" for type, name in (("double", "twice"), ("long", "other"), ("string", "loud"))]
        chosen = [rule for rule in rules if self.dice.random() < 0.6]
        functions, double = FUNCTIONS, self.part.get("p") == "double"
        mine = [name for name, written in self.below["B"].items() if written == "double"]
        if double and mine and self.dice.random() < 0.7:
            functions += f"  flat: B -> A = struct({self._rest()}value.p + value.{mine[0]} AS p)\n"
            chosen.append("B -> flat")
        return f"version: 1\ncontext: {CONTEXT}\nrules:\n  out: [{', '.join(chosen)}]\n{functions}"

    def _rest(self) -> str:
        return "value.q AS q, " if "q" in self.part else ""


def _written(attributes: dict[str, str]) -> str:
    return "{" + ", ".join(f'{name}: "{type}"' for name, type in attributes.items()) + "}"


def condition(dice: random.Random, part: Struct, kind: str) -> str:
    place = dice.choice(("k", "k", "l", "m") if kind == "F" else ("k", "k", "l"))
    if dice.random() < 0.3:
        return f"{dice.choice(('', 'NOT '))}{place} IS {dice.choice('ABCD')}"
    attribute = dice.choice(part.attributes)
    name = f"{place}.{attribute.name}"
    unit = f" {attribute.unit}" if str(attribute.unit) else ""
    match str(plain(attribute.type)).partition("(")[0]:
        case "double" | "int" | "long" | "decimal":
            return f"{name} {dice.choice(('>', '<=', '='))} {dice.choice((-7, 0, 1, 2, 100))}{unit}"
        case "string":
            return f"{name} {dice.choice(('=', '>', '<>'))} '{dice.choice(('a', 'A', '', 'straße'))}'"
        case "boolean":
            return f"{name} = TRUE"
        case _:
            return f"{name} IS NULL"


def where(dice: random.Random, types: Types, kind: str) -> str:
    part = types.types["A"]
    assert isinstance(part, Struct)
    one, other = condition(dice, part, kind), condition(dice, part, kind)
    return dice.choice((one, f"{one} AND {other}", f"{one} OR {other}", f"n > 0 AND ({one})"))


def wanted_by(dice: random.Random, number: int, types: Types) -> Subscription:
    context, kind = dice.choice(("root", CONTEXT)), dice.choice("EEF")
    return Subscription(
        client="desk",
        name=f"s{number}",
        types=(kind,),
        where=where(dice, types, kind),
        context=context,
        durable=False,
    )


def routed(plan: Plan, rows: list[Row]) -> set[tuple[int, str]]:
    return {(place, f"desk/{name}") for place, _, names in plan.routing.route(rows).live for name in names.split(",")}


def references(plan: Plan) -> dict[str, NaiveRouting]:
    """Subscriptions of root and of the context, each in the terms of its own."""
    deployment = plan.deployment
    made = {}
    for context in ("root", CONTEXT):
        own = {id: each for id, each in deployment.subscriptions.items() if each.context == context}
        types = deployment.contexts.by_id[context].types
        made[context] = NaiveRouting(types=types, functions=deployment.definitions, subscriptions=own)
    return made


def judge(folder: Path, seed: int) -> int:
    project = Project(seed)
    files = {f"contexts/{CONTEXT}.yaml": project.context, "clients/all.yaml": "version: 1\nclients: {desk: {}}\n"}
    declared = deployment_of(folder / str(seed), (), types=project.types, more=files)
    dice, root = random.Random(seed), declared.types
    asked = [wanted_by(dice, number, root) for number in range(SUBSCRIPTIONS)]
    plan = compile_plan(replace(declared, subscriptions={each.id: each for each in asked}))
    lines = [line(dice, root, number) for number in range(EVENTS)]
    origin = Origin(client="gate", incarnation=1, seq=1, received=RECEIVED, pos=65_536)
    rows = [row for row in plan.interpretation.decode(join_lines(lines), origin) if isinstance(row, Row)]
    assert len(rows) == EVENTS
    reference = references(plan)
    one_by_one = [routed(plan, [row]) for row in rows]
    together = routed(plan, rows * (MANY // EVENTS))
    compared = 0
    for place, row in enumerate(rows):
        delivered = out_of_root(plan.interpretation, row, CONTEXT)
        theirs = reference[CONTEXT].match(delivered) if isinstance(delivered, Row) else None
        expected = {"root": reference["root"].match(row), CONTEXT: theirs}
        for each in asked:
            matched = expected[each.context]
            if matched is None:
                continue  # wanted or not, it is a dead letter in the context
            found = (
                plan.routing.matches(each.id, row),
                (0, each.id) in one_by_one[place],
                (place, each.id) in together,
            )
            assert found == (each.id in matched,) * 3, (seed, each.context, each.types, each.where, row.data)
            compared += 1
    return compared


def line(dice: random.Random, types: Types, number: int) -> bytes:
    kind = types.event(dice.choice("EEF"))
    assert kind is not None
    data: Any = encode(kind, make_attributes(dice, kind, types), types)
    event = {"specversion": "1.0", "id": str(number), "source": "gate", "type": kind.name}
    return json.dumps({**event, "time": "2026-11-01T08:30:00Z", "data": data}).encode()


@seeds(range(5), range(100, 1_000))
def test_filters_over_subtypes_equal_the_reference(tmp_path: Path, seeds: range) -> None:
    assert sum(judge(tmp_path, seed) for seed in seeds) > 50 * len(seeds)
