"""Forwarding: what is older than a link counts for nothing, and advice for somebody who is gone leads nowhere."""

from __future__ import annotations

from situ.quality.model.allocation_problem import Target
from situ.quality.model.declarations import Capability, Profile, QualityProperty
from situ.quality.overlay.forwarder import (
    AdviceUndeliverable,
    AdviceWanted,
    AdvisePublisher,
    Effect,
    LinkDown,
    LinkUp,
    Message,
    MessageReceived,
    OfferForwarder,
    OfferMessage,
    ProfileLearned,
    ProfileLost,
    ProfileProvided,
    ProfileWithdrawn,
    SendToNeighbour,
    step,
)

RATE = QualityProperty(name="rate", lo=0, hop="worst", quantum=0)
DELAY = QualityProperty(name="delay", lo=0, maximise=False, hop="add", quantum=0)


def profile(rate: float = 5, best: float = 60) -> Profile:
    capabilities = {
        "rate": Capability(about=RATE, lb=1, ub=best, cv=rate),
        "delay": Capability(about=DELAY, lb=1, ub=9, cv=9),
    }
    return Profile(publisher="sensor", type="t", capabilities=capabilities)


def sent(effects: tuple[Effect, ...]) -> list[Message]:
    return [each.message for each in effects if isinstance(each, SendToNeighbour)]


def pair(epoch: int = 1, figures: dict[str, float] | None = None) -> tuple[OfferForwarder, OfferForwarder]:
    """Two routers, the first of which has a publisher; the other one has not heard of it yet."""
    a, b = OfferForwarder(name="a"), OfferForwarder(name="b")
    step(a, LinkUp(neighbour="b", epoch=epoch, figures=figures or {}))
    step(b, LinkUp(neighbour="a", epoch=epoch, figures=figures or {}))
    return a, b


def test_what_was_sent_over_a_former_link_is_not_heard_over_the_next() -> None:
    a, b = pair()
    (stale,) = sent(step(a, ProfileProvided(profile=profile(), pool="p")))
    for router, neighbour in ((a, "b"), (b, "a")):
        step(router, LinkDown(neighbour=neighbour))
    step(a, ProfileWithdrawn(profile="sensor/t"))
    for router, neighbour in ((a, "b"), (b, "a")):
        assert step(router, LinkUp(neighbour=neighbour, epoch=2)) == ()
    assert step(b, MessageReceived(neighbour="a", message=stale)) == ()
    assert b.known() == {}


def test_what_comes_before_the_link_waits_for_it_unless_it_is_older() -> None:
    a, b = OfferForwarder(name="a"), OfferForwarder(name="b")
    step(a, ProfileProvided(profile=profile(), pool="p"))
    (old,) = sent(step(a, LinkUp(neighbour="b", epoch=1)))
    step(a, ProfileProvided(profile=profile(rate=7), pool="q"))
    (new,) = sent(step(a, LinkUp(neighbour="b", epoch=2)))
    assert isinstance(new, OfferMessage)
    for message in (old, new):
        assert step(b, MessageReceived(neighbour="a", message=message)) == ()
    heard = step(b, LinkUp(neighbour="a", epoch=2))
    assert [each.pool for each in heard if isinstance(each, ProfileLearned)] == ["q"]
    assert [pool for _, pool in b.known().values()] == ["q"]
    assert step(b, LinkUp(neighbour="a", epoch=1)) == ()


def test_nothing_is_left_of_a_link_that_is_lost() -> None:
    a, b = pair()
    c = OfferForwarder(name="c")
    step(b, LinkUp(neighbour="c", epoch=1))
    step(c, LinkUp(neighbour="b", epoch=1))
    (first,) = sent(step(a, ProfileProvided(profile=profile(), pool="p")))
    (second,) = sent(step(b, MessageReceived(neighbour="a", message=first)))
    step(c, MessageReceived(neighbour="b", message=second))
    assert [each.publisher for each, _ in c.known().values()] == ["b~1"]
    effects = step(b, LinkDown(neighbour="a"))
    assert ProfileLost(profile="a~1/t") in effects
    (third,) = sent(effects)
    assert step(c, MessageReceived(neighbour="b", message=third)) == (ProfileLost(profile="b~1/t"),)
    assert c.known() == {}


def test_a_profile_without_news_is_not_told_again() -> None:
    a, _ = pair()
    assert len(sent(step(a, ProfileProvided(profile=profile(), pool="p")))) == 1
    assert not sent(step(a, ProfileProvided(profile=profile(), pool="p")))
    # A link that carries 12 a minute hides what happens above.
    a, _ = pair(figures={"rate": 12})
    step(a, ProfileProvided(profile=profile(rate=20), pool="p"))
    assert not sent(step(a, ProfileProvided(profile=profile(rate=40), pool="p")))


def test_advice_is_undone_link_by_link_and_leads_nowhere_when_the_publisher_is_gone() -> None:
    a, b = pair(figures={"delay": 2.0})
    (offered,) = sent(step(a, ProfileProvided(profile=profile(), pool="p")))
    step(b, MessageReceived(neighbour="a", message=offered))
    ((id, (behind, _)),) = b.known().items()
    assert behind.capabilities["delay"].cv == 11
    (advice,) = sent(step(b, AdviceWanted(profile=id, target=Target(values={"rate": 30, "delay": 5}))))
    assert step(a, MessageReceived(neighbour="b", message=advice)) == (
        AdvisePublisher(profile="sensor/t", target=Target(values={"rate": 30, "delay": 3})),
    )
    step(a, ProfileProvided(profile=profile(best=20), pool="p"))
    gone = AdviceUndeliverable(neighbour="b", publisher="a~1", type="t")
    assert step(a, MessageReceived(neighbour="b", message=advice)) == (gone,)
    step(a, ProfileWithdrawn(profile="sensor/t"))
    assert step(a, MessageReceived(neighbour="b", message=advice)) == (gone,)
    step(a, ProfileProvided(profile=profile(), pool="p"))
    assert step(a, MessageReceived(neighbour="b", message=advice)) == (gone,), "a handle is never given again"
