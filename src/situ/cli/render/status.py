"""The status of a project as text: engines, streams, consumers, policies, actions, suspended declarations.

`show_status` is the whole; what policies have come to, actions that wait or failed, and declarations without rights
stand before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from situ.cli.output import visible
from situ.cli.render.run import clock, size
from situ.cli.render.text import count
from situ.event.subjects import subscription_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from situ.app.action_queue import QueuedAction
    from situ.project.status import RunStatus
    from situ.registry.lookup import SuspendedDeclaration
    from situ.registry.run_metrics import (
        ArchiveMetrics,
        EngineSize,
        PolicyMetrics,
        PushSourceMetrics,
        RealTimeQuery,
        RunMetrics,
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Policies: what each has come to, and how its push sources are.

_SHOWN = 20
_LONGEST = 100  # characters of a reason or a sample


def show_policy_metrics(figures: RunMetrics) -> Iterator[RenderableType]:
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


def _policies(figures: RunMetrics) -> Table:
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


def _push(figures: RunMetrics) -> Table:
    table = _table("push source", "events*", "last heard", "")
    sources = figures.situations.push
    for name, each in list(sources.items())[:_SHOWN]:
        table.add_row(name, f"{each.events:,}", _ago(each.heard, figures.at), Text(_silence(each), "dim"))
    if len(sources) > _SHOWN:
        table.add_row(Text(f"… {len(sources) - _SHOWN:,} more", "dim"))
    return table


def _waits_for(each: PolicyMetrics) -> str:
    if each.state != "running":
        return ""
    return each.waits_for or ("nothing: all are silent" if each.settled is not None else "")


def _silence(each: PushSourceMetrics) -> str:
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Actions that wait or failed: many as a table, one with all there is to know about it.

_COLOURS = {"waiting": "yellow", "failed": "red"}


def show_actions(found: Sequence[QueuedAction]) -> Iterator[RenderableType]:
    if not found:
        yield Text("No actions wait, and none failed.")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for title in ("key", "time", "state", "policy", "action", "message"):
        table.add_column(title, no_wrap=title not in ("action", "message"))
    for each in found:
        request = each.request
        table.add_row(
            request.key,
            Text(f"{request.time[:10]} {request.time[11:19]}", "dim"),
            Text(each.state, _COLOURS[each.state]),
            visible(request.policy),
            visible(request.action),
            visible(request.problem.get("message", "")),
        )
    yield table
    yield Text()
    yield Text(count(len(found), "action"))


def show_action(kept: QueuedAction) -> Iterator[RenderableType]:
    request = kept.request
    yield Text.assemble(("Action ", "bold"), (request.key, "bold"))
    yield Text()
    table = Table.grid(padding=(0, 2))
    bound = ", ".join(f"{each['alias']} = {each['id']}" for each in request.about["bindings"])
    for name, value in (
        ("action", request.action),
        ("does", f"{request.verb} {request.target}".strip()),
        ("policy", request.policy),
        ("situation", request.situation),
        ("bindings", bound),
        ("when", request.time),
        ("state", kept.state),
        ("attempts", f"{request.attempts}"),
    ):
        table.add_row(Text(name, "dim"), visible(value))
    yield table
    if request.problem:
        yield Text()
        yield Text.assemble((request.problem["code"], "bold red"), f" {visible(request.problem['message'])}")
        if request.problem["hint"]:
            yield Text(f"  hint: {visible(request.problem['hint'])}")


def show_numbers(numbers: Mapping[str, int]) -> Iterator[RenderableType]:
    """For whoever looks at the whole: nothing, if nothing waits and nothing failed."""
    if any(numbers.values()):
        yield Text()
        text = f"{count(numbers['waiting'], 'action')} waiting, {numbers['failed']:,} failed"
        yield Text(f"{text}; see `situ actions list`", "yellow" if numbers["failed"] else "")


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Declarations that are not in force because their clients have no right to them.


def show_suspended(found: Sequence[SuspendedDeclaration]) -> Iterator[Text]:
    if found:
        yield Text()
        yield Text("Suspended, for their clients have no right to them any more:", "yellow")
        for each in found:
            yield Text(f"  {each.kind} {visible(each.name)}")


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The status of the whole project.


def show_status(status: RunStatus) -> Iterator[RenderableType]:
    yield _head(status)
    if not status.running:
        return
    if status.problem is not None:
        yield Text(f"The bus says nothing: {status.problem.message}", "yellow")
        return
    yield Text()
    yield _engines(status)
    for engine, figures in status.engines.items():
        if figures.size.executors or figures.size.buckets:
            yield Text(f"{engine}: {size_text(figures.size, figures.batch)}")
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
            yield from show_policy_metrics(figures)
    yield Text()
    yield _streams(status)
    for figures in status.engines.values():
        if figures.archive is not None:
            yield from _archive(figures.archive, figures.at)
        for query in figures.real_time:
            yield _real_time(query, figures.at)
    if status.consumers:
        yield Text()
        yield _consumers(status)
    if status.clients:
        yield Text()
        more = f" and {len(status.clients) - _SHOWN:,} more" if len(status.clients) > _SHOWN else ""
        yield Text(f"{count(len(status.clients), 'client')} connected: {', '.join(status.clients[:_SHOWN])}{more}")


def size_text(size: EngineSize, batch: float) -> str:
    """With how much an engine works, and how far behind detection is."""
    parts = [count(size.executors, "executor")] if size.executors else []
    parts.append(count(size.cores, "core"))
    if size.buckets:
        parts.append(f"policies in {count(size.buckets, 'bucket')}, {count(size.behind, 'message')} behind")
    return f"{' · '.join(parts)} · last batch {batch:.1f} s"


def _head(status: RunStatus) -> Text:
    text = Text.assemble((status.project, "bold"), f" · zone {status.zone} · ")
    if not status.running:
        text.append("nothing runs", "yellow")
        text.append("; start it with `situ run`")
        return text
    text.append("running", "green")
    if status.holder is not None:
        text.append(f" as process {status.holder.pid}")
    return text.append(f" · deployment {status.version}")


def _engines(status: RunStatus) -> Table:
    table = _status_table(
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


def _streams(status: RunStatus) -> Table:
    table = _status_table("stream", "holds", "messages", "size")
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


def _real_time(query: RealTimeQuery, now: int) -> Text:
    """A batch lasts long, and only its end says how many there were."""
    what = f"in real time, of {visible(query.client)}: "
    if not query.at:
        return Text(what + ("delivers, first batch under way" if query.delivers else "begins"))
    seconds = max(now - query.at, 0) / 1e6
    state = "" if query.delivers else ", finishes what was left to it"
    return Text(f"{what}{query.rows:,.0f} records/s in the batch that ended {seconds:,.0f} s ago{state}")


def _archive(found: ArchiveMetrics, now: int) -> Iterator[Text]:
    """How far the archive is; what is not in it yet is in the log alone, which drops what its limits say."""
    said = f"archive {visible(found.place)}: up to message {found.last:,} of the root log"
    if found.behind:
        said += f", {count(found.behind, 'message')} behind"
        if found.oldest:
            said += f", the oldest for {_length(now - found.oldest)}"
    yield Text(said)
    if found.failing:
        since = f"tried again for {_length(now - found.since)}" if found.since else "tried again"
        yield Text(f"  {visible(found.failing)} It is {since}.", "yellow")
        yield Text(
            "  What is not archived is in the root log alone, which keeps what log.age and log.size say.", "yellow"
        )
    if found.lost:
        text = f"  Left the root log before they were archived, and in neither: {count(found.lost, 'message')}"
        yield Text(text, "bold red")


def _length(microseconds: int) -> str:
    seconds = max(microseconds, 0) / 1e6
    return f"{seconds:.1f} s" if seconds < 60 else clock(seconds)


def _consumers(status: RunStatus) -> Table:
    table = _status_table("durable subscription", "waiting", "being read")
    worst = sorted(status.consumers, key=lambda each: (-each.waiting, each.name))
    for each in worst[:_SHOWN]:
        table.add_row(subscription_of(each.name), f"{each.waiting:,}", f"{each.unacknowledged:,}")
    if len(worst) > _SHOWN:
        table.add_row(Text(f"… {len(worst) - _SHOWN:,} more", "dim"), "", "")
    return table


def _status_table(*titles: str) -> Table:
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
