"""Why an event is visible or not, in words: one block a dimension, then the sentence that sums it up."""

from __future__ import annotations

from collections.abc import Iterator

from situ.tags import ANY
from situ.visibility.explain import Asked, Cell, Explained, InDimension, Step, first_blocked

_NOT = "NOT VISIBLE"
_WIDEST = 72
"""Columns before verdicts; a longer way pushes its own aside."""


def explain_text(explained: Explained) -> str:
    """The answer as lines of text."""
    if explained.side is not None:
        return "\n".join((*_own_side(explained), "visible" if explained.visible else "not visible"))
    return "\n".join((*dimension_lines(explained), summary(explained)))


def dimension_lines(explained: Explained) -> list[str]:
    """What happens in each dimension, the verdicts below each other."""
    names = max((len(each.dimension) for each in explained.dimensions), default=0)
    heads = {each.dimension: f"{each.dimension:{names}}  {_head(each)}" for each in explained.dimensions}
    width = min(max((len(head) for head in heads.values()), default=0), _WIDEST)
    return [line for each in explained.dimensions for line in _dimension(each, f"{heads[each.dimension]:{width}}")]


def summary(explained: Explained) -> str:
    """The verdict, and what would change it."""
    if explained.visible:
        return "visible"
    names = ", ".join(each.dimension for each in explained.hidden)
    remedies = [_remedy(each) for each in explained.hidden]
    if any(not remedy for remedy in remedies):
        return f"not visible ({names}); no event would be"
    return f"not visible ({names}); would be visible if: {', and '.join(remedies)}"


def _own_side(explained: Explained) -> Iterator[str]:
    for each in explained.dimensions:
        own = each.advertised if explained.side == "producer" else each.subscribed
        yield f"{each.dimension}  {own}"


def _remedy(hidden: InDimension) -> str:
    match hidden.cell:
        case Cell.BETWEEN:
            return ", or ".join(" and ".join(texts) for texts in hidden.lacking)
        case Cell.SCOPE_AGAINST_NOTHING:
            return f"the subscription named a {hidden.dimension} scope that sees {hidden.advertised}, or any"
        case Cell.NOTHING_AGAINST_SCOPE:
            return f"the advertisement named a {hidden.dimension} scope that {hidden.subscribed} sees, or any"
        case Cell.CLOSED:
            return f"both named {hidden.dimension} scopes, or the subscription any"
        case _:
            return ""


def _head(each: InDimension) -> str:
    if each.cell is Cell.BETWEEN and each.visible:
        return _route(each.way) if each.way else f"{each.advertised}"
    return f"{_tag(each.advertised)} → {_tag(each.subscribed)}"


def _dimension(each: InDimension, head: str) -> Iterator[str]:
    verdict = "visible" if each.visible else _NOT
    if each.cell is not Cell.BETWEEN:
        yield f"{head}  {verdict} ({each.cell.value})"
        return
    if each.visible:
        asked = "; ".join(dict.fromkeys(question.filter.text for step in each.way for question in step.asked))
        yield f"{head}  {verdict}" + (f"  {asked}" if asked else "")
        return
    yield f"{head}  {verdict}"
    if not each.way:
        yield "   no scope leads from the one to the other"
    yield from _steps(each.way)
    for other in each.others:
        blocked = first_blocked(other)
        at = f", blocked first at {blocked.interface}" if blocked is not None else ""
        yield f"   also tried: {_route(other)}{at}"


def _steps(way: tuple[Step, ...]) -> Iterator[str]:
    rows: list[tuple[str, Asked | None]] = []
    for step in way:
        shown = f"{step.start} {'↑' if step.up else '↓'} {step.end}"
        rows += [(shown if place == 0 else "", asked) for place, asked in enumerate(step.asked or (None,))]
    wide = max((len(shown) for shown, _ in rows), default=0)
    names = max((len(asked.interface) for _, asked in rows if asked is not None), default=0)
    texts = max((len(asked.filter.text) for _, asked in rows if asked is not None), default=0)
    for shown, asked in rows:
        if asked is None:
            yield f"   {shown}"
            continue
        value = f"{asked.value}: {asked.reason}" if asked.reason else asked.value
        place = f"   {asked.filter.place}" if asked.filter.place is not None else ""
        yield f"   {shown:{wide}}  {asked.interface:{names}}  {asked.filter.text:{texts}}  {value}{place}"


def _route(way: tuple[Step, ...]) -> str:
    parts = [way[0].start] if way else []
    for step in way:
        parts += ["↑" if step.up else "↓", step.end]
    return " ".join(parts)


def _tag(tag: str | None) -> str:
    return "nothing said" if tag is None else "any" if tag == ANY else tag
