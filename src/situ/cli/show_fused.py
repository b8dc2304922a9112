"""What becomes of events between two contexts, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from situ.cli.explained_fused import FusedExplained, FusedPlace
from situ.cli.output import visible
from situ.cli.show_problems import show_problems
from situ.cli.show_transform import compact
from situ.cli.show_types import table

_NONE = "–"


def show_all_fused(explained: Sequence[FusedExplained]) -> Iterator[RenderableType]:
    for number, each in enumerate(explained):
        if number:
            yield Text()
        yield from show_fused(each)


def show_fused(explained: FusedExplained) -> Iterator[RenderableType]:
    """The head, a row for every attribute, and what became of a sample."""
    way = explained.way
    facts = [
        f"over {explained.through}",
        f"plan {way.plan[:6]}",
        f"lossy: {'yes' if way.lossy else 'no'}",
        f"can fail: {'yes' if way.can_fail else 'no'}",
    ]
    if way.is_identity:
        facts.append("stays as it is")
    yield Text.assemble((f"{explained.source} → {explained.target}", "bold"), ("   " + "   ".join(facts), "dim"))
    yield Text()
    rows = table("attribute", "in", "out", "expression")
    for each in explained.places:
        name = _came(each)
        rows.add_row(visible(name), _some(each.into), visible(each.out), visible(each.expression) or _NONE)
    yield rows
    if explained.looked_at:
        yield Text.assemble(("fails also with  ", "dim"), visible(", ".join(explained.looked_at)))
    if explained.sample is not None:
        yield Text()
        if explained.sample.problems:
            yield from show_problems(explained.sample.problems)
        else:
            yield Text(visible(compact(explained.sample.result)))


def _came(each: FusedPlace) -> str:
    shown = each.target or "the event"
    if any(
        source != each.target and not source.startswith((f"{each.target}.", f"{each.target}["))
        for source in each.sources
    ):
        shown += f" ← {', '.join(each.sources)}"
    return f"{shown} (when {each.when})" if each.when else shown


def _some(names: Sequence[str]) -> str:
    return visible(", ".join(names)) or _NONE
