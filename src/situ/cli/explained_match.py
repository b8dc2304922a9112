"""What happened around a detection, or where one was missed: found in the log of a run, or in a test, and explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import msgspec

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.catalogue import NO_DETECTION, NOT_EXPLAINED, UNKNOWN_ALIAS, UNKNOWN_POLICY
from situ.cli.in_force import Place
from situ.cli.opened import Opened
from situ.cli.tested import Tested, detecting_of
from situ.deployment import Deployment
from situ.deployment.former_terms import in_terms_of_now
from situ.deployment.interpreting import Interpretation
from situ.deployment.parts import withheld_in
from situ.errors import SituError, nearest
from situ.event.instants import instant_at
from situ.event.lines import decode_line, stored_lines
from situ.event.message import PLACES, Stored
from situ.event.row import Row
from situ.host.replaying import span
from situ.situation.enrichment.observe import kept, observe
from situ.situation.language.syntax import Consumption
from situ.situation.meaning.detection import Instances, Observation
from situ.situation.meaning.explain_match import WhyDetected, WhyMissed, explain_detection, explain_miss
from situ.situation.meaning.occurrences import Bindings, Happened
from situ.situation.policies.policy import Policy, Then
from situ.tables.in_use import TablesInUse
from situ.types.event_data import EventData

SITUATION = "situ.situation."
_LONGER = timedelta(minutes=1)
"""By how much longer the log is searched: events are stored some time after they happen."""
_MOST_OTHERS = 300
"""Observations of others than those who are asked about, the nearest in time: everything is tried with everything."""


@dataclass(frozen=True, slots=True)
class Around:
    """A policy, and what was said around the time in question."""

    policy: Policy
    deployment: Deployment
    observations: tuple[Observation, ...]
    instances: Instances

    def happened(self, consumption: Consumption | None = None) -> Happened:
        policy = self.policy if consumption is None else replace(self.policy, consumption=consumption)
        deployment = self.deployment
        return Happened(policy, deployment.ontology, self.observations, self.instances, kept(deployment.push))


def policy_of(deployment: Deployment, name: str) -> Policy:
    found = deployment.policies.get(name)
    if found is None:
        raise SituError(UNKNOWN_POLICY(name=name, nearest=nearest(name, deployment.policies)))
    return found


def check_bindings(policy: Policy, bindings: Bindings) -> None:
    aliases = [each.name for each in policy.aliases]
    for alias in bindings:
        if alias not in aliases:
            raise SituError(UNKNOWN_ALIAS(name=alias, nearest=nearest(alias, aliases)))


# ── in a test ──


def around_test(opened: Opened, tested: Tested, policy: Policy) -> Around:
    """What a test gives."""
    if tested.tried is None:
        raise SituError(*tested.problems)
    return Around(policy, opened.deployment, tested.tried.observations, tested.tried.instances)


def detected_in_test(opened: Opened, tested: Tested, id: str) -> tuple[Policy, WhyDetected]:
    """Why something was detected in a test."""
    if tested.test is None:
        raise SituError(*tested.problems)
    for name in tested.test.policies:
        around = around_test(opened, tested, policy_of(opened.deployment, name))
        why = explain_detection(around.happened(), id)
        if why is not None:
            return around.policy, why
    remedy = "`situ test --json` shows the situations of a test with their ids."
    raise SituError(NO_DETECTION(id=id, where=f"in {tested.file}", remedy=remedy))


def missed(around: Around, bindings: Bindings, at: int) -> WhyMissed:
    check_bindings(around.policy, bindings)
    return explain_miss(around.happened(), bindings, at)


# ── in the log ──


async def detected_in_log(bus: Bus, opened: Place, deployment: Deployment, id: str) -> tuple[Policy, WhyDetected]:
    """Why a detection, or the first of a situation, was reported."""
    stored, told = await _told(bus, id)
    policy = policy_of(deployment, told["policy"])
    causes = told.get("causes", [])
    positions = [int(each["pos"]) for each in causes if each.get("pos")]
    first = min([*(position // PLACES for position in positions), stored.seq])
    begin = await _stored_at(bus, first) - _reach(policy)
    said = await _said(bus, deployment, policy, *await span(bus, instant_at(begin), instant_at(stored.at) + _LONGER))
    events = {(each["source"], each["id"].split("+")[0]) for each in causes}
    whom = {each["id"] for each in told.get("bindings", [])}
    own = [each for each in said if (each.cause.source, each.cause.id) in events or each.identity in whom]
    middle = max((each.time for each in own), default=stored.at)
    around = Around(policy, deployment, _chosen(said, own, middle), _instances(opened, deployment, policy))
    detection = told.get("detection") or told["situation"]
    why = explain_detection(around.happened(), detection)
    why = why or explain_detection(around.happened(Consumption.ALL), detection)  # others may have spent its events
    if why is None:
        reason = "by the policy as it is now, the tables as they are now and what the log still has it does not come"
        raise SituError(NOT_EXPLAINED(id=detection, reason=reason, remedy="`situ explain event` shows what was told."))
    return policy, why


async def missed_in_log(
    bus: Bus, opened: Place, deployment: Deployment, policy: Policy, bindings: Bindings, at: int
) -> WhyMissed:
    """Why something was not detected around that time."""
    check_bindings(policy, bindings)
    reach = timedelta(microseconds=_reach(policy)) + _LONGER
    said = await _said(bus, deployment, policy, *await span(bus, instant_at(at) - reach, instant_at(at) + reach))
    near = [each for each in said if abs(each.time - at) <= _reach(policy)]
    own = [each for each in near if each.identity in bindings.values()]
    around = Around(policy, deployment, _chosen(near, own, at), _instances(opened, deployment, policy))
    return explain_miss(around.happened(), bindings, at)


async def _told(bus: Bus, id: str) -> tuple[Stored, Mapping[str, Any]]:
    """What Situ told of a detection or situation, and the message that has it."""
    stream = Names(bus.zone).root_stream
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
    async with aclosing(bus.read(Names(bus.zone).root_stream, seq, seq)) as messages:
        async for message in messages:
            return message.at
    return 0


async def _said(bus: Bus, deployment: Deployment, policy: Policy, first: int, last: int) -> list[Observation]:
    """What events said that a policy listens to, in these messages of the root log."""
    interpretation = Interpretation.of(deployment)
    data = EventData(deployment.types)
    pushes = detecting_of(deployment, [policy.name]).push
    found: list[Observation] = []
    async with aclosing(bus.read(Names(bus.zone).root_stream, first, last)) as messages:
        async for message in messages:
            lines = stored_lines(in_terms_of_now(message, interpretation))
            events = (_event(decode_line(line), data) for line in lines)
            found += observe((each for each in events if each is not None), pushes, deployment.types)
    return list({(each.push, each.cause, each.identity): each for each in found}.values())


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


def _instances(opened: Place, deployment: Deployment, policy: Policy) -> Instances:
    """What tables know now."""
    tables = detecting_of(deployment, [policy.name]).tables
    with TablesInUse(opened.path) as used:
        return tables.of(used.use(deployment.sources, tables.keyed))


def _reach(policy: Policy) -> int:
    """How far from its activation a match of a policy looks, in microseconds."""
    sequences = [each.span for clause in policy.clauses for each in clause if isinstance(each, Then)]
    return 3 * policy.window + sum(sequences) + max(policy.lateness, 0)
