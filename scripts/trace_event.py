"""The way of one event on the edge, traced: every call from one module into another, in the order of the calls.

    .venv/bin/python scripts/trace_event.py [--write]

``--write`` puts it on the page about the architecture; a test holds the page against the trace.

A *hop* is a distinct call from a function of one module to a function of another; a *crossing* is a hop from one
package (`situ.edge`, `situ.stages`) to another. Properties, special methods, lambdas and comprehensions do not count.
The event is published by a connected client, on the bus in memory, and has a live subscriber with a filter and a
durable one. Traced is from where the router gets its message (`Router._handle`) to where it is handed to detection
(`EdgeDetection.take`), in the tasks that take it on: others, which wake up meanwhile, do nothing with the event.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from situ.edge.detect import EdgeDetection  # noqa: E402
from situ.edge.engine import EdgeEngine  # noqa: E402
from situ.router.router import Router  # noqa: E402
from tests.edge_zone import edge_zone, eventually  # noqa: E402

PAGE = ROOT / "docs" / "internals" / "architecture.md"
BEGIN = "<!-- the way of an event: written by `scripts/trace_event.py --write` -->"
END = "<!-- end of the way of an event -->"

_SOURCE = f"{ROOT / 'src'}/"
_FIRST, _LAST = Router._handle.__code__, EdgeDetection.take.__code__
_TASKS = {_FIRST, Router._run.__code__, EdgeEngine._route_on.__code__}
_EVENTS = 3
"""How many are traced: what not all of them do is none of their way, but a heartbeat or a time that is over."""


@dataclass(frozen=True)
class Hop:
    """A call from a function of one module to one of another. ``depth`` counts the modules that wait for it."""

    caller: str
    """Path of the module below `src`, and behind it the function."""
    callee: str
    depth: int

    @property
    def is_crossing(self) -> bool:
        """Whether it leads to another package."""
        return self.caller.split("/")[:2] != self.callee.split("/")[:2]


class Trace:
    """The hops of one event, while this is the profile function of the thread."""

    def __init__(self) -> None:
        self.ended = False
        self._began = False
        self._found: dict[tuple[str, str], Hop] = {}

    @property
    def hops(self) -> list[Hop]:
        return list(self._found.values())

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        self._began = self._began or code is _FIRST
        if event != "call" or not self._began or self.ended or not _counts(code, frame.f_globals.get("__name__", "")):
            return
        above = [each for each in _frames(frame) if each.f_code.co_filename.startswith(_SOURCE)]
        if _TASKS.isdisjoint(each.f_code for each in above):
            return
        modules = [each.f_code.co_filename for each in above]
        if len(above) > 1 and modules[0] != modules[1]:
            caller, callee = _place(above[1].f_code), _place(code)
            depth = sum(one != other for one, other in itertools.pairwise(modules))
            self._found.setdefault((caller, callee), Hop(caller, callee, depth))
        if code is _LAST:
            self.ended = True
            sys.setprofile(None)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _place(code: CodeType) -> str:
    """Where a function is; what it has inside of it, but for functions with names of their own, counts as itself."""
    names = [each for each in code.co_qualname.split(".") if each != "<locals>"]
    while names[-1].startswith("<"):
        names.pop()
    return f"{code.co_filename.removeprefix(_SOURCE)} {'.'.join(names)}"


@functools.cache
def _counts(code: CodeType, module: str) -> bool:
    # To read the clock is no step on the way, whichever function does it.
    if not code.co_filename.startswith(_SOURCE) or code.co_name.startswith(("<", "__", "wall_clock")):
        return False
    *owners, name = code.co_qualname.split(".")
    owner: Any = sys.modules.get(module)
    for each in owners:
        owner = getattr(owner, each, None)
    if owner is None:  # a function inside of a function
        return True
    return not isinstance(inspect.getattr_static(owner, name, None), property | functools.cached_property)


async def trace() -> list[Hop]:
    """The way of an event."""
    with tempfile.TemporaryDirectory() as folder:
        async with edge_zone(Path(folder)) as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            assert zone.engine is not None
            counts = zone.engine.counts
            await desk.register_for_events("Level", where="level > 5")
            await desk.register_for_events("Level", durable="mine")
            while not (counts.live and counts.groups):  # what is compiled for the first event is none of its way
                await (await pump.publish_event("Level", tank="a", level=7.0)).stored
            return await _common([Trace() for _ in range(_EVENTS)], pump)


async def _common(traces: Sequence[Trace], pump: Any) -> list[Hop]:
    for each in traces:
        sys.setprofile(each)
        try:
            await (await pump.publish_event("Level", tank="a", level=8.0)).stored
            await eventually(lambda each=each: each.ended)
        finally:
            sys.setprofile(None)
    others = [set(each.hops) for each in traces[1:]]
    return [hop for hop in traces[0].hops if all(hop in some for some in others)]


def drawn(hops: Sequence[Hop]) -> str:
    """The way as the page has it: callers stand above, and left of, what they call."""
    rows = []
    for number, hop in enumerate(hops, 1):
        path, _, name = hop.callee.partition(" ")
        rows.append((f"{number:3} {'⇒' if hop.is_crossing else ' '} {'  ' * (hop.depth - 1)}{name}", f"src/{path}"))
    width = max(len(left) for left, _ in rows) + 2
    crossings = sum(hop.is_crossing for hop in hops)
    body = "\n".join(f"{left:<{width}}{right}" for left, right in rows)
    return f"{len(hops)} hops, {crossings} of them into another package (⇒):\n\n```text\n{body}\n```"


def page(hops: Sequence[Hop]) -> str:
    """The page as it stands, with the way as it is now."""
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE} lacks the markers of the way of an event")
    return f"{before}{BEGIN}\n\n{drawn(hops)}\n\n{END}{after}"


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--write"]):
        print(__doc__, file=sys.stderr)
        return 2
    hops = asyncio.run(trace())
    if arguments:
        PAGE.write_text(page(hops), encoding="utf-8")
    else:
        print(drawn(hops))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
