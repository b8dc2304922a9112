"""What a client expects of the quality of its subscriptions, and what it hears about that.

The client keeps what it registered: when its router has forgotten it, it is registered again, under the same id and
with the same version. Names are the client's own; outside they are preceded by that of the client.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from situ.bus.interface import Bus
from situ.client.declarations import Registration
from situ.client.feedback import FeedbackListener, QualityRegistrations
from situ.client.quality_files import Body, ExpectationDraft, read_expectations, write_file
from situ.client.session import Session
from situ.lang.records import replace
from situ.protocol.messages import AskQuality, ChangeExpectation, Expect, MoveExpectation
from situ.quality.negotiation.feedback import StateChange

OnChange = Callable[[StateChange], Awaitable[object] | object]


@dataclass(slots=True, eq=False)
class RegisteredExpectation:
    """An expectation that is registered. ``options`` are the keys that have no field here.

    >>> trucks = await office.register_for_events("TruckSeen")
    >>> wanted = await office.expectations.register(trucks, {"rate": {"lb": 5, "ub": 10}}, id="watch")
    >>> await office.expectations.revoke(wanted)
    """

    id: str
    subscription: str
    """The name of the subscription, without the client."""
    need: Body
    utility: float = 1.0
    options: Body = field(default_factory=dict)
    version: int = 1
    suspended: bool = False

    @property
    def body(self) -> dict[str, Any]:
        """As a file says it."""
        return {"need": dict(self.need), "utility": self.utility, **self.options}


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyQuality:
    """Why an expectation stands as it does, in words and as data.

    >>> profile = await gate.capabilities.register("TruckSeen", {"rate": {"lb": 1, "ub": 60, "cv": 2}})
    >>> trucks = await office.register_for_events("TruckSeen")
    >>> wanted = await office.expectations.register(trucks, {"rate": {"lb": 5, "ub": 10}})
    >>> why = await office.expectations.explain(wanted)
    >>> "rate" in why.text
    True
    >>> await gate.capabilities.revoke(profile)
    """

    text: str
    answer: Mapping[str, Any]


class ExpectationHandler(QualityRegistrations[RegisteredExpectation, StateChange]):
    """The expectations of one client, by their ids: ``client.expectations``."""

    def __init__(self, bus: Bus, session: Session) -> None:
        super().__init__(bus, session, "sub")
        self._session = session
        self._made_up = 0

    # ── calls ──

    async def register(
        self,
        /,
        subscription: Registration | str,
        need: Body,
        *,
        utility: float = 1.0,
        id: str | None = None,
        **options: Any,
    ) -> RegisteredExpectation:
        """Say what a subscription needs; several expectations of one subscription are alternatives.

        ``need`` and ``options`` are what a file of ``quality/`` has: ``sources``, ``aggregate``, and, as Python keeps
        those words for itself, ``else_`` and ``from_``.
        """
        if id is None:
            self._made_up += 1
            id = f"e-{self._session.number}-{self._made_up}"
        name = subscription.name if isinstance(subscription, Registration) else subscription
        made = RegisteredExpectation(
            id=id,
            subscription=name.removeprefix(f"{self.client}/"),
            need=need,
            utility=utility,
            options=_written(options),
        )
        async with self._negotiating.turn(id):
            await self._hearing.begin()
            self._take(made, await self._expect(made, version=None))
            self.registered[id] = made
        return made

    async def update(
        self,
        /,
        id: RegisteredExpectation | str,
        *,
        need: Body | None = None,
        utility: float | None = None,
        version: int | None = None,
        **options: Any,
    ) -> RegisteredExpectation:
        """Put something else in the place of what it needs, all at once; if that is refused, the old one stays.

        ``version`` is the one that it is to have then: with it, Q112 if somebody was faster.
        """
        name = _id(id)
        async with self._negotiating.turn(name):
            known = self.registered.get(name)
            changes = _written(options)
            if need is not None:
                changes["need"] = dict(need)
            if utility is not None:
                changes["utility"] = utility
            if version is None and known is not None:
                version = known.version + 1
            message = ChangeExpectation(
                req=self._negotiating.request(), expectation=name, body=changes, version=version
            )
            answer = await self._change(known, message)
            if known is None:  # the project declares it: nothing to register again
                return self._as_answered(answer)
            known.need = known.need if need is None else need
            known.utility = known.utility if utility is None else utility
            known.options = {**known.options, **_written(options)}
            self._take(known, answer)
        return known

    async def suspend(self, id: RegisteredExpectation | str) -> None:
        """Let it rest: it is not matched, and nothing is done for it or said of it."""
        await self._move(_id(id), "suspend")

    async def resume(self, id: RegisteredExpectation | str) -> None:
        await self._move(_id(id), "resume")

    async def revoke(self, id: RegisteredExpectation | str) -> None:
        """End it. What was done for it is undone."""
        name = _id(id)
        await self._move(name, "revoke")
        self.registered.pop(name, None)

    # ── hearing ──

    async def state(self, id: RegisteredExpectation | str) -> StateChange:
        """How it stands now, as the router knows it."""
        return (await self.states(_id(id)))[0]

    async def states(self, about: str = "") -> list[StateChange]:
        """How all expectations of this client stand, those of the project among them; or the one that is named."""
        answer = await self._negotiating.ask(AskQuality(req=self._negotiating.request(), about=about))
        return [self._own(StateChange.from_json(each)) for each in answer["states"]]

    async def explain(self, id: RegisteredExpectation | str) -> WhyQuality:
        """Why an expectation stands as it does: every publisher, without its name, and what would help."""
        message = AskQuality(req=self._negotiating.request(), about=_id(id), explain=True)
        answer = await self._negotiating.told(message)
        return WhyQuality(text=answer.text, answer=answer.body)

    def changes(self) -> AsyncGenerator[StateChange, None]:
        """Every change of a state from now on, of all expectations of this client."""
        stream = self._hearing.stream()
        self._negotiating.begin(self._begin_hearing())
        return self._changes(stream)

    async def _changes(self, stream: AsyncGenerator[StateChange, None]) -> AsyncGenerator[StateChange, None]:
        try:
            async for each in stream:
                yield self._own(each)
        finally:
            await stream.aclose()

    def on_change(self, callback: OnChange) -> FeedbackListener[StateChange]:
        """Call back for every change of a state; ``await`` its ``close()`` to end that."""
        return self._call_back(lambda change: callback(self._own(change)))

    # ── files ──

    def store(self, path: str | os.PathLike[str], ids: Iterable[str] | None = None) -> None:
        """Write what is registered to a file, in the order of registration."""
        wanted = None if ids is None else set(ids)
        found = [each for each in self.registered.values() if wanted is None or each.id in wanted]
        entries = [{"subscription": f"{self.client}/{each.subscription}", "id": each.id, **each.body} for each in found]
        write_file(path, {"expectations": entries})

    def load(self, path: str | os.PathLike[str]) -> list[ExpectationDraft]:
        """What a file says; nothing is registered."""
        return read_expectations(path, self.client)

    async def register_draft(self, draft: ExpectationDraft) -> RegisteredExpectation:
        return await self.register(
            draft.subscription, draft.need, utility=draft.utility, id=draft.id, **dict(draft.options)
        )

    # ── how ──

    async def _register_again(self, registered: RegisteredExpectation) -> None:
        self._take(registered, await self._expect(registered, version=registered.version))
        if registered.suspended:
            await self._call(registered.id, "suspend")  # the router may know it, and not that it rests

    async def _expect(self, made: RegisteredExpectation, version: int | None) -> Mapping[str, Any]:
        return await self._negotiating.ask(
            Expect(
                req=self._negotiating.request(),
                expectation=made.id,
                sub=made.subscription,
                body=made.body,
                version=version,
                suspended=made.suspended,
            )
        )

    async def _move(self, name: str, call: str) -> None:
        async with self._negotiating.turn(name):
            await self._call(name, call)
            known = self.registered.get(name)
            if known is not None:
                known.suspended = call == "suspend"

    async def _call(self, name: str, call: str) -> None:
        await self._negotiating.ask(MoveExpectation(req=self._negotiating.request(), expectation=name, call=call))

    def _take(self, known: RegisteredExpectation, answer: Mapping[str, Any]) -> None:
        known.version = int(answer.get("version", known.version))

    def _as_answered(self, answer: Mapping[str, Any]) -> RegisteredExpectation:
        known = {"id", "subscription", "need", "utility", "version", "order", "suspended"}
        return RegisteredExpectation(
            id=answer["id"],
            subscription=answer["subscription"].removeprefix(f"{self.client}/"),
            need=answer["need"],
            utility=answer["utility"],
            options={key: value for key, value in answer.items() if key not in known},
            version=answer["version"],
            suspended=answer.get("suspended", False),
        )

    def _own(self, change: StateChange) -> StateChange:
        """With ids as this client calls them."""
        prefix = f"{self.client}/"
        force = change.in_force
        return replace(
            change,
            expectation=change.expectation.removeprefix(prefix),
            in_force=None if force is None else force.removeprefix(prefix),
        )

    async def _catch_up(self) -> None:
        answer = await self._negotiating.ask(AskQuality(req=self._negotiating.request()))
        for each in answer.get("states", ()):
            self._hearing.tell(StateChange.from_json(each))


def _id(id: RegisteredExpectation | str) -> str:
    return id if isinstance(id, str) else id.id


def _written(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by the names that files have for them."""
    return {name.removesuffix("_"): value for name, value in options.items()}
