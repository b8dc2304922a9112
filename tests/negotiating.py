"""A host of the negotiator without a bus: it carries out effects, keeps time, and can be killed between any two."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from situ.quality.model.costs import FREE, Cost
from situ.quality.model.declarations import BUILT_IN, NO_QUALITY, Capability, Expectation, Mode, Need, Profile, Quality
from situ.quality.model.shapes import Shape
from situ.quality.negotiation.feedback import Advice, StateChange, Usage, feedback_from_json
from situ.quality.negotiation.inputs_and_effects import (
    DeployedQuality,
    Effect,
    Input,
    NotifyClient,
    Relevance,
    Reply,
    Restored,
    ShapesChanged,
    StoreValues,
    Tick,
    Wake,
)
from situ.quality.negotiation.negotiator import new_state, step
from situ.quality.negotiation.state import NegotiatorState

START = 1_000_000.0


class Killed(Exception):
    """The host died."""


@dataclass
class Host:
    """What one zone has: the machine, its table, its shapes, and clients that drop what they got before."""

    quality: Quality = NO_QUALITY
    relevance: Relevance = field(default_factory=Relevance)
    now: float = START
    kept: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    heard: list[StateChange | Usage | Advice] = field(default_factory=list)
    """What reached a client and was news to it, in order."""
    heard_by: list[tuple[str, str]] = field(default_factory=list)
    """Who, and of which kind."""
    replies: dict[int, Any] = field(default_factory=dict)
    lives: int | None = None
    """How many effects are carried out before it is killed."""
    on_advice: Callable[[Host, Advice], None] | None = None
    tickets: int = 0
    messages: int = 0
    """All that were sent, repeated ones among them."""
    state: NegotiatorState = field(default_factory=new_state)
    wake: float | None = None
    unheard: list[Input] = field(default_factory=list)
    """Inputs that are on their way; whoever sent one tries again if it was not answered."""
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    _pending: list[Input] = field(default_factory=list)

    def start(self) -> Host:
        self.state, self.wake = new_state(), None
        self.give(Restored(kept={key: json.loads(value) for key, value in self.kept.items()}))
        self.give(DeployedQuality(quality=self.quality, relevance=self.relevance))
        return self

    def start_again(self) -> list[Input]:
        """Begin with what was kept; gives what nobody heard, which those who sent it are going to send again."""
        unheard = [*self.unheard, *self._pending]
        self.unheard, self._pending = [], []
        self.start()
        return unheard

    def deploy(self, quality: Quality | None = None, relevance: Relevance | None = None) -> None:
        self.quality = quality if quality is not None else self.quality
        self.relevance = relevance if relevance is not None else self.relevance
        self.give(DeployedQuality(quality=self.quality, relevance=self.relevance))

    def give(self, given: Input) -> None:
        """One input and all that clients answer to it. Those that are not heard stay in ``unheard``."""
        self.unheard = [given, *self.unheard]
        while self.unheard:
            for effect in step(self.state, self.unheard[0], self.now):
                self._carry_out(effect)
            self.unheard = [*self.unheard[1:], *self._pending]
            self._pending = []

    def later(self, given: Input) -> None:
        """An input that comes when the step is done."""
        self._pending.append(given)

    def call(self, make: Callable[..., Input], **values: Any) -> Any:
        self.tickets += 1
        ticket = self.tickets
        self.give(make(ticket=ticket, **values))
        return self.replies[ticket]

    def _carry_out(self, effect: Effect) -> None:
        if self.lives is not None:
            if self.lives == 0:
                raise Killed
            self.lives -= 1
        match effect:
            case StoreValues(values=values):
                for key, value in values.items():
                    if value is None:
                        self.kept.pop(key, None)
                    else:
                        self.kept[key] = json.dumps(value, allow_nan=False)
            case ShapesChanged(shapes=shapes):
                for subscription, shape in shapes.items():
                    if shape is None:
                        self.shapes.pop(subscription, None)
                    else:
                        self.shapes[subscription] = shape
            case NotifyClient():
                self._hear(effect)
            case Reply(ticket=ticket, result=result):
                self.replies[ticket] = result
            case Wake(at=at):
                self.wake = at

    def _hear(self, tell: NotifyClient) -> None:
        self.messages += 1
        message = feedback_from_json(json.loads(json.dumps(tell.message.as_json(), allow_nan=False)))
        assert message == tell.message
        if message.number <= self._numbers.get((tell.client, tell.id), 0):
            return
        self._numbers[tell.client, tell.id] = message.number
        self.heard.append(message)
        self.heard_by.append((tell.client, tell.kind))
        if isinstance(message, Advice) and self.on_advice is not None:
            self.on_advice(self, message)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and give ticks as they were asked for."""
        end = self.now + seconds
        while self.wake is not None and self.wake <= end:
            self.now = max(self.now, self.wake)
            self.wake = None
            self.give(Tick())
        self.now = end

    # ── looking ──

    def of(self, kind: type[Any], id: str | None = None) -> list[Any]:
        """What was heard of this kind."""
        return [each for each in self.heard if isinstance(each, kind) and (id is None or each.id == id)]

    def last(self, id: str) -> StateChange:
        found: StateChange = self.of(StateChange, id)[-1]
        return found

    def advices(self) -> list[tuple[str, dict[str, Any], str]]:
        return [(each.kind, dict(each.values), each.mode) for each in self.of(Advice)]


# ── making ──

RATE, CONFIDENCE = BUILT_IN["rate"], BUILT_IN["confidence"]


def need(about: str, lb: float | None = None, ub: float | None = None, **options: Any) -> Need:
    known = BUILT_IN[about]
    return Need(about=known, lb=known.lo if lb is None else lb, ub=known.hi if ub is None else ub, **options)


def expects(id: str, subscription: str = "desk/events", **options: Any) -> Expectation:
    """``rate=(5, 10)`` and the like are needs."""
    needs = {name: need(name, *options.pop(name)) for name in list(options) if name in BUILT_IN}
    return Expectation(id=id, subscription=subscription, needs=options.pop("needs", needs), **options)


def can(about: str, lb: float, ub: float, cv: float, cost: Cost = FREE) -> Capability:
    return Capability(about=BUILT_IN[about], lb=lb, ub=ub, cv=cv, cost=cost)


def provides(publisher: str, type: str = "badge", **capabilities: tuple[float, float, float]) -> Profile:
    found = {name: can(name, *values) for name, values in capabilities.items()}
    return Profile(publisher=publisher, type=type, capabilities=found)


def in_modes(publisher: str, mode: str, *modes: Mode, type: str = "badge") -> Profile:
    moded = {name: BUILT_IN[name] for name in modes[0].values}
    return Profile(publisher=publisher, type=type, modes=modes, mode=mode, moded=moded)


def all_relevant(publishers: tuple[str, ...], subscriptions: tuple[str, ...], type: str = "badge") -> Relevance:
    """Everybody gets everything."""
    pools: Mapping[str, str] = {f"{each}/{type}": "all" for each in publishers}
    return Relevance(pools=pools, relevant={each: frozenset({"all"}) for each in subscriptions})
