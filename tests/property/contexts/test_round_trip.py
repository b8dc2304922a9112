"""Generated contexts with a way in and back: where the shortcut is safe, what was sent is what would be delivered."""

from __future__ import annotations

import decimal
import math
import random
from dataclasses import dataclass, field
from typing import Any

from situ.contexts.model import Direction
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.round_trip import check_shortcut
from situ.contexts.transform.transformation import transformations
from situ.lang.expr.runtime import FAILURES
from situ.lang.problems import Problems
from situ.lang.types.json_codec import decode, encode
from tests.context_files import load
from tests.transformations import ENVELOPE, make_attributes
from tests.volume import seeds

TYPES = """
types:
  Spot: {x: double m, y: double m}
  Mark(string): {}
  Base: {n: long}
  More(Base): {extra: string}
  Other: {a: double, b: string}
  Zone: {x: double m}
"""
OWN = """
types:
  Place: {x: double ft, y: double ft}
  Half: {x: double ft}
  Own: {n: long}
  Pair: {b: string, a: double}
  Area: {x: double ft}
  Wide(Area): {w: string}
"""
FUNCTIONS = """
functions:
  up: double -> double = value * 4 + 1
  down: double -> double = (value - 1) / 4
  worse: double -> double = (value - 1) / 4.1
  shout: {signature: string -> string, expr: "value || '!'", inverse: hush}
  hush: {signature: string -> string, expr: "substring(value, 1, length(value) - 1)"}
  quiet: string -> string = lower(value)
  other_way: double -> double = 0 - value
  pair: {signature: Other -> Pair, expr: "struct(value.a AS a, value.b AS b)", inverse: unpair}
  unpair: Pair -> Other = struct(value.a AS a, value.b AS b)
  to_ft: double m -> double ft = value * 3.2
"""


@dataclass
class Made:
    """The lines of a context in which one event type goes to root and comes back."""

    root: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    into: dict[str, str] = field(default_factory=dict)
    out: dict[str, str] = field(default_factory=dict)
    rules_in: list[str] = field(default_factory=list)
    rules_out: list[str] = field(default_factory=list)

    def add(self, name: str, root: str, own: str, into: str = "", out: str = "") -> None:
        self.root.append(f"{name}: {root}")
        self.own.append(f"{name}: {own}")
        if into:
            self.rules_in.append(f"U.{name} -> {into}")
        if out:
            self.rules_out.append(f"T.{name} -> {out}")

    def files(self, functions: str) -> dict[str, str]:
        maps = [f"  - in: U -> T\n    attributes: {{{_pairs(self.into)}}}"] if self.into else ["  - in: U -> T"]
        maps += [f"  - out: T -> U\n    attributes: {{{_pairs(self.out)}}}"] if self.out else ["  - out: T -> U"]
        rules = f"rules: {{in: [{', '.join(self.rules_in)}], out: [{', '.join(self.rules_out)}]}}"
        return {
            "types/t.yaml": TYPES + f"events:\n  T: {{{', '.join(self.root)}}}\n",
            "contexts/c.yaml": "context: c\n"
            + OWN
            + f"events:\n  U: {{{', '.join(self.own)}}}\nmaps:\n"
            + "\n".join(maps)
            + f"\n{rules}\n{functions}",
        }


def _pairs(attributes: dict[str, str]) -> str:
    return ", ".join(f"{target}: {source}" for target, source in attributes.items())


def made(seed: int) -> Made:
    dice = random.Random(seed)
    found = Made()
    for number in range(dice.randrange(1, 5)):
        name = f"a{number}"
        optional = "optional " if dice.random() < 0.3 else ""
        kind = dice.randrange(23)
        match kind:
            case 0 | 1:
                found.add(name, f"{optional}double m", f"{optional}double km")
            case 2:
                found.add(name, f"{optional}string", f"{optional}string")
            case 3:
                found.add(name, f"{optional}double degC", f"{optional}double degF")
            case 4:
                found.add(name, f"{optional}Spot", f"{optional}Place")
            case 5:
                found.add(name, "'[Spot]'", "'[Place]'")
            case 6:
                found.add(name, f"'{optional}[double] m'", f"'{optional}[double] cm'")
            case 7:
                found.add(name, f"{optional}double", f"{optional}double", "down", "up")
            case 8:
                found.add(name, f"{optional}double", f"{optional}double", "worse", "up")
            case 9:
                found.add(name, f"{optional}string", f"{optional}string", "shout", "hush")
            case 10:
                found.add(name, f"{optional}string", f"{optional}string", "quiet", "identity")
            case 11:
                found.add(name, f"{optional}double", f"{optional}double", "other_way", "other_way")
            case 12:
                found.add(name, "string", f"{{type: string, optional: {str(bool(optional)).lower()}}}")
            case 13:
                found.add(name, "{type: string, default: none}", f"{optional}string")
            case 14:
                found.add(name, f"{optional}string", "{type: string, default: none}")
            case 15:
                found.own.append(f"{name}: optional string")
            case 16:
                found.root.append(f"{name}: {{type: long, default: 7}}")
            case 17:
                found.add(name, f"{optional}Other", f"{optional}Pair", "unpair", "pair")
            case 18:
                found.root += [f"{name}: double m", f"{name}_b: double m"]
                found.own += [f"{name}_x: double ft", f"{name}_y: double ft"]
                turned = dice.random() < 0.3
                found.into |= {name: f"{name}_x", f"{name}_b": f"{name}_y"}
                found.out |= {
                    f"{name}_x": f"{name}_b" if turned else name,
                    f"{name}_y": name if turned else f"{name}_b",
                }
            case 19:
                found.add(name, f"{optional}Base", f"{optional}{dice.choice(['Base', 'Own'])}")
            case 20:
                found.add(
                    name, '"decimal(12,4) m"', '"decimal(12,4) cm"' if dice.random() < 0.5 else '"decimal(12,2) km"'
                )
            case 22:
                found.add(name, f"{optional}Zone", f"{optional}Area")
            case 21:
                found.root += [f"{name}: double m", f"{name}_b: double m"]
                found.own.append(f"{name}: Place")
                found.into |= {name: f"{name}.x", f"{name}_b": f"{name}.y"}
                found.out |= {f"{name}.x": name, f"{name}.y": f"{name}_b"}
    return found


def same(one: Any, other: Any) -> bool:
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
        case list(), list():
            return len(one) == len(other) and all(map(same, one, other))
        case float(), float():
            return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)  # 32 is added to a temperature and taken away
        case decimal.Decimal(), decimal.Decimal():
            return one == other
    return bool(one == other)


def judge(seeds: range) -> None:
    safe = unsafe = changed = 0
    reasons: set[str] = set()
    for seed in seeds:
        functions = FUNCTIONS if random.Random(seed).random() < 0.3 else FUNCTIONS.replace("to_ft:", "unused:", 1)
        functions = functions.replace("unused: double m -> double ft", "unused: double m -> double mi")
        contexts, problems = load(made(seed).files(functions))
        context = contexts.by_id.get("c")
        if context is None or any(each.is_error for each in problems):
            continue
        into = transformations(context, Direction.IN, Problems()).get("U")
        outbound = transformations(context, Direction.OUT, Problems())
        found = check_shortcut(into, outbound)
        if into is None or "T" not in outbound:
            continue
        there, back = Converter(into), Converter(outbound["T"])
        dice = random.Random(seed)
        differs = False
        for _ in range(12):
            sent = make_attributes(dice, into.source, into.types)
            sent = decode(into.source, encode(into.source, sent, into.types), into.types)
            try:
                delivered = back.data(ENVELOPE, there.data(ENVELOPE, sent))
            except FAILURES:
                continue  # what does not come in is not delivered, and what cannot be put in words there neither
            if found.safe:
                assert same(sent, delivered), (seed, made(seed).files(functions)["contexts/c.yaml"], sent, delivered)
            differs = differs or not same(sent, delivered)
        safe, unsafe, changed = safe + found.safe, unsafe + (not found.safe), changed + differs
        reasons.add(found.reason)
    assert safe > len(seeds) / 8
    assert changed > unsafe / 2, "what is not safe is mostly not the same"
    assert len(reasons) > 10


@seeds(range(60), range(10_000, 20_000))
def test_what_was_sent_is_what_would_be_delivered(seeds: range) -> None:
    judge(seeds)
