"""The actions of policies → events: what is published, told or commanded, and requests for all that is none of these.

Events are published once, whatever breaks. What has to be done outside, such as a request to an address, is asked for
by an event, too: whoever does it takes these one by one, and an action has a key by which its repetition is known.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from situ.event.instants import instant_at, print_instant
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.lang.types.table import ACTION, COMMAND, NOTICE
from situ.policies.actions.invocations import ActionInvocation, invocation_of
from situ.policies.actions.load import step_as_json
from situ.policies.actions.model import VERB_OF, ActionStep, CommandStep, DeclaredActions, NotifyStep, PublishStep
from situ.policies.actions.resolve import steps_of
from situ.policies.actions.templates import TemplateFacts, json_value
from situ.policies.language.syntax import When
from situ.policies.lifecycle import SITUATION_TYPES, SituationPhase, SituationTransition
from situ.policies.model import InstancesByConcept, Policy, PolicyAction, derived_id
from situ.policies.ontology.model import ConceptAttribute, Ontology

_STAGES = {
    When.OPENING: (SituationPhase.OPENED,),
    When.EVERY_DETECTION: (SituationPhase.OPENED, SituationPhase.CONTINUED),
    When.CLOSE: (SituationPhase.CLOSED,),
}
_EVENTS = (PublishStep, NotifyStep, CommandStep)


class ActionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that an action comes to."""

    type: str
    id: str
    data: bytes


def published_by(policy: Policy, actions: DeclaredActions) -> frozenset[str]:
    """The types of the events that the actions of a policy come to."""
    return frozenset(_type_of(step) for action in policy.actions for step in steps_of(action, actions))


def publications(policies: Mapping[str, Policy], actions: DeclaredActions) -> dict[str, frozenset[str]]:
    """By policy: the types of all events that come from it, those that tell of its situations, too."""
    told = frozenset(SITUATION_TYPES.values())
    return {name: told | published_by(policy, actions) for name, policy in policies.items()}


def _type_of(step: ActionStep) -> str:
    match step:
        case PublishStep(type=type):
            return type
        case NotifyStep():
            return NOTICE.name
        case CommandStep():
            return COMMAND.name
        case _:
            return ACTION.name


def action_events(
    transition: SituationTransition,
    policy: Policy,
    actions: DeclaredActions,
    ontology: Ontology,
    instances: InstancesByConcept,
    asked: Collection[ConceptAttribute] | None = None,
) -> Iterator[ActionEvent]:
    """What the actions of a policy come to for what happened to a situation.

    Of instances only what is ``asked`` for is told, if that is given: others may know more.
    """
    if transition.stage not in _STAGES[policy.when]:
        return
    facts = facts_of(transition, policy, ontology, instances)
    if asked is not None:
        facts = _only(facts, policy, asked)
    for number, action in enumerate(policy.actions):
        for place, step in enumerate(steps_of(action, actions)):
            made = _made(action, number, place, actions, facts) if isinstance(step, _EVENTS) else None
            if made is not None:
                yield _event(made, transition)
            else:
                yield _request(step, action, number, place, facts, policy, transition)


def _made(
    action: PolicyAction, number: int, place: int, actions: DeclaredActions, facts: TemplateFacts
) -> ActionInvocation | None:
    try:
        return invocation_of(action, number, place, actions, facts)
    except SituError:
        return None  # it is asked for all the same: whoever is to do it says what is wrong


def digest_of(step: ActionStep, action: PolicyAction) -> str:
    """By this a request names the step it asks for, however policies and actions are declared when it is done."""
    return derived_id(step_as_json(step), list(action.arguments))


def facts_of(
    transition: SituationTransition, policy: Policy, ontology: Ontology, instances: InstancesByConcept
) -> TemplateFacts:
    """What templates of a policy's actions can refer to."""
    bindings = dict(transition.situation.bindings)
    concepts = {alias.name: alias.concept for alias in policy.aliases}
    return TemplateFacts(
        policy=policy.name,
        situation=transition.situation.id,
        detection=transition.detection or f"{transition.situation.id}-closed",
        time=instant_at(transition.time),
        bindings=bindings,
        attributes={
            alias: _known(concepts[alias], identity, ontology, instances)
            for alias, identity in bindings.items()
            if alias in concepts
        },
    )


def _only(facts: TemplateFacts, policy: Policy, asked: Collection[ConceptAttribute]) -> TemplateFacts:
    concepts = {alias.name: alias.concept for alias in policy.aliases}
    attributes = {
        alias: {
            name: value
            for name, value in known.items()
            if ConceptAttribute(concept=concepts[alias], attribute=name) in asked
        }
        for alias, known in facts.attributes.items()
    }
    return replace(facts, attributes=attributes)


def _known(concept: str, identity: str, ontology: Ontology, instances: InstancesByConcept) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for member in reversed(ontology.concepts[concept].members or (concept,)):
        found |= instances.get(member, {}).get(identity, {})
    return found


def _event(deed: ActionInvocation, transition: SituationTransition) -> ActionEvent:
    situation = transition.situation
    match deed.verb:
        case "publish":
            return ActionEvent(type=deed.target, id=deed.key, data=msgspec.json.encode(deed.body))
        case "notify":
            type, about = NOTICE.name, {"to": deed.target, "text": deed.body}
        case _:
            body = {"situation": situation.id, "bindings": dict(situation.bindings)} if deed.body is None else deed.body
            type, about = COMMAND.name, {"to": deed.target, "data": json.dumps(body, ensure_ascii=False)}
    data = {**about, "policy": situation.policy, "situation": situation.id}
    return ActionEvent(type=type, id=deed.key, data=msgspec.json.encode(data))


def _request(
    step: ActionStep,
    action: PolicyAction,
    number: int,
    place: int,
    facts: TemplateFacts,
    policy: Policy,
    transition: SituationTransition,
) -> ActionEvent:
    concepts = {alias.name: alias.concept for alias in policy.aliases}
    attributes = {
        alias: {name: json_value(value) for name, value in known.items()} for alias, known in facts.attributes.items()
    }
    data = {
        "verb": VERB_OF[type(step)],
        "action": " ".join((action.name, *action.arguments)),
        "policy": facts.policy,
        "situation": facts.situation,
        "detection": facts.detection,
        "time": print_instant(transition.time),
        "number": number,
        "place": place,
        "digest": digest_of(step, action),
        "bindings": [
            {"alias": alias, "concept": concepts.get(alias, ""), "id": identity}
            for alias, identity in facts.bindings.items()
        ],
        "attributes": json.dumps(attributes, ensure_ascii=False),
    }
    return ActionEvent(type=ACTION.name, id=f"{facts.detection}-{number}.{place}", data=msgspec.json.encode(data))


def line_of(policy: str, time: int, event: ActionEvent, released: str = "") -> bytes:
    """An event as its policy publishes it; ``released`` are the dimensions in which an administrator let it go."""
    return msgspec.json.encode(
        {
            "specversion": "1.0",
            "id": event.id,
            "source": policy,
            "type": event.type,
            "time": print_instant(time),
            **({"released": released} if released else {}),
            "data": msgspec.Raw(event.data),
        }
    )
