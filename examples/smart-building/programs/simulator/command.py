"""The simulator in a terminal: events to standard output, one a line; progress to standard error.

Owns the options and the pace. Exit codes: 0 done, also after Ctrl-C or when the reader has had enough; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, TextIO

from simulator.floor_plan import example_building, load_building, write_building
from simulator.sensors import SENSED, SIGNALS
from simulator.simulation import START, Simulation, simulate

_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(us|ms|s|min|h|d)")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SMOOTH = timedelta(milliseconds=250)
_PROGRESS_EVERY = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        building = load_building(options.plan) if options.plan else example_building()
        simulation = simulate(
            building,
            seed=options.seed,
            persons=options.persons,
            duration=options.duration,
            start=options.start,
            interval=options.every,
            rate=options.rate,
            types=options.types,
            disorder=options.disorder,
            duplicates=options.duplicates,
            malformed=options.malformed,
            situations=options.situations,
        )
        if options.write_plan:
            write_building(simulation.building, options.write_plan)
        if options.truth:
            options.truth.write_text(_truth(simulation), encoding="utf-8")
    except (ValueError, OSError) as problem:
        parser.error(str(problem))
    progress = _Progress(sys.stderr if sys.stderr.isatty() else None)
    try:
        for chunk in _paced(simulation) if options.paced else simulation.json_lines():
            _write(sys.stdout.buffer, chunk)
            progress.add(chunk.count(b"\n"))
    except BrokenPipeError:
        # Whoever read has had enough; closing standard output must not complain a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        pass
    progress.finish()
    return 0


def _paced(simulation: Simulation) -> Iterator[bytes]:
    """Each line when it is due, those due together in one piece."""
    begin = time.monotonic()
    for arrival, text in simulation.timed_lines(span=_SMOOTH):
        lines = text.splitlines(keepends=True)
        done = 0
        while done < len(lines):
            time.sleep(max(0.0, begin + arrival[done] / 1e6 - time.monotonic()))
            passed = (time.monotonic() - begin) * 1e6
            due = max(done + 1, int(arrival.searchsorted(passed, side="right")))
            yield b"".join(lines[done:due])
            done = due


def _write(out: BinaryIO, chunk: bytes) -> None:
    out.write(chunk)
    out.flush()


class _Progress:
    def __init__(self, out: TextIO | None) -> None:
        self._out, self._events = out, 0
        self._begin = self._shown = time.monotonic()

    def add(self, events: int) -> None:
        self._events += events
        if time.monotonic() - self._shown > _PROGRESS_EVERY:
            self._show(end="")

    def finish(self) -> None:
        self._show(end="\n")

    def _show(self, end: str) -> None:
        self._shown = time.monotonic()
        if self._out:
            rate = self._events / max(1e-9, self._shown - self._begin)
            self._out.write(f"\r{self._events:,} events, {rate:,.0f}/s {end}")
            self._out.flush()


def _truth(simulation: Simulation) -> str:
    rows = (
        {"guest": one.guest, "room": one.room, "entered": _instant(one.entered), "left": _instant(one.left)}
        for one in simulation.truth
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


def _instant(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m simulator",
        description="Walk people through a building and write what its sensors see: CloudEvents, one a line.",
        epilog="The same options give the same bytes, on any machine. Durations: 500ms, 60s, '5 min', 2h, 1d.",
    )
    add = parser.add_argument
    add("--plan", type=Path, metavar="FOLDER", help="project whose data/ describes the building (default: the example)")
    add("--persons", type=int, metavar="N", help="how many people walk; wings are added as needed")
    add(
        "--for",
        dest="duration",
        type=_length,
        default="60s",
        metavar="TIME",
        help="event time, or `ever` (default: 60s)",
    )
    add("--seed", type=int, default=7, metavar="N", help="another seed, another day (default: 7)")
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--rate", type=float, metavar="N", help="about so many events a second of event time")
    pace.add_argument(
        "--every", type=_duration, metavar="TIME", help="how often each person is noticed (default: 500ms)"
    )
    add("--start", type=_start, default=START, metavar="TIME", help=f"RFC 3339, or `now` (default: {_instant(START)})")
    add("--types", nargs="+", metavar="TYPE", help=f"of {_names(SIGNALS)} (default: {_names(SENSED)})")
    add("--disorder", type=_duration, default="0s", metavar="TIME", help="events arrive up to so much later")
    add("--duplicates", type=float, default=0.0, metavar="FRACTION", help="of the events arrive twice")
    add("--malformed", type=float, default=0.0, metavar="FRACTION", help="of the events are broken")
    add("--situations", type=int, default=0, metavar="N", help="guests who go alone into restricted rooms")
    add("--truth", type=Path, metavar="FILE", help="write when and where they do, one JSON object a line")
    add("--write-plan", type=Path, metavar="FOLDER", help="write the building's data/ with all wings into a folder")
    add("--paced", action="store_true", help="in real time instead of as fast as possible")
    return parser


def _names(signals: Sequence[object]) -> str:
    return ", ".join(str(getattr(signal, "type", signal)) for signal in signals)


def _duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"`{text}` is no duration such as 500ms, 60s, 5min, 2h")
    return timedelta(seconds=float(match[1]) * _UNITS[match[2]])


def _length(text: str) -> timedelta | None:
    return None if text == "ever" else _duration(text)


def _start(text: str) -> datetime:
    if text == "now":
        return datetime.now(UTC)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{text}` is no instant such as {_instant(START)}") from None
