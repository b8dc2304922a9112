"""Which messages of the root log detection has taken, and in which steps: as much of it as is not written down yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from situ.deployment.plan import Plan
from situ.event.message import EventKey
from situ.event.row import Row

RECENT = 4096
"""Messages of the log that are known to be taken, of the last ones."""


@dataclass(slots=True)
class Taken:
    """A message of the root log; without rows it is none that a policy wants."""

    seq: int
    rows: Sequence[Row]
    plan: Plan
    settled: EventKey | None = None
    """No message, but news: what this policy published up to this event is in the log, or is dead letters."""


class StepsTaken:
    """What was taken, and the steps of which nothing is written down yet."""

    def __init__(self) -> None:
        self.reached = 0
        """The last message of the log that was taken."""
        self._recent: deque[int] = deque(maxlen=RECENT)
        self._steps: list[tuple[int, tuple[int, ...]]] = []
        """When each was, and with which messages."""
        self._passed: list[tuple[int, int]] = []
        """Messages that no policy wanted: first and last of those that follow each other."""

    @property
    def recent(self) -> frozenset[int]:
        """The last messages that were taken: acknowledgements need not come in the order of the log."""
        return frozenset(self._recent)

    def is_taken(self, recent: frozenset[int], seq: int) -> bool:
        """Whether a message was taken, if these are the recent ones."""
        return seq <= self.reached - RECENT // 2 or seq in recent

    def know(self, messages: Iterable[int]) -> None:
        """These are taken."""
        for seq in messages:
            self._recent.append(seq)
            self.reached = max(self.reached, seq)

    def know_between(self, first: int, last: int) -> None:
        """These are taken, both included: of many the last ones are remembered."""
        self.know(range(max(first, last + 1 - RECENT, 1), last + 1))

    def step(self, clock: int, messages: tuple[int, ...]) -> None:
        """A step took these."""
        self.know(messages)
        if not messages and self._steps and not self._steps[-1][1]:
            self._steps.pop()  # the clock went on, and then went on further
        self._steps.append((clock, messages))

    def passed(self, seq: int) -> None:
        """A message that no policy wants is taken without a step."""
        if self._passed and self._passed[-1][1] == seq - 1:
            self._passed[-1] = (self._passed[-1][0], seq)
        else:
            self._passed.append((seq, seq))
        self.know((seq,))

    def drained(self) -> tuple[tuple[tuple[int, tuple[int, ...]], ...], tuple[tuple[int, int], ...]]:
        """The steps, and what was passed: from here on they count as written down."""
        steps, passed = tuple(self._steps), tuple(self._passed)
        self._steps, self._passed = [], []
        return steps, passed
