"""What must not happen and does: it is counted, logged with all there is to know, and told by the id it has there.

Whoever takes messages one after the other goes on with the next. What is raised because memory, disk, bus or registry
fail is no mistake, and raised on.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from situ.event.failures import FailureLog, StageFailure, failure_of
from situ.event.row import BadRow
from situ.lang.catalogue import INTERNAL
from situ.lang.problems import Problem


class InternalErrors:
    """Those of one part of a run; ``counts`` says how often something failed in a way that nobody foresaw, by what it
    was. Events that fail are dead letters, and counted as such."""

    def __init__(self, log: logging.Logger) -> None:
        self.counts: Counter[str] = Counter()
        self._log = log
        self._seen = FailureLog()

    def note(self, error: BaseException, what: str) -> StageFailure:
        """Log and count what was raised while doing something."""
        failure = failure_of(error, what)
        self.counts[what] += 1
        for text in self._seen.texts([failure.trace]):
            self._log.error("%s", text)
        return failure

    @contextmanager
    def noted(self, what: str) -> Iterator[None]:
        """Within, what nobody foresaw is logged and counted, and ends nothing but this."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - see the module
            self.note(error, what)

    def told(self, error: BaseException, what: str) -> Problem:
        """The same; what whoever asked is told of it says nothing about others."""
        failure = self.note(error, what)
        return INTERNAL(id=failure.id, what=failure.what)

    def take(self, failures: Iterable[StageFailure]) -> None:
        """Log and count what was found to have failed."""
        for failure in failures:
            self.counts[failure.stage] += 1
            for text in self._seen.texts([failure.trace]):
                self._log.error("%s", text)

    def begun_anew(self, policy: str, failure: StageFailure) -> None:
        """A policy has forgotten what it remembered, because it failed on that."""
        self.counts["policy that began anew"] += 1
        self._log.error("policy %s cannot go on from what it remembers and begins anew:\n%s", policy, failure.trace)

    def untold(self, policies: Iterable[str]) -> None:
        """What policies decided cannot be published."""
        for policy, count in Counter(policies).items():
            self.counts["situation that is not told"] += count
            self._log.error("policy %s: %d transitions of situations cannot be told and are left out", policy, count)

    def of_events(self, bad: Iterable[BadRow]) -> None:
        """Log those of the dead letters that are mistakes."""
        for text in self._seen.of(bad):
            self._log.error("%s", text)
