"""What clients say about quality, read: from messages to inputs of the negotiator.

Bodies are in the words of a project's ``quality/*.yaml`` and read by the same rules, all that is wrong with one at
once. Names of a client's own are preceded by its name here; what the project declares for one of its subscriptions, a
client may name as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from situ.catalogue import ABOUT_NOTHING, NOT_NEGOTIATED, NOT_UNDERSTOOD
from situ.deployment.relevance import Pools
from situ.errors import SituError, nearest
from situ.overlay.quality_messages import (
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
from situ.overlay.refusing import bad_name
from situ.quality.around import Around
from situ.quality.inputs import (
    Answered,
    Input,
    Providing,
    Registering,
    Resuming,
    Retracting,
    Revising,
    Revoking,
    Suspending,
    Updating,
    Verdict,
)
from situ.quality.profile import Profile
from situ.quality.state import State
from situ.quality.told import told_changes, told_expectation, told_profile, told_revision, told_values
from situ.subscription.model import NAME, ROOT

_MOVES: Mapping[str, type[Suspending] | type[Resuming] | type[Revoking]] = {
    "suspend": Suspending,
    "resume": Resuming,
    "revoke": Revoking,
}


@dataclass(frozen=True, slots=True)
class Calls:
    """Reads the calls of clients under one deployment."""

    pools: Pools
    state: State

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

    def _around(self, client: str, subscription: str = "") -> Around:
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
        return Around(
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
        found = told_expectation(message.body, self._around(client, subscription), id=id, subscription=subscription)
        found = replace(found, suspended=message.suspended)
        return Registering(ticket=ticket, client=client, expectation=_at(found, message.version))

    def _change_expectation(self, ticket: int, client: str, message: ChangeExpectation) -> Updating:
        id = self.expectation_id(client, message.expectation)
        known = self.state.expectations.get(id)
        subscription = known.expectation.subscription if known is not None else ""
        changes = told_changes(message.body, self._around(client, subscription), subscription=subscription)
        return Updating(ticket=ticket, client=client, id=id, changes=changes, version=message.version)

    # ── profiles ──

    def _profile(self, client: str, type: str, body: Mapping[str, Any]) -> Profile:
        return told_profile(body, self._around(client), publisher=client, type=type)

    def _change_profile(self, ticket: int, client: str, message: ChangeProfile) -> Revising:
        id = f"{client}/{message.type}"
        known = self.state.profiles.get(id)
        if known is None:
            raise SituError(NOT_NEGOTIATED(what="profile", name=id, nearest=()))
        after, told = told_revision(message.body, self._around(client), known=known.profile)
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
            values = told_values(said, self._around(client), type=known.profile.type)
        return Answered(
            client=client,
            advice=message.advice,
            verdict=message.verdict,  # type: ignore[arg-type]  # looked at above
            values=values,
            ticket=ticket,
        )


def _at(found: Any, version: int | None) -> Any:
    return found if version is None else replace(found, version=version)
