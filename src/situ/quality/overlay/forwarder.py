"""How routers on a tree tell each other what publishers offer, and pass advice back: a state machine without I/O.

Messages, inputs and effects come first, as plain data; `OfferForwarder` is the state of one router, `step` the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.lang.records import replace
from situ.quality.model.allocation_problem import Target
from situ.quality.model.declarations import Profile
from situ.quality.overlay.offers import (
    MOST_OFFERS,
    Figures,
    frontier,
    profile_after_link,
    target_before_link,
    truncated,
)

# ── messages between routers ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferMessage:
    """All that the sender offers of some pools; of others nothing has changed."""

    epoch: int
    pools: Mapping[str, tuple[Profile, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceMessage:
    """Advice on its way to a publisher: ``publisher`` is a handle of the receiver."""

    epoch: int
    publisher: str
    type: str
    target: Target


Message = OfferMessage | AdviceMessage

# ── inputs ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileProvided:
    """A publisher of this router offers something, or something else than before."""

    profile: Profile
    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileWithdrawn:
    profile: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkUp:
    """There is a link to a neighbour, or it has other figures. Both ends are told the same epoch."""

    neighbour: str
    epoch: int
    figures: Figures = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkDown:
    neighbour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageReceived:
    """A message of a neighbour."""

    neighbour: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceWanted:
    """Somebody at this router wants a profile that is known here to be different."""

    profile: str
    target: Target


Input = ProfileProvided | ProfileWithdrawn | LinkUp | LinkDown | MessageReceived | AdviceWanted

# ── effects ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class SendToNeighbour:
    neighbour: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileLearned:
    """A profile that expectations of this router are to be matched against is there, or is another."""

    profile: Profile
    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileLost:
    profile: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisePublisher:
    """A publisher of this router is to be advised."""

    profile: str
    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceUndeliverable:
    """Advice that leads nowhere: nobody has that handle any more, or it can no longer do that."""

    neighbour: str
    publisher: str
    type: str


Effect = SendToNeighbour | ProfileLearned | ProfileLost | AdvisePublisher | AdviceUndeliverable


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The machine. A router sends each neighbour the offers of its own publishers and of what *other* neighbours sent, as
# they are behind the link, in its own name: whoever reads them knows a *handle* that the sender alone can resolve. It
# sends a pool only when that differs from what it sent last. What goes to a neighbour depends only on the part of the
# tree behind the sender, so every change runs away from where it happened, once over each link, and ends.
#
# Messages of one link arrive in the order in which they were sent. When a link is made anew both ends start over under
# a higher *epoch*, and what is older is ignored.

Pools = dict[str, dict[str, Profile]]
"""Pool → profiles by id."""
Effects = Iterator[Effect]


@dataclass(slots=True)
class RouterLink:
    """One end of a link to a neighbour."""

    epoch: int
    figures: Figures
    received: Pools = field(default_factory=dict)
    sent: dict[str, tuple[Profile, ...]] = field(default_factory=dict)
    """Pool → what the neighbour was told last."""


@dataclass(slots=True)
class OfferForwarder:
    """All that one router knows of offers."""

    name: str
    most: int = MOST_OFFERS
    """Offers per pool and link, beyond those that decide states."""
    own: Pools = field(default_factory=dict)
    """Profiles of its own publishers."""
    links: dict[str, RouterLink] = field(default_factory=dict)
    early: dict[str, list[Message]] = field(default_factory=dict)
    """Neighbour → messages of an epoch that this end does not know yet."""
    handles: dict[str, str] = field(default_factory=dict)
    """Profile → the publisher that neighbours know instead of its own, as long as it is there."""
    hidden: dict[str, str] = field(default_factory=dict)
    """The other way round."""
    handed_out: int = 0

    def known(self) -> dict[str, tuple[Profile, str]]:
        """Everything that expectations of this router are matched against, with its pool, by id."""
        return {
            id: (profile, pool)
            for pools in _places(self)
            for pool, profiles in pools.items()
            for id, profile in profiles.items()
        }


def step(router: OfferForwarder, given: Input) -> tuple[Effect, ...]:
    """What follows from an input. The router is the machine's own and changed in place."""
    return tuple(_STEPS[type(given)](router, given))


def _provided(router: OfferForwarder, given: ProfileProvided) -> Effects:
    profile, touched = given.profile, {given.pool}
    for pool, profiles in router.own.items():
        if pool != given.pool and profiles.pop(profile.id, None) is not None:
            touched.add(pool)
    router.own.setdefault(given.pool, {})[profile.id] = profile
    yield ProfileLearned(profile=profile, pool=given.pool)
    yield from _tell(router, touched)


def _withdrawn(router: OfferForwarder, given: ProfileWithdrawn) -> Effects:
    touched = [pool for pool, profiles in router.own.items() if profiles.pop(given.profile, None) is not None]
    if touched:
        yield _lose(router, given.profile)
        yield from _tell(router, touched)


def _linked(router: OfferForwarder, given: LinkUp) -> Effects:
    name, link = given.neighbour, router.links.get(given.neighbour)
    if link is not None and given.epoch < link.epoch:
        return
    touched: set[str] = set()
    if link is None or given.epoch > link.epoch:
        if link is not None:
            touched.update(link.received)
            yield from _forget(router, link)
        link = router.links[name] = RouterLink(given.epoch, given.figures)
        for message in router.early.pop(name, ()):
            if message.epoch == given.epoch:
                yield from _take(router, name, message, touched)
    link.figures = given.figures
    yield from _tell(router, touched, besides=name)
    yield from _tell_one(router, name, {pool for pools in _places(router, besides=name) for pool in pools})


def _unlinked(router: OfferForwarder, given: LinkDown) -> Effects:
    router.early.pop(given.neighbour, None)
    link = router.links.pop(given.neighbour, None)
    if link is not None:
        yield from _forget(router, link)
        yield from _tell(router, link.received)


def _came(router: OfferForwarder, given: MessageReceived) -> Effects:
    link, message = router.links.get(given.neighbour), given.message
    if link is None or message.epoch > link.epoch:
        router.early.setdefault(given.neighbour, []).append(message)
    elif message.epoch == link.epoch:
        touched: set[str] = set()
        yield from _take(router, given.neighbour, message, touched)
        yield from _tell(router, touched, besides=given.neighbour)


def _advised(router: OfferForwarder, given: AdviceWanted) -> Effects:
    yield from _pass_on(router, given.profile, given.target)


_STEPS: dict[type, Callable[[OfferForwarder, Any], Effects]] = {
    ProfileProvided: _provided,
    ProfileWithdrawn: _withdrawn,
    LinkUp: _linked,
    LinkDown: _unlinked,
    MessageReceived: _came,
    AdviceWanted: _advised,
}

# ── what neighbours offer ─────────────────────────────────────────────────────────────────────────


def _take(router: OfferForwarder, neighbour: str, message: Message, touched: set[str]) -> Effects:
    match message:
        case OfferMessage():
            yield from _take_offers(router, router.links[neighbour], message, touched)
        case AdviceMessage():
            yield from _take_advice(router, neighbour, message)


def _take_offers(router: OfferForwarder, link: RouterLink, message: OfferMessage, touched: set[str]) -> Effects:
    before = {id for pool in message.pools for id in link.received.get(pool, ())}
    for pool, offers in message.pools.items():
        former = link.received.pop(pool, {})
        if offers:
            link.received[pool] = {each.id: each for each in offers}
        for each in offers:
            if former.get(each.id) != each:
                yield ProfileLearned(profile=each, pool=pool)
    after = {each.id for offers in message.pools.values() for each in offers}
    for id in sorted(before - after):
        yield _lose(router, id)
    touched.update(message.pools)


def _forget(router: OfferForwarder, link: RouterLink) -> Effects:
    """Nothing is known any more of what came over a link."""
    for id in sorted(id for profiles in link.received.values() for id in profiles):
        yield _lose(router, id)


def _lose(router: OfferForwarder, id: str) -> ProfileLost:
    handle = router.handles.pop(id, None)
    if handle is not None:
        del router.hidden[handle]
    return ProfileLost(profile=id)


# ── what neighbours are told ──────────────────────────────────────────────────────────────────────


def _tell(router: OfferForwarder, pools: Iterable[str], *, besides: str = "") -> Effects:
    """Tell every neighbour what has become different of these pools, but not the one that they are known from."""
    touched = set(pools)
    for name in sorted(router.links):
        if name != besides:
            yield from _tell_one(router, name, touched)


def _tell_one(router: OfferForwarder, name: str, pools: Iterable[str]) -> Effects:
    link = router.links[name]
    told: dict[str, tuple[Profile, ...]] = {}
    for pool in sorted(pools):
        offers = _offers(router, name, pool)
        if offers != link.sent.get(pool, ()):
            told[pool] = offers
    link.sent |= told
    if told:
        yield SendToNeighbour(neighbour=name, message=OfferMessage(epoch=link.epoch, pools=told))


def _offers(router: OfferForwarder, name: str, pool: str) -> tuple[Profile, ...]:
    """What a neighbour is to know of a pool: nothing that came from it, as it is behind the link, under handles."""
    behind = [profile for pools in _places(router, besides=name) for profile in pools.get(pool, {}).values()]
    figures = router.links[name].figures
    # Hops keep the order, so what is left out before one would be left out after it.
    return tuple(
        _masked(router, profile_after_link(each, figures)) for each in truncated(frontier(behind), router.most)
    )


def _places(router: OfferForwarder, *, besides: str = "") -> list[Pools]:
    """Where there are profiles: its own, and those of neighbours."""
    return [router.own, *(link.received for name, link in router.links.items() if name != besides)]


def _masked(router: OfferForwarder, profile: Profile) -> Profile:
    """In this router's name, and without a version, which would tell that something happened and not what."""
    handle = router.handles.get(profile.id)
    if handle is None:
        router.handed_out += 1
        handle = router.handles[profile.id] = f"{router.name}~{router.handed_out}"
        router.hidden[handle] = profile.id
    return replace(profile, publisher=handle, version=1)


# ── advice on the way back ────────────────────────────────────────────────────────────────────────


def _take_advice(router: OfferForwarder, neighbour: str, message: AdviceMessage) -> Effects:
    id = router.hidden.get(message.publisher, "")
    known = router.known().get(id)
    target = (
        target_before_link(known[0], router.links[neighbour].figures, message.target) if known is not None else None
    )
    if target is None:
        yield AdviceUndeliverable(neighbour=neighbour, publisher=message.publisher, type=message.type)
        return
    yield from _pass_on(router, id, target)


def _pass_on(router: OfferForwarder, id: str, target: Target) -> Effects:
    """To the publisher, or to the neighbour who knows where it is."""
    if any(id in profiles for profiles in router.own.values()):
        yield AdvisePublisher(profile=id, target=target)
        return
    for name, link in router.links.items():
        for profiles in link.received.values():
            if (found := profiles.get(id)) is not None:
                message = AdviceMessage(epoch=link.epoch, publisher=found.publisher, type=found.type, target=target)
                yield SendToNeighbour(neighbour=name, message=message)
