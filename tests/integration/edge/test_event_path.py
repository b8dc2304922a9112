"""The way of an event on the edge stays short, and the page about the architecture draws it as it is."""

from __future__ import annotations

import asyncio

import pytest

from scripts.trace_event import BEGIN, END, PAGE, Hop, drawn, trace

MOST_HOPS, MOST_CROSSINGS = 40, 16


@pytest.fixture(scope="module")
def hops() -> list[Hop]:
    return asyncio.run(trace())


def test_the_way_is_short(hops: list[Hop]) -> None:
    crossings = [hop for hop in hops if hop.is_crossing]
    assert len(hops) <= MOST_HOPS, drawn(hops)
    assert len(crossings) <= MOST_CROSSINGS, drawn(hops)


def test_it_goes_from_the_router_over_the_log_to_the_subscribers(hops: list[Hop]) -> None:
    """A trace that misses a part of the way would be short, too."""
    names = [hop.callee.partition(" ")[2] for hop in hops]
    wanted = ["Router._handle", "step", "EdgeEngine.take", "ingest", "MemoryBus.store", "deliver", "MemoryBus.send"]
    assert [name for name in dict.fromkeys(names) if name in wanted] == wanted
    assert names[-1] == "EdgeDetection.take"


def test_the_page_draws_it(hops: list[Hop]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    written = page.partition(BEGIN)[2].partition(END)[0].strip()
    assert written == drawn(hops), "run `scripts/trace_event.py --write`"
