"""What clients say and ask about quality: calls read into inputs of the negotiator, and answers about its state.

`RelevantProfiles` says which capability profiles matter to which subscriptions, `QualityCalls` reads messages,
`EarlyCalls` holds those that come before their subscription or advertisement is deployed, `QualityAnswers` answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from situ.lang.catalogue import ABOUT_NOTHING, NOT_NEGOTIATED, NOT_UNDERSTOOD
from situ.lang.expr.tree import FALSE, Node
from situ.lang.problems import SituError, nearest
from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.lang.types.model import Struct
from situ.model.deployment import Deployment
from situ.protocol.effects import Negotiate
from situ.protocol.messages import (
    AnswerAdvice,
    AskQuality,
    ChangeExpectation,
    ChangeProfile,
    Expect,
    MoveExpectation,
    Negotiated,
    Provide,
    RevokeProfile,
)
from situ.protocol.router_state import bad_name
from situ.quality.explanation.explain import explain_expectation, explain_publisher
from situ.quality.explanation.text import as_text, publisher_as_text
from situ.quality.match.satisfaction import capability_of
from situ.quality.model.declarations import Need, Profile, QualityEnvironment, QualityProperty
from situ.quality.model.shapes import shape_as_json
from situ.quality.negotiation.feedback import StateChange
from situ.quality.negotiation.inputs_and_effects import (
    Answered,
    Input,
    Providing,
    Registering,
    Relevance,
    Resuming,
    Retracting,
    Revising,
    Revoking,
    Suspending,
    Updating,
    Verdict,
)
from situ.quality.negotiation.notify import state_change_of, usage_of
from situ.quality.negotiation.state import ExpectationRecord, NegotiatorState, ProfileRecord
from situ.quality.parse.client_calls import (
    parse_advice_values,
    parse_expectation,
    parse_expectation_changes,
    parse_profile,
    parse_profile_revision,
)
from situ.routing.delivery_groups import FilterReader
from situ.routing.model import NAME, ROOT, Advertisement, Subscription
from situ.routing.normal_form import contradict
from situ.stages.interpret import Interpretation
from situ.stages.type_visibility import TypeVisibility
from situ.stages.visibility import EventVisibility

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Which capability profiles matter to which subscriptions. A profile belongs to a *pool*: the root type of its events,
# where they are published and with which filter, all as the advertisements of its publisher say. Profiles of one pool
# matter to the same subscriptions, so whoever matches needs to know of pools alone. Whoever advertises nothing of the
# kind has no pool, and matters to nobody.
#
# A pool matters to a subscription if its events are of a subscribed type, are visible to it whatever they say, and do
# not contradict its filter. Where it depends on the event whether it is visible, its publisher is for the subscription
# as one that is not there: what a profile says, or what is measured of it, is said of events that must not be known.
# For the same reason all that is published under a profile has to be visible, not only what comes by one of its
# advertisements.


@dataclass(frozen=True, slots=True)
class _Offer:
    """Under which tags, and with which filter in root's terms, something is published."""

    scopes: TagSet
    where: str


@dataclass(frozen=True, slots=True)
class _Pool:
    type: str
    """As root calls it."""
    offers: tuple[_Offer, ...]

    @property
    def key(self) -> str:
        return " | ".join((self.type, *(f"{each.scopes.as_json()} {each.where}".strip() for each in self.offers)))


@dataclass(frozen=True, slots=True)
class _Wanting:
    """All that the relevance of a pool to a subscription depends on."""

    types: tuple[str, ...]
    where: str
    context: str
    scopes: TagSet


@dataclass(slots=True)
class RelevantProfiles:
    """The pools of one deployment. Made by :meth:`of`; what is worked out is kept for the next one."""

    deployment: Deployment
    interpretation: Interpretation
    seeing: EventVisibility | None
    meaning: FilterReader
    profiles: Mapping[str, str] = field(default_factory=dict)
    """Every profile that there could be, ``publisher/type`` as the publisher calls it → its pool."""
    root_types: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Publisher and root type → what the publisher calls the type, if that is another name."""
    showing: TypeVisibility | None = None
    """What there is for whom; None: all for everybody."""
    _by_type: dict[str, dict[str, _Pool]] = field(default_factory=dict)
    _found: dict[_Wanting, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, deployment: Deployment, before: RelevantProfiles | None = None) -> RelevantProfiles:
        deployment = deployment.numbered()
        interpretation = Interpretation.of(deployment, None if before is None else before.interpretation)
        seeing = EventVisibility.of(deployment, None if before is None else before.seeing)
        limits = deployment.settings.expression_limits
        meaning = FilterReader(deployment.types, deployment.definitions, limits, interpretation.mediator)
        if before is not None and before.meaning == meaning:
            meaning = before.meaning
        showing = TypeVisibility.of(deployment, None if before is None else before.showing)
        made = cls(deployment, interpretation, seeing, meaning, showing=showing)
        made._collect()
        same = before is not None and before.meaning is meaning and before.deployment.scopes == deployment.scopes
        if before is not None and same and before._by_type == made._by_type:
            made._found.update(before._found)
        return made

    def relevance(self) -> Relevance:
        """What negotiation is told: the pool of each profile, and which of them matter to each subscription."""
        subscriptions = self.deployment.subscriptions
        wanting = {id: _wanting(each) for id, each in subscriptions.items()}
        found: dict[_Wanting, frozenset[str]] = {}
        for id, key in wanting.items():
            if key not in found:
                known = self._found.get(key)
                found[key] = frozenset(self._work_out(subscriptions[id])) if known is None else known
        self._found = found  # subscriptions that are gone need not be known for the next deployment
        return Relevance(pools=self.profiles, relevant={id: found[key] for id, key in wanting.items()})

    def root_type(self, publisher: str, type: str) -> str:
        """What root calls the events that a publisher calls so."""
        return self.interpretation.advertised(Advertisement(client=publisher, name="profile", type=type)).type

    def types_of(self, wanted: Subscription) -> tuple[str, ...]:
        """What root calls the event types of a subscription; none, where they have no meaning any more."""
        if wanted.context == ROOT:
            return wanted.types
        try:
            return tuple(self.meaning.conditions(wanted))
        except SituError:
            return ()

    def _collect(self) -> None:
        offers: dict[tuple[str, str], set[_Offer]] = {}
        root_types: dict[tuple[str, str], str] = {}
        for ad in self.deployment.advertisements.values():
            context = self.interpretation.context_of(ad.client)
            offer = _Offer(ad.scopes, ad.where if context == ROOT else "")
            for type in self._below(context, ad.type):
                offers.setdefault((ad.client, type), set()).add(offer)
        profiles: dict[str, str] = {}
        for (publisher, type), found in offers.items():
            root = self.root_type(publisher, type)
            if root != type:
                root_types[publisher, root] = type
            pool = _Pool(root, tuple(sorted(found, key=_order)))
            self._by_type.setdefault(root, {})[pool.key] = pool
            profiles[f"{publisher}/{type}"] = pool.key
        self.profiles, self.root_types = profiles, root_types

    def _below(self, context: str, type: str) -> Iterator[str]:
        """An event type of a context and all below it, by their names there."""
        known = self.deployment.contexts.get(context) if context != ROOT else None
        types = self.deployment.types if known is None else known.types
        event = types.event(type)
        if event is not None:
            yield from (each.name for each in types.subtypes(event) if isinstance(each, Struct))

    def _work_out(self, wanted: Subscription) -> Iterator[str]:
        try:
            conditions = self.meaning.conditions(wanted)
        except SituError:  # it wants what is not there any more
            return
        for type, asked in conditions.items():
            if asked == FALSE:
                continue
            for below in self._below(ROOT, type):
                for key, pool in self._by_type.get(below, {}).items():
                    if self._is_seen(below, pool, wanted.scopes) and any(
                        not each.where or not self._contradicts(below, each.where, asked) for each in pool.offers
                    ):
                        yield key

    def _is_seen(self, type: str, pool: _Pool, subscribed: TagSet) -> bool:
        """Whether a subscription with these tags sees all that is published in a pool."""
        seeing = self.seeing
        return seeing is None or all(seeing.always_sees(each.scopes, subscribed, [type]) for each in pool.offers)

    def _contradicts(self, type: str, where: str, asked: Node) -> bool:
        offered = Subscription(client="offered", name="offered", types=(type,), where=where)
        return contradict(self.meaning.node(offered, type), asked)


def _wanting(wanted: Subscription) -> _Wanting:
    return _Wanting(wanted.types, wanted.where, wanted.context, wanted.scopes)


def _order(offer: _Offer) -> tuple[object, ...]:
    return offer.where, offer.scopes.named, offer.scopes.rest


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Calls, from messages to inputs of the negotiator. Bodies are in the words of a project's ``quality/*.yaml`` and read
# by the same rules, all that is wrong with one at once. Names of a client's own are preceded by its name here; what the
# project declares for one of its subscriptions, a client may name as well.

_MOVES: Mapping[str, type[Suspending] | type[Resuming] | type[Revoking]] = {
    "suspend": Suspending,
    "resume": Resuming,
    "revoke": Revoking,
}


@dataclass(frozen=True, slots=True)
class QualityCalls:
    """Reads the calls of clients under one deployment."""

    pools: RelevantProfiles
    state: NegotiatorState

    def read(self, ticket: int, client: str, message: Negotiated) -> Input:
        """The input that a message means; :class:`SituError` with all that is wrong with it."""
        match message:
            case Expect():
                return self._expect(ticket, client, message)
            case ChangeExpectation():
                return self._change_expectation(ticket, client, message)
            case MoveExpectation():
                if message.call not in _MOVES:
                    raise SituError(NOT_UNDERSTOOD(kind="MoveExpectation", reason=f"there is no `{message.call:.20}`"))
                id = self.expectation_id(client, message.expectation)
                return _MOVES[message.call](ticket=ticket, client=client, id=id, version=message.version)
            case Provide():
                profile = self._profile(client, message.type, message.body)
                return Providing(ticket=ticket, client=client, profile=_at(profile, message.version))
            case ChangeProfile():
                return self._change_profile(ticket, client, message)
            case RevokeProfile():
                id = f"{client}/{message.type}"
                return Retracting(ticket=ticket, client=client, id=id, version=message.version)
            case AnswerAdvice():
                return self._answer(ticket, client, message)
            case AskQuality():
                raise AssertionError("a question is no call")

    def expectation_id(self, client: str, name: str) -> str:
        """Whole: the client's own, unless only the project has one of this name for a subscription of the client."""
        own = f"{client}/{name}"
        declared = self.state.expectations.get(name)
        is_its = declared is not None and declared.expectation.client == client
        return name if own not in self.state.expectations and is_its else own

    def _around(self, client: str, subscription: str = "") -> QualityEnvironment:
        deployment = self.pools.deployment
        wanted = deployment.subscriptions.get(subscription)
        known_as = deployment.clients.get(client)
        context = None if known_as is None else deployment.contexts.get(known_as.context)
        types, own, showing = (
            deployment.types,
            deployment.types if context is None else context.types,
            self.pools.showing,
        )
        if showing is not None:
            types, own = (
                showing.known(client, ROOT),
                showing.known(client, ROOT if known_as is None else known_as.context),
            )
        return QualityEnvironment(
            properties=deployment.quality.known,
            types=types,
            subscriptions={} if wanted is None else {subscription: self.pools.types_of(wanted)},
            clients={client: own},
        )

    # ── expectations ──

    def _expect(self, ticket: int, client: str, message: Expect) -> Registering:
        subscription = f"{client}/{message.sub}"
        if subscription not in self.pools.deployment.subscriptions:
            mine = [each for each in self.pools.deployment.subscriptions if each.startswith(f"{client}/")]
            remedy = "Register for events first: an expectation is about a subscription."
            raise SituError(
                ABOUT_NOTHING(
                    what="subscription", name=subscription, nearest=nearest(subscription, mine), remedy=remedy
                )
            )
        if not NAME.fullmatch(message.expectation):
            raise SituError(bad_name(message.expectation))
        id = f"{client}/{message.expectation}"
        found = parse_expectation(message.body, self._around(client, subscription), id=id, subscription=subscription)
        found = replace(found, suspended=message.suspended)
        return Registering(ticket=ticket, client=client, expectation=_at(found, message.version))

    def _change_expectation(self, ticket: int, client: str, message: ChangeExpectation) -> Updating:
        id = self.expectation_id(client, message.expectation)
        known = self.state.expectations.get(id)
        subscription = known.expectation.subscription if known is not None else ""
        changes = parse_expectation_changes(message.body, self._around(client, subscription), subscription=subscription)
        return Updating(ticket=ticket, client=client, id=id, changes=changes, version=message.version)

    # ── profiles ──

    def _profile(self, client: str, type: str, body: Mapping[str, Any]) -> Profile:
        return parse_profile(body, self._around(client), publisher=client, type=type)

    def _change_profile(self, ticket: int, client: str, message: ChangeProfile) -> Revising:
        id = f"{client}/{message.type}"
        known = self.state.profiles.get(id)
        if known is None:
            raise SituError(NOT_NEGOTIATED(what="profile", name=id, nearest=()))
        after, told = parse_profile_revision(message.body, self._around(client), known=known.profile)
        return Revising(
            ticket=ticket,
            client=client,
            id=id,
            capabilities={id: each for id, each in after.capabilities.items() if id in told},
            mode=after.mode if "mode" in message.body else None,
            version=message.version,
        )

    def _answer(self, ticket: int, client: str, message: AnswerAdvice) -> Answered:
        if message.verdict not in get_args(Verdict):
            raise SituError(NOT_UNDERSTOOD(kind="AnswerAdvice", reason=f"there is no `{message.verdict:.20}`"))
        known = self.state.profiles.get(message.advice.rpartition("#")[0])
        values: dict[str, float] = {}
        if known is not None:
            said = {name: each for name, each in message.values.items() if name in known.profile.capabilities}
            values = parse_advice_values(said, self._around(client), type=known.profile.type)
        return Answered(
            client=client,
            advice=message.advice,
            verdict=message.verdict,  # type: ignore[arg-type]  # looked at above
            values=values,
            ticket=ticket,
        )


def _at(found: Any, version: int | None) -> Any:
    return found if version is None else replace(found, version=version)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Calls that come early: what they are about is not deployed, or not yet. Whoever connects again may be faster than what
# it subscribes to and advertises, so such calls are kept for a while.

PATIENCE = 5.0
"""Seconds that a call waits for what it is about to be deployed."""


class EarlyCalls:
    """Those that wait. Times are those of one clock."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Negotiate, float]] = {}
        """Ticket → a call, and until when it waits."""

    def hold(self, call: Negotiate, pools: RelevantProfiles, now: float) -> bool:
        """Keep a call for a while; False: it is not early, or was kept for long enough."""
        if is_early(call, pools):
            _, until = self._held.setdefault(call.ticket, (call, now + PATIENCE))
            if now < until:
                return True
        self._held.pop(call.ticket, None)
        return False

    def due(self, pools: RelevantProfiles, now: float) -> list[Negotiate]:
        """Those that need not wait any more, or have waited for long enough."""
        return [call for call, until in self._held.values() if now >= until or not is_early(call, pools)]


def is_early(call: Negotiate, pools: RelevantProfiles) -> bool:
    match call.message:
        case Expect(sub=sub):
            return f"{call.client}/{sub}" not in pools.deployment.subscriptions
        case Provide(type=type):
            return f"{call.client}/{type}" not in pools.profiles
    return False


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Answers to whoever asks: to a client about what is its own, to those who may know everything about all.

Json = dict[str, Any]
Answer = tuple[Json, str]
"""As JSON, and in words."""


@dataclass(frozen=True, slots=True)
class QualityAnswers:
    """What can be said of one state."""

    state: NegotiatorState
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Subscription and reason → events that shaping dropped."""

    def to_client(self, client: str, asked: AskQuality) -> Answer:
        """What a client may know: its own expectations and profiles, and nobody else's names."""
        if asked.publisher:
            return self._to_publisher(client, asked.about)
        mine = self.state.expectations.of(client)
        wanted = [id for id in mine if not asked.about or id in (asked.about, f"{client}/{asked.about}")]
        if asked.about and not wanted:
            raise _unknown("expectation", asked.about, [id.removeprefix(f"{client}/") for id in mine])
        if asked.explain and asked.about:
            return self._explained(wanted[0], named=False)
        return {"states": [self._told(id, anew=bool(asked.about)).as_json() for id in wanted]}, ""

    def _told(self, id: str, *, anew: bool) -> StateChange:
        """What its client was told last, under the same number, if it was told anything; else as it is now. Of what
        rests nobody is told anything: it has no number, by which whoever catches up knows it for nothing new."""
        held = self.state.expectations[id]
        if held.told is not None and not anew:
            return held.told
        found = state_change_of(self.state, id)
        return found if held.active else replace(found, number=0)

    def _to_publisher(self, client: str, type: str) -> Answer:
        mine = {each.profile.type: each for each in self.state.profiles.of(client).values()}
        if type and type not in mine:
            raise _unknown("profile", type, mine)
        advice = (each for known in mine.values() for each in known.course.to_be_heard(known.profile))
        body: Json = {"advice": [each.as_json() for each in advice]}
        if type:
            body["usage"] = usage_of(self.state, mine[type]).as_json()
        return body, ""

    # ── to those who may know everything ──

    def to_operator(self, asked: Mapping[str, Any]) -> Answer:
        """The table; or why what is ``about`` an expectation is so, or a publisher, if ``publisher`` is true."""
        about = str(asked.get("about", ""))
        if not about:
            return self.table(), ""
        if asked.get("publisher"):
            return self._explained_publisher(about)
        if about not in self.state.expectations:
            raise _unknown("expectation", about, self.state.expectations)
        return self._explained(about, named=True)

    def _explained(self, id: str, *, named: bool) -> Answer:
        subscription = self.state.expectations[id].expectation.subscription
        prefix = f"{subscription} "
        drops = {key.removeprefix(prefix): count for key, count in self.dropped.items() if key.startswith(prefix)}
        found = explain_expectation(self.state, id, named=named, drops=drops)
        return found.as_json(), as_text(found)

    def _explained_publisher(self, publisher: str) -> Answer:
        found = explain_publisher(self.state, publisher)
        if not found.profiles:
            known = {each.profile.publisher for each in self.state.profiles.values()}
            raise _unknown("publisher with a profile", publisher, known)
        return found.as_json(), publisher_as_text(found)

    def table(self) -> Json:
        """Who expects what, who can do what, what holds and why not."""
        return {
            "expectations": [self._expectation(each) for _, each in sorted(self.state.expectations.items())],
            "profiles": [self._profile(each) for _, each in sorted(self.state.profiles.items())],
            "shapes": {id: shape_as_json(each) for id, each in sorted(self.state.shapes.items())},
        }

    def _expectation(self, held: ExpectationRecord) -> Json:
        expectation = held.expectation
        now = state_change_of(self.state, expectation.id)
        by = self.state.standing.candidates(expectation.id)[0] if held.active else ()
        return {
            "id": expectation.id,
            "subscription": expectation.subscription,
            "utility": expectation.utility,
            "need": {id: _need(each) for id, each in sorted(expectation.needs.items())},
            "state": "suspended" if expectation.suspended else "away" if held.away else now.state,
            "why": now.why if held.active else "",
            "reasons": [each.as_json() for each in now.reasons],
            "absent": now.absent,
            "in_force": now.in_force == expectation.id,
            "by": list(by),
        }

    def _profile(self, known: ProfileRecord) -> Json:
        usage, advice = usage_of(self.state, known), known.course.open
        return {
            "id": known.profile.id,
            "mode": known.profile.mode,
            "values": {id: self._values(known, id) for id in sorted(known.profile.properties)},
            "state": "away" if known.away else "irrelevant" if known.effective is None else "there",
            "expectations": usage.expectations,
            "frozen": known.course.is_frozen,
            "violated": sorted(known.violated),
            "advice": None if advice is None else {"id": advice.id, "status": advice.status},
        }

    def _values(self, known: ProfileRecord, id: str) -> Json:
        declared = capability_of(known.profile, id)
        assert declared is not None, "it is one of its properties"
        about = declared.about
        effective = None if known.effective is None else capability_of(known.effective, id)
        measured = known.estimate.measured.get(id)
        return {
            "unit": about.unit,
            "lb": _written(about, declared.lb),
            "ub": _written(about, declared.ub),
            "declared": about.written(declared.cv),
            "measured": None if measured is None else about.written(measured),
            "effective": None if effective is None else about.written(effective.cv),
        }


def _need(need: Need) -> Mapping[str, Any]:
    about = need.about
    return {"unit": about.unit, "lb": _written(about, need.lb), "ub": _written(about, need.ub)}


def _written(about: QualityProperty, value: float) -> float | str | None:
    """None: at the end of the domain, and that has no number."""
    return None if value in (float("inf"), float("-inf")) else about.written(value)


def _unknown(what: str, name: str, known: Iterable[str]) -> SituError:
    return SituError(NOT_NEGOTIATED(what=what, name=name, nearest=nearest(name, tuple(known))))
