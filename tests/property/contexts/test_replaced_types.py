"""Types of root replaced twice: what is sent in the terms of contexts that know the old one comes in as the new one."""

from __future__ import annotations

import random
from collections.abc import Iterator

from situ.contexts.model import Context, Direction
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.transformation import Transformation, transformations
from situ.contexts.versions import as_root
from situ.lang.expr.runtime import FAILURES
from situ.lang.problems import Problems
from situ.lang.records import replace
from situ.lang.types.json_codec import decode, encode
from situ.lang.types.model import Struct
from tests.property.contexts.test_compatibility import replaced
from tests.property.contexts.test_transformation import outcome
from tests.transformations import ENVELOPE, Case, generated_case, make_attributes
from tests.volume import seeds


def inbound(seeds: range) -> Iterator[tuple[int, Case, Struct]]:
    """Cases on the way in, and a struct of root that can be replaced."""
    for seed in seeds:
        case = generated_case(seed)
        if case is None or case.direction is not Direction.IN:
            continue
        types = case.context.root.types
        lonely = [
            each
            for each in types.types.values()
            if isinstance(each, Struct) and each.attributes and not each.supers and each.name not in types.events
            if len(types.subtypes(each)) == 1
        ]
        if lonely:
            yield seed, case, random.Random(seed).choice(lonely)


def replaced_twice(case: Case, struct: Struct) -> tuple[Context, Context]:
    """The context over the root that it knows, below which the struct has grown twice; and that root."""
    root = case.context.root
    base, former = replaced(root, struct, "y")
    newer = base.types.types[struct.name]
    assert isinstance(newer, Struct)
    _, between = replaced(base, newer, "yy")
    over = replace(former, parent=as_root(between))
    below: Context = replace(as_root(over), functions=root.functions, rules=root.rules)
    for each in reversed(list(case.context.chain)[:-1]):
        below = replace(each, parent=below)
    return below, over


def grown(value: object) -> int:
    """How many structs in a value have what is new."""
    if isinstance(value, dict):
        return (value.get("y") == value.get("yy") == "new") + sum(map(grown, value.values()))
    return sum(map(grown, value)) if isinstance(value, list) else 0


def compare(seed: int, way: Transformation, new: Transformation, forth: Transformation) -> int:
    """What comes in now is what came in, and then goes over to the new type."""
    dice = random.Random(seed)
    found_new = 0
    for _ in range(4):
        made = make_attributes(dice, way.source, way.types)
        data = decode(way.source, encode(way.source, made, way.types), way.types)  # with its defaults
        found = outcome(Converter(new).data, ENVELOPE, data)
        try:
            before = Converter(way).data(ENVELOPE, data)
        except FAILURES:
            assert found is None, (seed, way.source.name, data)
            continue
        assert found == outcome(Converter(forth).data, ENVELOPE, before), (seed, way.source.name, data)
        found_new += grown(found) > 0
    return found_new


@seeds(range(60), range(400))
def test_what_is_sent_in_old_terms_comes_in_as_what_is_new(seeds: range) -> None:
    compared = 0
    for seed, case, struct in inbound(seeds):
        below, over = replaced_twice(case, struct)
        old = transformations(case.context, Direction.IN, Problems())
        new = transformations(below, Direction.IN, Problems())
        forth = transformations(over, Direction.IN, Problems())
        for name, way in old.items():
            if way.target.name in forth:
                assert name in new, (seed, name)
                compared += compare(seed, way, new[name], forth[way.target.name])
    assert compared > len(seeds) / 8
