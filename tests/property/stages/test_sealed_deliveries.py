"""What leaves for a client among scopes is sealed by both engines alike, and what waits in a queue is not yet."""

from __future__ import annotations

import random
import re
from collections import Counter

from situ.event.lines import encode_rows
from situ.event.message import Message, split_lines
from situ.event.seal import seal_of
from situ.lang.records import replace
from situ.stages.deliver import DeliveryBatcher, interpret_out, pack, route
from situ.stages.plan import compile_plan
from situ.stages.shape import ShapedDeliveries
from tests.property.stages.test_visibility import make_deployment, make_row
from tests.scopes import make_graph, make_tags
from tests.volume import cases

SECRET = "secret"
_KEY = re.compile(rb'"situkey":"([^"]+)"')


def keys_in(messages: list[Message], about: str) -> Counter[tuple[str, str]]:
    """Subject and key of each event in messages to clients, or to queues."""
    found: Counter[tuple[str, str]] = Counter()
    for message in messages:
        if f".{about}." in message.subject:
            for line in split_lines(message.body):
                match = _KEY.search(line)
                assert match is not None
                assert (b"situpos" in line) == (about == "out"), line
                found[message.subject, match[1].decode()] += 1
    return found


@cases(15, 60)
def test_both_engines_seal_what_leaves_and_nothing_else(cases: int) -> None:
    seal, sealed = seal_of(SECRET), 0
    for seed in range(cases):
        dice = random.Random(seed)
        graph = make_graph(dice, most_dimensions=2)
        deployment = make_deployment(dice, graph, [make_tags(dice, graph) for _ in range(3)]).numbered()
        deployment = replace(deployment, numbers=replace(deployment.numbers, seal=SECRET), epoch=1)
        plan = compile_plan(deployment)
        assert plan.seeing is not None
        rows = [made[0] for number in range(12) if (made := make_row(dice, number, deployment)) is not None]
        plan.seeing.stamp(rows)
        for row in rows:
            shaped = ShapedDeliveries(rows=[row], lines=encode_rows([row]), routed=route([row], plan))
            worded = interpret_out(shaped, plan)
            packed = pack([row], worded, plan)
            edge = [*packed.stored, *packed.sent]
            delivery = DeliveryBatcher(plan)
            spark = [*delivery.add([row], worded), *delivery.finish()]
            for about in ("live", "out"):
                keys = keys_in(edge, about)
                assert keys == keys_in(spark, about), seed
                meant = seal.key(row.key) if about == "live" else row.key
                assert {key for _, key in keys} <= {meant}, seed
                sealed += keys.total() if about == "live" else 0
    assert sealed > 0.8 * cases
