"""What a project does right now, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from situ.bus.names import subscription_of
from situ.cli.show_figures import clock, size
from situ.cli.show_problems import count
from situ.cli.show_situations import show_situations

if TYPE_CHECKING:
    from rich.console import RenderableType

    from situ.cli.looked_at import Status

_SHOWN = 20


def show_status(status: Status) -> Iterator[RenderableType]:
    yield _head(status)
    if not status.running:
        return
    if status.problem is not None:
        yield Text(f"The bus says nothing: {status.problem.message}", "yellow")
        return
    yield Text()
    yield _engines(status)
    for engine, figures in status.engines.items():
        if figures.converted:
            each = ", ".join(f"{context} {number:,}" for context, number in sorted(figures.converted.items()))
            yield Text(f"{engine}: events converted, once for each context: {each}")
    for engine, figures in status.engines.items():
        if figures.codes:
            each = ", ".join(f"{code} {number:,}" for code, number in sorted(figures.codes.items()))
            yield Text(f"{engine}: dead letters: {each}")
        if figures.refused:
            each = ", ".join(f"{code} {number:,}" for code, number in sorted(figures.refused.items()))
            yield Text(f"{engine}: messages of clients refused: {each}", "yellow")
        if figures.failures:
            each = ", ".join(f"{what} {number:,}" for what, number in sorted(figures.failures.items()))
            yield Text(f"{engine}: failed in a way that nobody foresaw, see the log: {each}", "bold red")
    for engine, troubles in status.troubles.items():
        for each in troubles:
            yield Text(f"{engine}: {each}", "yellow")
    for figures in status.engines.values():
        if figures.situations:
            yield Text()
            yield from show_situations(figures)
    yield Text()
    yield _streams(status)
    if status.consumers:
        yield Text()
        yield _consumers(status)
    if status.clients:
        yield Text()
        more = f" and {len(status.clients) - _SHOWN:,} more" if len(status.clients) > _SHOWN else ""
        yield Text(f"{count(len(status.clients), 'client')} connected: {', '.join(status.clients[:_SHOWN])}{more}")


def _head(status: Status) -> Text:
    text = Text.assemble((status.project, "bold"), f" · zone {status.zone} · ")
    if not status.running:
        text.append("nothing runs", "yellow")
        text.append("; start it with `situ run`")
        return text
    text.append("running", "green")
    if status.holder is not None:
        text.append(f" as process {status.holder.pid}")
    return text.append(f" · deployment {status.version}")


def _engines(status: Status) -> Table:
    table = _table(
        "engine", "state", "for", "deployment", "accepted", "/s", "delivered", "/s ", "dead", "waiting", "memory"
    )
    for name, each in status.engines.items():
        table.add_row(
            name,
            each.state,
            clock(each.seconds),
            str(status.adopted.get(name, 0)),
            f"{each.taken:,}",
            f"{each.taken_rate:,.0f}",
            f"{each.delivered:,}",
            f"{each.delivered_rate:,.0f}",
            f"{each.dead:,}",
            f"{each.waiting:,}",
            size(sum(each.memory.values())),
        )
    return table


def _streams(status: Status) -> Table:
    table = _table("stream", "holds", "messages", "size")
    for (name, state), what in zip(status.streams.items(), _HOLDS, strict=True):
        table.add_row(name, what, f"{state.messages:,}", size(state.size))
    return table


_HOLDS = (
    "what an engine has not taken yet",
    "the root log",
    "deliveries that wait",
    "dead letters",
    "late events",
    "feedback on quality",
)


def _consumers(status: Status) -> Table:
    table = _table("durable subscription", "waiting", "being read")
    worst = sorted(status.consumers, key=lambda each: (-each.waiting, each.name))
    for each in worst[:_SHOWN]:
        table.add_row(subscription_of(each.name), f"{each.waiting:,}", f"{each.unacknowledged:,}")
    if len(worst) > _SHOWN:
        table.add_row(Text(f"… {len(worst) - _SHOWN:,} more", "dim"), "", "")
    return table


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    numbers = {
        "deployment",
        "accepted",
        "/s",
        "/s ",
        "delivered",
        "dead",
        "waiting",
        "memory",
        "messages",
        "size",
        "being read",
    }
    for title in titles:
        table.add_column(title, justify="right" if title in numbers else "left", no_wrap=True)
    return table
