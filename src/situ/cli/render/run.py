"""The figures of a run, for people: as a picture that fills a terminal, as one line, and as the summary at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from situ.cli.show_problems import count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from situ.host.figures import Figures

_Counts = list[tuple[str, int]]
_UNITS = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))
_STATES = {"running": "green", "waiting for the bus": "yellow"}


def show_live(project: str, figures: Figures, before: Figures | None, notes: Iterable[str], rows: int) -> Group:
    """What flows now. ``before`` is an earlier look, for the rates of names; ``rows`` is how many names have room."""
    head = Text.assemble(
        (project, "bold"),
        f" · {figures.engine} · ",
        (figures.state, _STATES.get(figures.state, "yellow")),
        f" {clock(figures.seconds)}",
        (f" · deployment {figures.version}" if figures.version else "", ""),
    )
    parts: list[RenderableType] = [head, Text(), _sums(figures), Text(), _names(figures, before, rows)]
    said = [Text(note, style="yellow", no_wrap=True, overflow="ellipsis") for note in notes]
    if said:
        parts += [Text(), *said]
    parts += [Text(), Text("Ctrl-C stops it.", style="dim")]
    return Group(*parts)


def show_line(figures: Figures) -> str:
    """One look at a run in one line, for a log."""
    parts = [
        f"{clock(figures.seconds)} {figures.state}",
        f"in {figures.taken_rate:,.0f}/s ({figures.taken:,})",
        f"out {figures.delivered_rate:,.0f}/s ({figures.delivered:,})",
        f"waiting {figures.waiting:,}",
        f"dead letters {figures.dead:,}",
        f"memory {size(sum(figures.memory.values()))}",
        f"deployment {figures.version}",
    ]
    if figures.situations:
        parts.insert(3, f"situations {figures.situations.opened:,} ({figures.situations.open:,} open)")
    return " · ".join(parts)


def show_summary(figures: Figures) -> Iterator[RenderableType]:
    """What a run did, at its end."""
    if figures.types or figures.subscriptions or figures.codes or figures.situations.opened:
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
        table.add_column("")
        table.add_column("")
        table.add_column("events", justify="right")
        for title, counts in (
            ("accepted", accepted(figures)),
            ("delivered", delivered(figures)),
            ("converted for", _sorted(figures.converted)),
            ("dead letters", _sorted(figures.codes)),
            ("situations of", _situations(figures)),
        ):
            for place, (name, number) in enumerate(counts):
                table.add_row(title if place == 0 else "", name, f"{number:,}")
        yield table
        yield Text()
    seconds = f"{figures.seconds:.1f} s"
    text = Text(f"{count(figures.taken, 'event')} accepted, {figures.delivered:,} delivered, ")
    text.append(count(figures.dead, "dead letter"), "bold red" if figures.dead else "")
    situations = figures.situations
    if situations:
        text.append(f" · {count(situations.opened, 'situation')} of {count(situations.running, 'policy')}")
        text.append(f", {count(situations.late, 'event')} too late" if situations.late else "", "yellow")
    text.append(f" · {seconds}", "dim")
    yield text


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def size(number: float) -> str:
    """A size as people read it."""
    for name, unit in _UNITS:
        if number >= unit:
            scaled = number / unit
            return f"{scaled:.1f} {name}" if scaled < 10 else f"{scaled:.0f} {name}"
    return f"{number:.0f} B"


def _sums(figures: Figures) -> Table:
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "right", "left"):
        table.add_column(justify=justify)
    waiting = f"{count(figures.waiting, 'message')} waiting"
    waiting += f", batch {figures.batch:.2f} s" if figures.batch else ""
    table.add_row("accepted", f"{figures.taken_rate:,.0f}/s", f"{figures.taken:,}", waiting)
    table.add_row("delivered", f"{figures.delivered_rate:,.0f}/s", f"{figures.delivered:,}", _clients(figures))
    codes = ", ".join(f"{code} {number:,}" for code, number in _sorted(figures.codes)[:6])
    table.add_row("dead letters", "", Text(f"{figures.dead:,}", "bold red" if figures.dead else ""), codes)
    situations = figures.situations
    if situations:
        said = f"{situations.open:,} open, {count(situations.running, 'policy')}"
        said += f", {situations.stopped:,} stopped" if situations.stopped else ""
        said += f", {count(situations.late, 'event')} too late" if situations.late else ""
        table.add_row("situations", "", f"{situations.opened:,}", said)
    parts = " · ".join(f"{name} {size(number)}" for name, number in figures.memory.items())
    table.add_row("memory", "", size(sum(figures.memory.values())), parts)
    return table


def _clients(figures: Figures) -> str:
    return f"{count(figures.clients, 'client')} connected"


def _names(figures: Figures, before: Figures | None, rows: int) -> Table:
    """Types and subscriptions side by side, the busiest first."""
    seconds = (figures.at - before.at) / 1e6 if before is not None else 0.0
    left = _rated(accepted(figures), accepted(before) if before else [], seconds)
    right = _rated(delivered(figures), delivered(before) if before else [], seconds)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("type", "subscription"):
        table.add_column(title, no_wrap=True, overflow="ellipsis")
        table.add_column("events", justify="right")
        table.add_column("/s", justify="right")
    nothing = ("", "", "")
    for place in range(min(max(len(left), len(right)), rows)):
        one = left[place] if place < len(left) else nothing
        other = right[place] if place < len(right) else nothing
        table.add_row(*one, *other)
    hidden = max(len(left), len(right)) - rows
    if hidden > 0:
        table.add_row(Text(f"… {hidden:,} more", "dim"))
    return table


def _rated(counts: _Counts, before: _Counts, seconds: float) -> list[tuple[str, str, str]]:
    earlier = dict(before)
    return [
        (name, f"{number:,}", f"{(number - earlier.get(name, 0)) / seconds:,.0f}" if seconds > 0 else "")
        for name, number in counts
    ]


def accepted(figures: Figures) -> _Counts:
    """Events by type, the most frequent first, and which of them came in whose terms."""
    found: _Counts = []
    for type, number in _sorted(figures.types):
        origins = {key: count for key, count in figures.origins.items() if key.startswith(f"{type} ")}
        found.append((type, number))
        found += [(f"{type} from {key.removeprefix(f'{type} ')}", count) for key, count in _sorted(origins)]
    return found


def delivered(figures: Figures) -> _Counts:
    """Events by subscription, and in whose terms they are delivered if not in root's."""
    terms = figures.terms
    found: _Counts = []
    for name, number in _sorted({**dict.fromkeys(_shaped(figures), 0), **figures.subscriptions}):
        found.append((f"{name} in {terms[name]}" if name in terms else name, number))
        own = {key: count for key, count in figures.dropped.items() if key.startswith(f"{name} ")}
        found += [(f"{name} dropped for {key.removeprefix(f'{name} ')}", count) for key, count in _sorted(own)]
    return found


def _shaped(figures: Figures) -> list[str]:
    """Subscriptions of which something was dropped."""
    return [key.partition(" ")[0] for key in figures.dropped]


def _situations(figures: Figures) -> _Counts:
    return _sorted({name: each.opened for name, each in figures.situations.policies.items() if each.opened})


def _sorted(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
