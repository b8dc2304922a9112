"""Visibility in routing: what is left of those who want an event when it must be visible to them, too.

`VisibilityCheck` is all that routing asks of visibility and knows of it, `VisibleTargets` restricts delivery targets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Protocol, TypeAlias

import msgspec

from situ.event.lines import dead_client
from situ.event.row import Row
from situ.lang.tags import TagSet
from situ.lang.types.table import DEAD_LETTER
from situ.routing.delivery_groups import NO_TARGETS, DeliveryTargets, SharedFilters

VisibilityKey: TypeAlias = tuple[int, int, int, int, str]
"""All that an event's visibility depends on: its tags, the epoch it was stamped in, its bits then and in the epoch in
force, and the stamps of its parts. Events that look alike are seen by the same."""


class VisibilityCheck(Protocol):
    """Decides whether events are visible to tag sets."""

    @property
    def epoch(self) -> int:
        """The epoch in force."""

    def look(self, row: Row) -> VisibilityKey: ...

    def sees(self, look: VisibilityKey, subscribed: TagSet) -> bool:
        """Whether what looks so may be handed to a subscription with these tags."""

    def saw(self, look: VisibilityKey, subscribed: TagSet) -> bool:
        """Whether it was visible to these tags when it was stamped, whatever has changed since."""

    def asked(self, tags: int, epoch: int, subscribed: TagSet) -> tuple[int, int]:
        """On which bits it depends, then and in the epoch in force, for what has these tags and no parts."""


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Restriction of targets. What is left depends on the tags and the epoch of an event and on those of its bits that
# anybody asks for. So it is worked out once, and found by a look-up from then on. Neighbours in a log mostly look
# alike: for them not even that.

_MOST_REMEMBERED = 20_000
_LETTER = DEAD_LETTER.name
_looks = attrgetter("tags", "epoch", "bits", "parts", "type", "client")


class _TargetSubset(msgspec.Struct, frozen=True):
    """Of these targets, for events of one tag set and epoch: the bits that are asked for, and what is left by them."""

    targets: DeliveryTargets  # kept, so that nothing else can have its identity
    then: int
    now: int
    known: dict[tuple[int, int], DeliveryTargets] = msgspec.field(default_factory=dict)


class VisibleTargets:
    """What is left of the targets of one snapshot of subscriptions."""

    def __init__(self, wanted: SharedFilters, sight: VisibilityCheck) -> None:
        self._wanted = wanted
        self._sight = sight
        self._left: dict[tuple[int, int, int], _TargetSubset] = {}
        self._size = 0

    def each(
        self, rows: Sequence[Row], found: Sequence[DeliveryTargets], *, queued: bool = False
    ) -> list[DeliveryTargets]:
        """What is left for each of these rows of its targets; ``queued``, see :meth:`one`."""
        result: list[DeliveryTargets] = []
        last, alike, left = NO_TARGETS, None, NO_TARGETS
        for targets, looks, row in zip(found, map(_looks, rows), rows, strict=True):
            if targets is not last or looks != alike:
                left = NO_TARGETS if targets is NO_TARGETS else self.one(row, targets, queued=queued)
                # Filters that are new since a row was stamped are asked of each.
                last, alike = targets, looks if self._sight.epoch == row.epoch else None
            result.append(left)
        return result

    def one(self, row: Row, targets: DeliveryTargets, *, queued: bool = False) -> DeliveryTargets:
        """What is left for a row of its targets.

        ``queued``: whoever hands over what waits for durable subscriptions decides by the scopes in force then. Here it
        counts what was visible when it was stamped, so that the same is put there whenever it is routed.
        """
        look = self._sight.look(row)
        tags, epoch, then, now, parts = look
        if queued and epoch != self._sight.epoch:
            now_left = self._without_blind(targets, look, row.client if row.type == _LETTER else "")
            return self._with_queued(now_left, targets, look)
        if parts or row.type == _LETTER:
            return self._without_blind(targets, look, row.client if row.type == _LETTER else "")
        left = self._left.get((id(targets), tags, epoch))
        if left is None:
            left = self._remember(targets, tags, epoch)
        bits = (then & left.then, now & left.now)
        found = left.known.get(bits)
        if found is None:
            if self._size >= _MOST_REMEMBERED:
                self._left.clear()
                self._size = 0
                left = self._remember(targets, tags, epoch)
            self._size += 1
            found = left.known[bits] = self._without_blind(targets, look)
        return found

    def _remember(self, targets: DeliveryTargets, tags: int, epoch: int) -> _TargetSubset:
        asked = [self._sight.asked(tags, epoch, each) for each in self._tag_sets(targets)]
        then = now = 0
        for one, other in asked:
            then |= one
            now |= other
        left = self._left[id(targets), tags, epoch] = _TargetSubset(targets, then, now)
        return left

    def _tag_sets(self, targets: DeliveryTargets) -> set[TagSet]:
        groups, subscriptions = self._wanted.groups, self._wanted.subscriptions
        found = {groups[each].scopes for each in targets.durable}
        return found | {
            subscriptions[f"{client}/{name}"].scopes for client, names in targets.live for name in names.split(",")
        }

    def _with_queued(self, left: DeliveryTargets, targets: DeliveryTargets, look: VisibilityKey) -> DeliveryTargets:
        groups = self._wanted.groups
        durable = tuple(
            each for each in targets.durable if each in left.durable or self._sight.saw(look, groups[each].scopes)
        )
        return DeliveryTargets(durable, left.live) if durable or left.live else NO_TARGETS

    def _without_blind(self, targets: DeliveryTargets, look: VisibilityKey, letter_of: str = "") -> DeliveryTargets:
        """Without those to whom it is not visible. A dead letter is never kept from the client whose event it was."""
        seen = {each: self._sight.sees(look, each) for each in self._tag_sets(targets)}
        groups, subscriptions = self._wanted.groups, self._wanted.subscriptions

        def is_own(client: str) -> bool:
            return bool(letter_of) and dead_client(client) == letter_of

        durable = tuple(
            each
            for each in targets.durable
            if seen[groups[each].scopes] or all(is_own(_client(id)) for id in groups[each].subscriptions)
        )
        live = tuple(
            (client, own)
            for client, names in targets.live
            if (own := names if is_own(client) else _seen(client, names, lambda id: seen[subscriptions[id].scopes]))
        )
        if len(durable) == len(targets.durable) and live == targets.live:
            return targets
        return DeliveryTargets(durable, live) if durable or live else NO_TARGETS


def _client(subscription: str) -> str:
    return subscription.partition("/")[0]


def _seen(client: str, names: str, sees: Callable[[str], bool]) -> str:
    """Those of the names whose subscriptions see it, joined as before."""
    return ",".join(name for name in names.split(",") if sees(f"{client}/{name}"))
