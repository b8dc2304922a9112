"""What happened around a detection, or where one was missed: found in the log of a run, or in a test, and explained.

What a policy did not look at is left out, as detection did: what was late for it, hidden from it or a dead letter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from situ.bus.interface import Bus, log_range
from situ.event.instants import instant_at, microseconds
from situ.event.lines import decode_line, stored_lines
from situ.event.message import CLIENT, PLACES, StoredMessage, position
from situ.event.row import Row
from situ.event.subjects import BusNames
from situ.explain.dead_letters import read_dead_letters, read_late_events
from situ.explain.policy_match import (
    DetectionFacts,
    ExplainedDetection,
    ExplainedMiss,
    ReportedDetection,
    UnreadEvent,
    UnreadReason,
    explain_detection,
    explain_miss,
)
from situ.lang.catalogue import NO_DETECTION, NOT_EXPLAINED, UNKNOWN_ALIAS, UNKNOWN_POLICY
from situ.lang.problems import SituError, nearest
from situ.lang.records import replace
from situ.lang.types.lookup import EventData
from situ.lang.types.scalars import read_timestamp
from situ.model import Deployment
from situ.policies.enrichment.observations import keep_durations, observe
from situ.policies.language.syntax import ConsumptionMode
from situ.policies.model import Cause, InstancesByConcept, Observation, Policy, SequenceLiteral
from situ.policies.reference import Bindings, OccurrenceSet
from situ.project.check import LoadedProject
from situ.project.policy_tests import PolicyTestResult, detection_of
from situ.project.status import live_metrics
from situ.registry.past_scopes import learn_stored
from situ.registry.run_metrics import PolicyMetrics
from situ.scopes.stamp_codec import withheld_in
from situ.stages.interpret import Interpretation
from situ.stages.root_log import upgrade_message
from situ.stages.visibility import EventVisibility
from situ.tables.cache import TablesInUse

SITUATION = "situ.situation."
_LONGER = timedelta(minutes=1)
"""By how much longer the log is searched: events are stored some time after they happen."""
_MOST_UNREAD = 10
_MOST_OTHERS = 300
"""Observations of others than those who are asked about, the nearest in time: everything is tried with everything."""


@dataclass(frozen=True, slots=True)
class DetectionEvidence:
    """A policy, and what was said around the time in question."""

    policy: Policy
    deployment: Deployment
    observations: tuple[Observation, ...]
    instances: InstancesByConcept

    def happened(self, consumption: ConsumptionMode | None = None) -> OccurrenceSet:
        policy = self.policy if consumption is None else replace(self.policy, consumption=consumption)
        deployment = self.deployment
        return OccurrenceSet(
            policy, deployment.ontology, self.observations, self.instances, keep_durations(deployment.push)
        )


def policy_of(deployment: Deployment, name: str) -> Policy:
    found = deployment.policies.get(name)
    if found is None and name in deployment.stopped:
        raise SituError(*deployment.stopped[name].reasons)
    if found is None:
        raise SituError(UNKNOWN_POLICY(name=name, nearest=nearest(name, deployment.policies)))
    return found


def check_bindings(policy: Policy, bindings: Bindings) -> None:
    aliases = [each.name for each in policy.aliases]
    for alias in bindings:
        if alias not in aliases:
            raise SituError(UNKNOWN_ALIAS(name=alias, nearest=nearest(alias, aliases)))


# ── in a test ──


def evidence_in_test(opened: LoadedProject, tested: PolicyTestResult, policy: Policy) -> DetectionEvidence:
    """What a test gives, without what was late for the policy."""
    tried = tested.tried
    if tried is None:
        raise SituError(*tested.problems)
    late = tried.late_for.get(policy.name, frozenset())
    said = tuple(each for each in tried.observations if each.cause not in late)
    return DetectionEvidence(policy, opened.deployment, said, tried.instances)


def missed_in_test(
    opened: LoadedProject, tested: PolicyTestResult, policy: Policy, bindings: Bindings, at: int
) -> ExplainedMiss:
    """Why something was not detected in a test around that time, when its clock stopped."""
    check_bindings(policy, bindings)
    around, tried = evidence_in_test(opened, tested, policy), tested.tried
    if tried is None or tested.test is None or policy.name not in tested.test.policies:
        return explain_miss(around.happened(), bindings, at)
    late = tried.late_for.get(policy.name, frozenset())
    facts = DetectionFacts(
        told=tuple(
            ReportedDetection(id=each.detection, bindings=each.situation.bindings, time=each.time)
            for each in tried.told
            if each.situation.policy == policy.name and each.detection
        ),
        settled=tried.settled.get(policy.name),
        waits_for=tried.waits_for.get(policy.name, ""),
        unread=_asked(
            (_unread(UnreadReason.LATE, each) for each in tried.observations if each.cause in late),
            policy,
            bindings,
            at,
        ),
    )
    return explain_miss(around.happened(), bindings, at, facts)


def detected_in_test(opened: LoadedProject, tested: PolicyTestResult, id: str) -> tuple[Policy, ExplainedDetection]:
    """Why something was detected in a test."""
    if tested.test is None:
        raise SituError(*tested.problems)
    for name in tested.test.policies:
        around = evidence_in_test(opened, tested, policy_of(opened.deployment, name))
        why = explain_detection(around.happened(), id)
        if why is not None:
            return around.policy, why
    remedy = "`situ test --json` shows the situations of a test with their ids."
    raise SituError(NO_DETECTION(id=id, where=f"in {tested.file}", remedy=remedy))


def _unread(why: UnreadReason, said: Observation) -> UnreadEvent:
    return UnreadEvent(why=why, cause=said.cause, time=said.time, said=said)


def _asked(unread: Iterable[UnreadEvent], policy: Policy, bindings: Bindings, at: int) -> tuple[UnreadEvent, ...]:
    """Those around that time, about whom is asked for if that is said: dead letters may be about anybody."""
    whom = set(bindings.values())
    near = [each for each in unread if abs(each.time - at) <= _reach(policy)]
    near = [each for each in near if not whom or each.said is None or each.said.identity in whom]
    return tuple(sorted(near, key=lambda each: abs(each.time - at))[:_MOST_UNREAD])


# ── in the log ──


async def detected_in_log(bus: Bus, folder: Path, deployment: Deployment, id: str) -> tuple[Policy, ExplainedDetection]:
    """Why a detection, or the first of a situation, was reported."""
    stored, told = await _told(bus, id)
    policy = policy_of(deployment, told["policy"])
    causes = told.get("causes", [])
    positions = [int(each["pos"]) for each in causes if each.get("pos")]
    first = min([*(position // PLACES for position in positions), stored.seq])
    begin = await _stored_at(bus, first) - _reach(policy)
    said, _ = await _said(
        bus, deployment, policy, *await log_range(bus, instant_at(begin), instant_at(stored.at) + _LONGER)
    )
    events = {(each["source"], each["id"].split("+")[0]) for each in causes}
    whom = {each["id"] for each in told.get("bindings", [])}
    own = [each for each in said if (each.cause.source, each.cause.id) in events or each.identity in whom]
    middle = max((each.time for each in own), default=stored.at)
    around = DetectionEvidence(policy, deployment, _chosen(said, own, middle), _instances(folder, deployment, policy))
    detection = told.get("detection") or told["situation"]
    why = explain_detection(around.happened(), detection)
    why = why or explain_detection(around.happened(ConsumptionMode.ALL), detection)  # others may have spent its events
    if why is None:
        reason = "by the policy as it is now, the tables as they are now and what the log still has it does not come"
        raise SituError(NOT_EXPLAINED(id=detection, reason=reason, remedy="`situ explain event` shows what was told."))
    return policy, why


async def missed_in_log(
    bus: Bus, folder: Path, deployment: Deployment, policy: Policy, bindings: Bindings, at: int
) -> ExplainedMiss:
    """Why something was not detected around that time."""
    check_bindings(policy, bindings)
    reach = _reach(policy)
    # What happened then may have come at any time since: by a slow way, or because somebody sent an old record.
    first = await bus.find(BusNames(bus.zone).root_stream, instant_at(at - reach) - _LONGER)
    last = (await bus.state(BusNames(bus.zone).root_stream)).last
    near, unread = await _said(bus, deployment, policy, first, last, (at - reach, at + reach))
    unread += await _dead(bus, deployment, policy, at)
    own = [each for each in near if each.identity in bindings.values()]
    around = DetectionEvidence(policy, deployment, _chosen(near, own, at), _instances(folder, deployment, policy))
    figures = await _figures(bus, policy.name)
    facts = DetectionFacts(
        told=tuple([each async for each in _reports(bus, policy.name, first)]),
        settled=figures.settled if figures is not None else None,
        decides=figures is not None,
        waits_for=(figures.waits_for or "") if figures is not None else "",
        suspended=policy.name in deployment.suspended,
        unread=_asked(unread, policy, bindings, at),
    )
    return explain_miss(around.happened(), bindings, at, facts)


async def _figures(bus: Bus, policy: str) -> PolicyMetrics | None:
    """What the engine at work says of the policy; None if none is."""
    for figures in (await live_metrics(bus)).values():
        if policy in figures.situations.policies:
            return figures.situations.policies[policy]
    return None


async def _reports(bus: Bus, policy: str, first: int) -> AsyncIterator[ReportedDetection]:
    """What the policy told, in this message of the root log or behind it."""
    stream = BusNames(bus.zone).root_stream
    async with aclosing(bus.read(stream, first, (await bus.state(stream)).last)) as messages:
        async for message in messages:
            if message.headers.get(CLIENT) != policy:
                continue
            for row in map(decode_line, stored_lines(message)):
                told = msgspec.json.decode(row.data) if row.type.startswith(SITUATION) else {}
                if told.get("detection"):
                    bindings = sorted((each["alias"], each["id"]) for each in told.get("bindings", ()))
                    yield ReportedDetection(id=told["detection"], bindings=tuple(bindings), time=row.time)


async def _dead(bus: Bus, deployment: Deployment, policy: Policy, at: int) -> list[UnreadEvent]:
    """Dead letters of types that the policy listens to, around that time."""
    listened = detection_of(deployment, [policy.name]).observing.types
    found: list[UnreadEvent] = []
    async for letter in read_dead_letters(bus):
        event = letter.event
        if event is None or str(event.get("type")) not in listened:
            continue
        try:
            time = microseconds(read_timestamp(str(event.get("time"))))
        except ValueError:
            time = letter.at
        if abs(time - at) <= _reach(policy):
            cause = Cause(str(event.get("source", letter.client)), str(event.get("id", letter.id)))
            found.append(
                UnreadEvent(why=UnreadReason.DEAD, cause=cause, time=time, problem=f"{letter.code} {letter.message}")
            )
    return found


async def _told(bus: Bus, id: str) -> tuple[StoredMessage, Mapping[str, Any]]:
    """What Situ told of a detection or situation, and the message that has it."""
    stream = BusNames(bus.zone).root_stream
    state = await bus.state(stream)
    async with aclosing(bus.read(stream, state.first, state.last)) as messages:
        async for message in messages:
            if id.encode() not in message.body:
                continue
            for line in stored_lines(message):
                row = decode_line(line)
                if not row.type.startswith(SITUATION):
                    continue
                told = {**msgspec.json.decode(row.data), **withheld_in(row.parts)}
                if _is_of(told, id):
                    return message, told
    remedy = "Situations are events: `situ subscribe situ.situation` shows them as they come."
    raise SituError(NO_DETECTION(id=id, where="in the log", remedy=remedy))


def _is_of(told: Mapping[str, Any], id: str) -> bool:
    return any(str(told.get(name, "")).startswith(id) for name in ("detection", "situation"))


async def _stored_at(bus: Bus, seq: int) -> int:
    async with aclosing(bus.read(BusNames(bus.zone).root_stream, seq, seq)) as messages:
        async for message in messages:
            return message.at
    return 0


async def _said(
    bus: Bus, deployment: Deployment, policy: Policy, first: int, last: int, between: tuple[int, int] | None = None
) -> tuple[list[Observation], list[UnreadEvent]]:
    """What events said that a policy listens to, in these messages of the root log; and what it did not look at.

    Only of events that happened ``between`` these times, if that is given.
    """
    interpretation = Interpretation.of(deployment)
    data, seeing = EventData(deployment.types), EventVisibility.of(deployment.numbered())
    detecting = detection_of(deployment, [policy.name])
    reads = deployment.scopes.tags_of(policy.name).reads
    late = {late.row.key async for late in read_late_events(bus, policy=policy.name)}
    found: list[Observation] = []
    unread: list[UnreadEvent] = []
    async with aclosing(bus.read(BusNames(bus.zone).root_stream, first, last)) as messages:
        async for stored in messages:
            await learn_stored(bus, seeing, [stored])
            message = upgrade_message(stored, interpretation)
            for place, line in enumerate(stored_lines(message)):
                row = decode_line(line, pos=position(message.seq, place))
                if row.type not in detecting.observing.types or not _is_between(row.time, between):
                    continue
                event = _event(row, data)
                said = list(observe([event], detecting.push, deployment.types)) if event is not None else []
                if seeing is not None and said and not seeing.sees(seeing.look(row), reads):
                    unread += [_unread(UnreadReason.HIDDEN, each) for each in said]
                elif row.key in late:
                    unread += [_unread(UnreadReason.LATE, each) for each in said]
                else:
                    found += said
    return list({(each.push, each.cause, each.identity): each for each in found}.values()), unread


def _is_between(time: int, between: tuple[int, int] | None) -> bool:
    return between is None or between[0] <= time <= between[1]


@dataclass(frozen=True, slots=True)
class _Event:
    type: str
    id: str
    source: str
    time: int
    data: Mapping[str, Any]


def _event(row: Row, data: EventData) -> _Event | None:
    decoded = data.decode(row.type, msgspec.json.decode(row.data))
    return None if decoded.problems else _Event(row.type, row.id, row.source, row.time, decoded.value)


def _chosen(said: Iterable[Observation], own: list[Observation], middle: int) -> tuple[Observation, ...]:
    """What those said who are asked about, and what others said nearest to that time."""
    others = sorted((each for each in said if each not in own), key=lambda each: abs(each.time - middle))
    return (*own, *others[:_MOST_OTHERS])


def _instances(folder: Path, deployment: Deployment, policy: Policy) -> InstancesByConcept:
    """What tables know now."""
    tables = detection_of(deployment, [policy.name]).tables
    with TablesInUse(folder) as used:
        return tables.of(used.use(deployment.sources, tables.keyed))


def _reach(policy: Policy) -> int:
    """How far from its activation a match of a policy looks, in microseconds."""
    sequences = [each.span for clause in policy.clauses for each in clause if isinstance(each, SequenceLiteral)]
    return 3 * policy.window + sum(sequences) + max(policy.lateness, 0)
