"""All that detection remembers at one moment, as values that later steps do not change, and how it becomes bytes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from situ.deployment.detecting import Detecting
from situ.deployment.stepping import States
from situ.edge.remembered import Record

_REST, _MANY = 0.001, 10_000
"""Seconds between the bits that are put in bytes; rows for which another thread is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A record without the states of kernels; these are still to be put in bytes."""

    record: Record
    detecting: Detecting
    states: States

    def whole(self) -> Record:
        """The record, at once."""
        return replace(
            self.record, states={name: self.detecting.kernel(name).save(state) for name, state in self.states.items()}
        )

    async def whole_beside(self) -> Record:
        """The record, made while steps are taken.

        What is small is put in bytes here, bit by bit: a thread would take turns of several milliseconds with steps.
        """
        if sum(state.rows for state in self.states.values()) > _MANY:
            return await asyncio.to_thread(self.whole)
        found: dict[str, bytes] = {}
        for name, state in self.states.items():
            bits = self.detecting.kernel(name).saving(state)
            while name not in found:
                try:
                    next(bits)
                except StopIteration as done:
                    found[name] = done.value
                await asyncio.sleep(_REST)
        return replace(self.record, states=found)
