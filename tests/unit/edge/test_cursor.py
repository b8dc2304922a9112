"""The cursor of the edge: it passes over nothing that is not delivered, in whatever order things are."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from situ.edge.dispatcher import EdgeCursor


@pytest.mark.parametrize("log", ["root", "dead"])
def test_the_cursor_is_where_everything_before_it_is_delivered(log: str) -> None:
    for seed in range(50):
        chance = random.Random(seed)
        cursor, begin = EdgeCursor(None), chance.randrange(100)
        cursor.pass_over(log, begin)
        order = sorted(range(begin + 1, begin + 40), key=lambda seq: seq + chance.uniform(0, 6))
        delivered: set[int] = set()
        for seq in order:
            cursor.deliver(log, seq)
            delivered.add(seq)
            missing = min((each for each in order if each not in delivered), default=begin + 40)
            assert getattr(cursor, log) == missing - 1, (seed, order)
            if chance.random() < 0.2:
                cursor.deliver(log, chance.choice(sorted(delivered)))  # what comes again changes nothing


def test_what_the_log_has_no_more_is_passed_over() -> None:
    cursor = EdgeCursor(None)
    cursor.pass_over("root", 5)
    cursor.deliver("root", 9)
    cursor.deliver("root", 7)
    cursor.pass_over("root", 7)
    assert cursor.root == 7
    cursor.deliver("root", 8)
    assert cursor.root == 9


def test_a_process_goes_on_before_what_was_not_delivered(tmp_path: Path) -> None:
    file = tmp_path / "cursor.json"
    cursor = EdgeCursor(file)
    cursor.pass_over("root", 3)
    cursor.pass_over("dead", 0)
    cursor.deliver("root", 5)  # a client's, stored behind what a policy said and routed before it
    cursor.save()
    assert json.loads(file.read_text())["root"] == EdgeCursor(file).root == 3
