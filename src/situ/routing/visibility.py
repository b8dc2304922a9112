"""Restriction: what is left of those who want an event when it must be visible to them, too.

What is left depends on the tags and the epoch of an event and on those of its bits that anybody asks for. So it is
worked out once, and found by a look-up from then on. Neighbours in a log mostly look alike: for them not even that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from situ.event.lines import dead_client
from situ.event.row import Row
from situ.subscription.sight import Look, Sight
from situ.subscription.targets import NOBODY, Targets
from situ.subscription.wanted import Wanted
from situ.tags import TagSet
from situ.types.reserved import DEAD_LETTER

_MOST_REMEMBERED = 20_000
_LETTER = DEAD_LETTER.name
_looks = attrgetter("tags", "epoch", "bits", "parts", "type", "client")


@dataclass(frozen=True, slots=True)
class _Left:
    """Of these targets, for events of one tag set and epoch: the bits that are asked for, and what is left by them."""

    targets: Targets  # kept, so that nothing else can have its identity
    then: int
    now: int
    known: dict[tuple[int, int], Targets] = field(default_factory=dict)


class Restrictions:
    """What is left of the targets of one snapshot of subscriptions."""

    def __init__(self, wanted: Wanted, sight: Sight) -> None:
        self._wanted = wanted
        self._sight = sight
        self._left: dict[tuple[int, int, int], _Left] = {}
        self._size = 0

    def each(self, rows: Sequence[Row], found: Sequence[Targets], *, queued: bool = False) -> list[Targets]:
        """What is left for each of these rows of its targets; ``queued``, see :meth:`one`."""
        result: list[Targets] = []
        last, alike, left = NOBODY, None, NOBODY
        for targets, looks, row in zip(found, map(_looks, rows), rows, strict=True):
            if targets is not last or looks != alike:
                left = NOBODY if targets is NOBODY else self.one(row, targets, queued=queued)
                # Filters that are new since a row was stamped are asked of each.
                last, alike = targets, looks if self._sight.epoch == row.epoch else None
            result.append(left)
        return result

    def one(self, row: Row, targets: Targets, *, queued: bool = False) -> Targets:
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

    def _remember(self, targets: Targets, tags: int, epoch: int) -> _Left:
        asked = [self._sight.asked(tags, epoch, each) for each in self._tag_sets(targets)]
        then = now = 0
        for one, other in asked:
            then |= one
            now |= other
        left = self._left[id(targets), tags, epoch] = _Left(targets, then, now)
        return left

    def _tag_sets(self, targets: Targets) -> set[TagSet]:
        groups, subscriptions = self._wanted.groups, self._wanted.subscriptions
        found = {groups[each].scopes for each in targets.durable}
        return found | {
            subscriptions[f"{client}/{name}"].scopes for client, names in targets.live for name in names.split(",")
        }

    def _with_queued(self, left: Targets, targets: Targets, look: Look) -> Targets:
        groups = self._wanted.groups
        durable = tuple(
            each for each in targets.durable if each in left.durable or self._sight.saw(look, groups[each].scopes)
        )
        return Targets(durable, left.live) if durable or left.live else NOBODY

    def _without_blind(self, targets: Targets, look: Look, letter_of: str = "") -> Targets:
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
        return Targets(durable, live) if durable or live else NOBODY


def _client(subscription: str) -> str:
    return subscription.partition("/")[0]


def _seen(client: str, names: str, sees: Callable[[str], bool]) -> str:
    """Those of the names whose subscriptions see it, joined as before."""
    return ",".join(name for name in names.split(",") if sees(f"{client}/{name}"))
