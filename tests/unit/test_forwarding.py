"""Forwarding: what is older than a link counts for nothing, and advice for somebody who is gone leads nowhere."""

from __future__ import annotations

from situ.quality.forwarding import Router, step
from situ.quality.problem import Target
from situ.quality.profile import Capability, Profile
from situ.quality.property import Property
from situ.quality.routed import (
    Adapt,
    Advised,
    Came,
    Effect,
    Impossible,
    Known,
    Linked,
    Lost,
    Message,
    Offered,
    Provided,
    Send,
    Unlinked,
    Withdrawn,
)

RATE = Property(name="rate", lo=0, hop="worst", quantum=0)
DELAY = Property(name="delay", lo=0, maximise=False, hop="add", quantum=0)


def profile(rate: float = 5, best: float = 60) -> Profile:
    capabilities = {
        "rate": Capability(about=RATE, lb=1, ub=best, cv=rate),
        "delay": Capability(about=DELAY, lb=1, ub=9, cv=9),
    }
    return Profile(publisher="sensor", type="t", capabilities=capabilities)


def sent(effects: tuple[Effect, ...]) -> list[Message]:
    return [each.message for each in effects if isinstance(each, Send)]


def pair(epoch: int = 1, figures: dict[str, float] | None = None) -> tuple[Router, Router]:
    """Two routers, the first of which has a publisher; the other one has not heard of it yet."""
    a, b = Router(name="a"), Router(name="b")
    step(a, Linked(neighbour="b", epoch=epoch, figures=figures or {}))
    step(b, Linked(neighbour="a", epoch=epoch, figures=figures or {}))
    return a, b


def test_what_was_sent_over_a_former_link_is_not_heard_over_the_next() -> None:
    a, b = pair()
    (stale,) = sent(step(a, Provided(profile=profile(), pool="p")))
    for router, neighbour in ((a, "b"), (b, "a")):
        step(router, Unlinked(neighbour=neighbour))
    step(a, Withdrawn(profile="sensor/t"))
    for router, neighbour in ((a, "b"), (b, "a")):
        assert step(router, Linked(neighbour=neighbour, epoch=2)) == ()
    assert step(b, Came(neighbour="a", message=stale)) == ()
    assert b.known() == {}


def test_what_comes_before_the_link_waits_for_it_unless_it_is_older() -> None:
    a, b = Router(name="a"), Router(name="b")
    step(a, Provided(profile=profile(), pool="p"))
    (old,) = sent(step(a, Linked(neighbour="b", epoch=1)))
    step(a, Provided(profile=profile(rate=7), pool="q"))
    (new,) = sent(step(a, Linked(neighbour="b", epoch=2)))
    assert isinstance(new, Offered)
    for message in (old, new):
        assert step(b, Came(neighbour="a", message=message)) == ()
    heard = step(b, Linked(neighbour="a", epoch=2))
    assert [each.pool for each in heard if isinstance(each, Known)] == ["q"]
    assert [pool for _, pool in b.known().values()] == ["q"]
    assert step(b, Linked(neighbour="a", epoch=1)) == ()


def test_nothing_is_left_of_a_link_that_is_lost() -> None:
    a, b = pair()
    c = Router(name="c")
    step(b, Linked(neighbour="c", epoch=1))
    step(c, Linked(neighbour="b", epoch=1))
    (first,) = sent(step(a, Provided(profile=profile(), pool="p")))
    (second,) = sent(step(b, Came(neighbour="a", message=first)))
    step(c, Came(neighbour="b", message=second))
    assert [each.publisher for each, _ in c.known().values()] == ["b~1"]
    effects = step(b, Unlinked(neighbour="a"))
    assert Lost(profile="a~1/t") in effects
    (third,) = sent(effects)
    assert step(c, Came(neighbour="b", message=third)) == (Lost(profile="b~1/t"),)
    assert c.known() == {}


def test_a_profile_without_news_is_not_told_again() -> None:
    a, _ = pair()
    assert len(sent(step(a, Provided(profile=profile(), pool="p")))) == 1
    assert not sent(step(a, Provided(profile=profile(), pool="p")))
    # A link that carries 12 a minute hides what happens above.
    a, _ = pair(figures={"rate": 12})
    step(a, Provided(profile=profile(rate=20), pool="p"))
    assert not sent(step(a, Provided(profile=profile(rate=40), pool="p")))


def test_advice_is_undone_link_by_link_and_leads_nowhere_when_the_publisher_is_gone() -> None:
    a, b = pair(figures={"delay": 2.0})
    (offered,) = sent(step(a, Provided(profile=profile(), pool="p")))
    step(b, Came(neighbour="a", message=offered))
    ((id, (behind, _)),) = b.known().items()
    assert behind.capabilities["delay"].cv == 11
    (advice,) = sent(step(b, Advised(profile=id, target=Target(values={"rate": 30, "delay": 5}))))
    assert step(a, Came(neighbour="b", message=advice)) == (
        Adapt(profile="sensor/t", target=Target(values={"rate": 30, "delay": 3})),
    )
    step(a, Provided(profile=profile(best=20), pool="p"))
    gone = Impossible(neighbour="b", publisher="a~1", type="t")
    assert step(a, Came(neighbour="b", message=advice)) == (gone,)
    step(a, Withdrawn(profile="sensor/t"))
    assert step(a, Came(neighbour="b", message=advice)) == (gone,)
    step(a, Provided(profile=profile(), pool="p"))
    assert step(a, Came(neighbour="b", message=advice)) == (gone,), "a handle is never given again"
