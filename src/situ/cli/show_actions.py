"""Actions that wait or failed, for people: many as a table, one with all there is to know about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from situ.cli.output import visible
from situ.cli.show_problems import count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from situ.cli.kept_actions import Kept

_COLOURS = {"waiting": "yellow", "failed": "red"}


def show_actions(found: Sequence[Kept]) -> Iterator[RenderableType]:
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


def show_action(kept: Kept) -> Iterator[RenderableType]:
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
