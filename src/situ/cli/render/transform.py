"""Explained contexts and conversions as text: what becomes of each attribute, by which rule, in and out.

`show_context` is for a context, `show_transform`, `show_why` and `show_filter` for one event type in it, `show_fused`
for the way from one context to another.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import UNSET
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from situ.cli.output import visible
from situ.cli.render.layout import facts, section, some, table
from situ.cli.render.text import STYLES, show_problems
from situ.contexts.transform.round_trip import ShortcutPolicy
from situ.explain.context import ContextDeclaration, ContextExplanation, DirectionExplanation, EventTypeExplanation
from situ.explain.fused_transform import FusedExplanation, FusedPlace
from situ.explain.transform import (
    ConvertedValue,
    PlaceExplanation,
    RuleCandidate,
    ShortcutExplanation,
    TransformExplanation,
)
from situ.explain.transform_why import FilterExplanation, RuleExplanation
from situ.lang.problems import Problem, Severity

_SHOWN_NAMES = 20
_STYLES = {"mapped": "green", "converted": "green", "passes": "", "not available": "yellow"}


def show_context(explained: ContextExplanation) -> Iterator[RenderableType]:
    """Where it stands, what it has, then each direction."""
    way = " → ".join(explained.chain[1:])
    yield Text.assemble((explained.context, "bold"), (f" · extends {way}" if way else " · extends nothing", "dim"))
    yield Text()
    yield _facts(explained)
    if explained.functions:
        yield from section("Functions", _declared("function", explained.functions))
    yield from section("Out, from root", *_direction(explained.outgoing))
    yield from section("In, to root", *_direction(explained.incoming))


def _facts(explained: ContextExplanation) -> Table:
    users, types = explained.used_by, explained.types
    own = [f"{name} (hides another)" if name in types.hiding else name for name in types.own]
    grid = facts(
        (name, some(names, _SHOWN_NAMES) or "none")
        for name, names in (
            ("extended by", explained.children),
            ("clients", users.clients),
            ("advertisements", users.advertisements),
            ("subscriptions", users.subscriptions),
            ("own types", own),
            ("inherited types", types.inherited),
        )
    )
    if explained.derive:
        grid.add_row("derive", "event types that rules change get a type of their own name")
    return grid


def _direction(each: DirectionExplanation) -> Iterator[RenderableType]:
    if each.mappings:
        yield _declared("mapping", each.mappings)
        yield Text()
    if each.rules:
        yield _declared("rule", each.rules)
        yield Text()
    made = table("event type", "becomes", "")
    for event in each.events:
        made.add_row(event.type, *_becomes(event))
    yield made


def _becomes(event: EventTypeExplanation) -> tuple[str, Text]:
    text = Text(event.kind, _STYLES[event.kind])
    if event.reason:
        text.append(f": {visible(event.reason)}", "dim")
    return event.target or "–", text


def _declared(what: str, each: tuple[ContextDeclaration, ...]) -> Table:
    made = table(what, "of", "from", "")
    for one in each:
        overrides = f"in place of that of {', '.join(one.overrides)}" if one.overrides else ""
        made.add_row(visible(one.text), one.context, visible(one.place or "–"), Text(overrides, "dim"))
    return made


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A conversion of one event type: the head, a row for every attribute, the other rules about it, and its problems.

_NONE = "–"
_LONGEST = 60
_SHOWN = 3
_GAP = 3


def show_transform(explained: TransformExplanation) -> Iterator[RenderableType]:
    yield _head(explained)
    yield Text()
    yield from _rows(explained)
    if explained.dropped:
        yield Text.assemble(("dropped  ", "dim"), ", ".join(explained.dropped))
    yield from _said(explained)
    if explained.failures:
        yield Text()
        yield from show_problems(explained.failures)


def show_why(explained: RuleExplanation) -> Iterator[RenderableType]:
    """Every rule about a value, with its keys."""
    for number, place in enumerate(explained.places):
        if number:
            yield Text()
        yield Text.assemble((place.place, "bold"), (f" · {place.outcome}", "dim"))
        if not place.candidates:
            if place.levels:
                yield Text("No rule is about a value of this type.", "dim")
            continue
        made = table("", "rule", "from", *place.levels, "why")
        for each in place.candidates:
            keys = each.keys or ("",) * len(place.levels)
            made.add_row(_standing(each), visible(each.rule), each.place or _NONE, *keys, visible(each.reason or ""))
        yield Text()
        yield made
    if any(each.keys for place in explained.places for each in place.candidates):
        yield Text()
        yield Text("Keys are distance, kind and order: the smaller counts, columns compared from left to right.", "dim")


def show_filter(explained: FilterExplanation) -> Iterator[RenderableType]:
    """A filter in the terms of the context and in those of root."""
    yield Text.assemble(("Filter", "bold"), (f" on {explained.type}, as root's {explained.root_type} is asked", "dim"))
    grid = facts(
        (
            ("written", explained.written),
            ("canonical", explained.canonical),
            ("substituted", explained.substituted),
            ("simplified", explained.simplified),
        )
    )
    if explained.then:
        grid.add_row("then", visible(f"{explained.then}, once that is known"))
    if explained.also_asked_of:
        grid.add_row("also asked of", ", ".join(explained.also_asked_of))
    if explained.outcome is not None:
        found = explained.outcome
        grid.add_row("for the sample", f"fails: {found.reason}" if found.fails else visible(found.shown))
    yield grid
    if explained.problems:
        yield Text()
        yield from show_problems(explained.problems)


def _head(explained: TransformExplanation) -> Text:
    needs = dict.fromkeys(each for place in explained.attributes for each in place.needs)
    source, target = explained.ends
    return _title(
        source,
        target,
        f"plan {explained.plan[:6]}",
        *(() if explained.execution == "native" and needs else (explained.execution,)),
        *((f"needs {', '.join(needs)}",) if needs else ()),
        *_risks(explained),
        "stays as it is" if explained.identity else f"shortcut: {_shortcut(explained.shortcut)}",
    )


def _title(source: str, target: str, *facts: str) -> Text:
    return Text.assemble((f"{source} → {target}", "bold"), ("   " + "   ".join(facts), "dim"))


def _risks(explained: TransformExplanation | FusedExplanation) -> tuple[str, str]:
    return f"lossy: {'yes' if explained.lossy else 'no'}", f"can fail: {'yes' if explained.can_fail else 'no'}"


def _shortcut(found: ShortcutExplanation) -> str:
    if found.setting == ShortcutPolicy.NEVER:
        return "never"
    if not found.taken:
        return f"no ({visible(found.reason or '')})"
    return "safe" if found.safe else f"taken, though not safe ({visible(found.reason or '')})"


def _rows(explained: TransformExplanation) -> Iterator[Text]:
    """A table whose notes run on to the right, across the columns."""
    sampled = explained.result is not UNSET
    titles = ("attribute", "rule", "from", "function", "before → after" if sampled else "")
    cells = [_cells(each) for each in explained.attributes]
    widths = [max(map(cell_len, column)) + _GAP for column in zip(titles[:-1], *cells, strict=True)]
    yield Text(_padded(titles[:-1], widths) + titles[-1], "dim")
    for each, texts in zip(explained.attributes, cells, strict=True):
        name, rest = _padded(texts[:1], widths), _padded(texts[1:], widths[1:])
        yield Text.assemble((name, "bold"), rest, _values(each))
        for note in _notes(each):
            yield Text(" " * widths[0] + visible(note), "dim")


def _cells(each: PlaceExplanation) -> tuple[str, ...]:
    name = each.target or "the event"
    if each.source and each.source != each.target:
        name += f" ← {each.source}"
    return tuple(visible(text) for text in (name, each.rule or _NONE, each.place or _NONE, each.function))


def _padded(texts: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(text + " " * (width - cell_len(text)) for text, width in zip(texts, widths, strict=False))


def _notes(each: PlaceExplanation) -> Iterator[str]:
    if each.when:
        yield f"when {each.when}"
    if each.beaten or each.does_not_match:
        beaten = _listed(each.beaten) or "none"
        missed = f"; does not match: {_listed(each.does_not_match)}" if each.does_not_match else ""
        yield f"beaten: {beaten}{missed}"


def _listed(candidates: tuple[RuleCandidate, ...]) -> str:
    shown = ", ".join(f"{each.rule.partition(' -> ')[0]} ({each.reason})" for each in candidates[:_SHOWN])
    more = len(candidates) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _said(explained: TransformExplanation) -> Iterator[RenderableType]:
    """Warnings and observations, a line each, and at the end which there are: that there are none is said, too."""
    yield Text()
    for problem in explained.problems:
        label = f"{problem.severity.value} {problem.code.code}: "
        yield Text.assemble((label, STYLES[problem.severity]), visible(problem.message))
    found = (
        f"{severity.value}s  {', '.join(_codes(explained.problems, severity)) or 'none'}"
        for severity in (Severity.WARNING, Severity.OBSERVATION)
    )
    yield Text((" " * 5).join(found), "dim")


def _codes(problems: Sequence[Problem], severity: Severity) -> Iterator[str]:
    """Each once, with how often it is there."""
    numbers = Counter(each.code.code for each in problems if each.severity is severity)
    return (f"{code} ({number})" if number > 1 else code for code, number in sorted(numbers.items()))


def _values(each: PlaceExplanation) -> Text:
    text = Text("; " if len(each.values) > 1 else "").join(_change(value) for value in each.values[:_SHOWN])
    if len(each.values) > _SHOWN:
        text.append(f"; and {len(each.values) - _SHOWN} more", "dim")
    return text


def _change(value: ConvertedValue) -> Text:
    before = "" if value.before is UNSET else _short(value.before)
    if value.fails:
        return Text.assemble(f"{before} → " if before else "", (f"fails: {visible(value.fails)}", "bold red"))
    after = _short(value.after)
    return Text(after if not before or before == after else f"{before} → {after}")


def _short(value: Any) -> str:
    text = visible(compact(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def compact(value: Any) -> str:
    """A JSON value to be read, not parsed: ``{x: 30.48, name: "Main"}``."""
    match value:
        case dict():
            return "{" + ", ".join(f"{name}: {compact(each)}" for name, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(compact, value)) + "]"
        case float():
            return repr(value).removesuffix(".0")
        case _:
            return json.dumps(value, ensure_ascii=False)


def _standing(each: RuleCandidate) -> Text:
    if each.counts:
        return Text("counts", "bold green")
    return Text("beaten", "yellow") if each.keys else Text("no match", "dim")


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What becomes of events between two contexts.


def show_all_fused(explained: Sequence[FusedExplanation]) -> Iterator[RenderableType]:
    for number, each in enumerate(explained):
        if number:
            yield Text()
        yield from show_fused(each)


def show_fused(explained: FusedExplanation) -> Iterator[RenderableType]:
    """The head, a row for every attribute, and what became of a sample."""
    source, through, target = explained.ends
    identity = ("stays as it is",) if explained.identity else ()
    yield _title(source, target, f"over {through}", f"plan {explained.plan[:6]}", *_risks(explained), *identity)
    yield Text()
    rows = table("attribute", "in", "out", "expression")
    for each in explained.attributes:
        into = ", ".join(each.into) or _NONE
        rows.add_row(*map(visible, (_came(each), into, each.out, each.expression or _NONE)))
    yield rows
    if explained.looked_at:
        yield Text.assemble(("fails also with  ", "dim"), visible(", ".join(explained.looked_at)))
    if explained.failures is not UNSET:
        yield Text()
        if explained.failures:
            yield from show_problems(explained.failures)
        else:
            yield Text(visible(compact(explained.result)))


def _came(each: FusedPlace) -> str:
    shown = each.target or "the event"
    if any(
        source != each.target and not source.startswith((f"{each.target}.", f"{each.target}["))
        for source in each.sources
    ):
        shown += f" ← {', '.join(each.sources)}"
    return f"{shown} (when {each.when})" if each.when else shown
