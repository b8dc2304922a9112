"""What conversions remember from batch to batch, and which deliveries wait, beside the checkpoint of the query.

Written at the end of a batch under the position where it ended, read by the batch that begins there: a batch that is
repeated starts from what its first run started from. A deployment that remembers is worked by one task at a time, in
the order of the log; the worker that has done the last batch mostly does the next, and has it all in memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from situ.catalogue import CHECKPOINT_DAMAGED
from situ.deployment.holding import Holding
from situ.deployment.plan import Plan
from situ.errors import Location, SituError

_KEPT = 3
_VERSION = 1


@dataclass(slots=True)
class _InHand:
    """What this process has of a query, and where in the log that is; None: in the midst of a batch."""

    holding: Holding
    seq: int | None = None


_in_hand: dict[Path, _InHand] = {}


class Remembering:
    """What the batch from one position of the log to another starts from, and leaves behind."""

    def __init__(self, checkpoint: Path, begin: int, end: int) -> None:
        self._folder = checkpoint / "memory"
        self._begin, self._end = begin, end
        self._before: tuple[int, int] | None = None

    @property
    def is_left_behind(self) -> bool:
        """Whether the batch before remembered something: under a deployment that does not, what waits is let go."""
        return self._file(self._begin).exists()

    def start(self, plan: Plan) -> Holding:
        """What waits, with everything remembered that was at the beginning of the batch."""
        interpretation = plan.interpretation
        known = _in_hand.get(self._folder)
        same = known is not None and known.seq == self._begin and known.holding.memory is interpretation.outgoing
        if known is None or not same:
            known = _in_hand[self._folder] = _InHand(Holding(interpretation.outgoing))
            self._restore(plan, known.holding)
        known.seq = None
        interpretation.outgoing.holds = True
        self._before = (_noted(plan), len(known.holding))
        return known.holding

    def finish(self, plan: Plan) -> None:
        """Write down what is remembered at the end of the batch."""
        known = _in_hand[self._folder]
        if not plan.interpretation.remembers:
            del _in_hand[self._folder]
            return  # nothing waits any more
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._file(self._end)
        beside = file.with_suffix(f".{os.getpid()}")
        beside.unlink(missing_ok=True)
        before = self._file(self._begin)
        waiting = len(known.holding)
        if not waiting and self._before == (_noted(plan), 0) and before.exists():
            os.link(before, beside)  # nothing came that would have to be remembered
        else:
            interpretation = plan.interpretation
            incoming, outgoing = interpretation.incoming.as_text(), interpretation.outgoing.as_text()
            beside.write_bytes(_text(incoming, outgoing, known.holding.as_json()))
        beside.replace(file)
        beside.unlink(missing_ok=True)  # two names of one file are not replaced by each other
        known.seq = self._end
        self._prune()

    def _restore(self, plan: Plan, holding: Holding) -> None:
        interpretation = plan.interpretation
        interpretation.incoming.forget()
        interpretation.outgoing.forget()
        file = self._file(self._begin)
        if not file.exists():
            return  # nothing was remembered by then
        try:
            content = msgspec.json.decode(file.read_bytes())
            if content["version"] != _VERSION:
                raise ValueError(f"its version is {content['version']}")
            interpretation.incoming.restore(content["incoming"])
            interpretation.outgoing.restore(content["outgoing"])
            holding.restore(content["waiting"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SituError(CHECKPOINT_DAMAGED(Location(file=str(file)), reason=str(error))) from None

    def inherit(self, incoming: bytes, outgoing: bytes, waiting: Sequence[Any]) -> None:
        """Have the first batch go on from what another engine remembered, and from the deliveries that waited there."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file(self._begin).write_bytes(_text(incoming, outgoing, waiting))

    @property
    def waiting(self) -> Sequence[Any]:
        """The deliveries that waited at the beginning of the batch."""
        file = self._file(self._begin)
        try:
            found: Sequence[Any] = msgspec.json.decode(file.read_bytes())["waiting"] if file.exists() else ()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SituError(CHECKPOINT_DAMAGED(Location(file=str(file)), reason=str(error))) from None
        return found

    def _prune(self) -> None:
        numbers = sorted(int(each.stem) for each in self._folder.glob("*.json") if each.stem.isdigit())
        for seq in numbers[:-_KEPT]:
            self._file(seq).unlink(missing_ok=True)

    def _file(self, seq: int) -> Path:
        return self._folder / f"{seq}.json"


def _text(incoming: bytes, outgoing: bytes, waiting: Sequence[Any]) -> bytes:
    content = {
        "version": _VERSION,
        "incoming": msgspec.Raw(incoming),
        "outgoing": msgspec.Raw(outgoing),
        "waiting": waiting,
    }
    return msgspec.json.encode(content)


def _noted(plan: Plan) -> int:
    return plan.interpretation.incoming.noted + plan.interpretation.outgoing.noted
