"""One event's failure is told from that of everything else, has the same id each time, and does not fill the log."""

from __future__ import annotations

import errno
import random
from datetime import timedelta

import pytest

from situ.event.failures import FailureLog, failure_of, is_of_event, largest_working
from situ.event.row import BadRow, Origin, Row
from situ.lang.catalogue import BUS_FAILED, NOT_JSON
from situ.lang.problems import SituError
from situ.lang.types.table import Types
from situ.stages.decode import EventDecoder
from tests.types_files import types_of

ORIGIN = Origin(client="one", incarnation=1, seq=1, received=1_793_520_000_000_000, pos=0)


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 - that is what it is for
        return caught


@pytest.mark.parametrize(
    ("error", "of_event"),
    [
        (KeyError("r"), True),
        (RecursionError(), True),
        (AssertionError(), True),
        (SituError(NOT_JSON(reason="x", place="")), True),
        (MemoryError(), False),
        (OSError(errno.ENOSPC, "full"), False),
        (TimeoutError(), False),
        (SituError(BUS_FAILED(what="x", reason="y")), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_what_the_environment_does_is_no_events_failure(error: BaseException, of_event: bool) -> None:
    assert is_of_event(error) is of_event
    if not of_event:
        with pytest.raises(type(error)):
            failure_of(raised(error), "decode")


def test_the_same_mistake_has_the_same_id_and_another_another() -> None:
    def fail(value: str) -> None:
        raise KeyError(value)

    def caught(value: str) -> Exception:
        try:
            fail(value)
        except KeyError as error:
            return error
        raise AssertionError

    one, other = failure_of(caught("a"), "route"), failure_of(caught("secret"), "route")
    assert one.id == other.id
    assert failure_of(caught("a"), "stamp").id != one.id
    (code, _, message, _), *_ = other.errors
    assert code == "E705"
    assert other.id in message
    assert "secret" not in message, "what it says may be about others"
    assert "secret" in other.trace


def test_the_traceback_of_a_deep_recursion_is_short() -> None:
    def deeper(level: int) -> int:
        return deeper(level + 1) + 1

    with pytest.raises(RecursionError) as raised:
        deeper(0)
    assert len(failure_of(raised.value, "decode").trace) < 10_000


def test_of_a_million_failures_a_few_are_written_down() -> None:
    log = FailureLog()
    trace = failure_of(raised(KeyError("r")), "route").trace
    texts = [text for _ in range(1000) for text in log.texts([trace] * 100)]
    assert len(texts) == 3 + len(("10", "100", "1,000", "10,000", "100,000"))
    assert "100,000 times so far" in texts[-1]


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_working_part_is_what_works_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    things = list(range(chance.randrange(0, 200)))
    bad = {each for each in things if chance.random() < chance.choice((0, 0.02, 0.5))}
    tries = 0

    def work(some: list[int]) -> None:
        nonlocal tries
        tries += 1
        if bad & set(some):
            raise KeyError

    good, failed = largest_working(things, work)
    assert good == [each for each in things if each not in bad]
    assert [each for each, _ in failed] == sorted(bad)
    assert tries <= 2 + 2 * len(bad) * 9 + 2


def types() -> Types:
    return types_of("events:\n  Level: {tank: string, level: double}\n")


def test_an_event_of_twenty_thousand_lists_is_refused_for_its_depth_and_its_neighbours_go_on() -> None:
    """It ended the router once, and every batch of Spark that had it."""
    intake = EventDecoder(types(), extra="drop", ahead=timedelta(minutes=5), limit=1 << 20)
    good = b'{"specversion":"1.0","type":"Level","data":{"tank":"t","level":1.0}}'
    for inside in (b"[" * 20_000 + b"]" * 20_000, b'{"a":' * 20_000 + b"1" + b"}" * 20_000, b"[" * 40_000):
        deep = b'{"specversion":"1.0","type":"Level","data":{"tank":"t","level":1.0,"x":%b}}' % inside
        rows = intake.decode(b"[\n" + b",\n".join([good, deep, good]) + b"\n]", ORIGIN)
        assert [type(each) for each in rows] == [Row, BadRow, Row]
        assert isinstance(rows[1], BadRow)
        assert rows[1].errors[0][0] in ("E704", "E701")
        alone = intake.decode(b"[\n" + deep + b"\n]", ORIGIN)
        assert [type(each) for each in alone] == [BadRow]
