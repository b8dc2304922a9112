"""How the policies of a run are, for people: what each has come to, and how its push sources are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from situ.cli.output import visible
from situ.cli.show_figures import clock
from situ.cli.show_problems import count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from situ.host.figures import Figures
    from situ.host.situation_figures import PolicyFigures, PushFigures

_SHOWN = 20
_LONGEST = 100  # characters of a reason or a sample


def show_situations(figures: Figures) -> Iterator[RenderableType]:
    found = figures.situations
    yield _policies(figures)
    for name, each in found.policies.items():
        if each.reason:
            yield Text(f"{name} is stopped: {_short(each.reason)}", "yellow")
    if found.push:
        yield Text()
        yield _push(figures)
    for name, push in found.push.items():
        if push.unknown:
            yield Text(f"{name}: {unknown_text(push.unknown, push.sample)}", "yellow")
    for failure in found.failures[:_SHOWN]:
        yield Text(failed_text(failure.test, failure.count, failure.sample), "yellow")


def _policies(figures: Figures) -> Table:
    table = _table("policy", "state", "settled", "waits for", "open*", "situations*", "detections*", "late*")
    policies = figures.situations.policies
    for name, each in list(policies.items())[:_SHOWN]:
        table.add_row(
            name,
            Text(each.state, "" if each.state == "running" else "yellow"),
            _ago(each.settled, figures.at),
            _waits_for(each),
            *(f"{number:,}" for number in (each.open, each.opened, each.detections)),
            Text(f"{each.late:,}", "yellow" if each.late else ""),
        )
    total = figures.situations.running + figures.situations.suspended + figures.situations.stopped
    shown = min(len(policies), _SHOWN)
    if total > shown:
        table.add_row(Text(f"… {total - shown:,} more", "dim"))
    return table


def _push(figures: Figures) -> Table:
    table = _table("push source", "events*", "last heard", "")
    sources = figures.situations.push
    for name, each in list(sources.items())[:_SHOWN]:
        table.add_row(name, f"{each.events:,}", _ago(each.heard, figures.at), Text(_silence(each), "dim"))
    if len(sources) > _SHOWN:
        table.add_row(Text(f"… {len(sources) - _SHOWN:,} more", "dim"))
    return table


def _waits_for(each: PolicyFigures) -> str:
    if each.state != "running":
        return ""
    return each.waits_for or ("nothing: all are silent" if each.settled is not None else "")


def _silence(each: PushFigures) -> str:
    return "silent, not waited for" if each.idle and each.heard is not None else ""


def unknown_text(number: int, sample: str) -> str:
    """Events about identities that no pull source knows."""
    return visible(
        f"{count(number, 'event')} about somebody or something that no pull source knows, as {_short(sample)}"
    )


def failed_text(test: str, number: int, sample: str) -> str:
    """A test that failed on values."""
    return visible(f"{test} failed {count(number, 'time')}, as with {_short(sample)}")


def _ago(instant: int | None, now: int) -> Text:
    """How long before now; event time that a slow clock has not reached is now."""
    if instant is None:
        return Text("nothing heard yet", "dim")
    seconds = max(now - instant, 0) / 1e6
    return Text(f"{seconds:.1f} s ago" if seconds < 60 else f"{clock(seconds)} ago")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _table(*titles: str) -> Table:
    """Columns whose titles end with ``*`` are numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for title in titles:
        table.add_column(title.rstrip("*"), justify="right" if title.endswith("*") else "left", no_wrap=True)
    return table
