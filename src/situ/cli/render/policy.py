"""An explained policy as text, and its logic tree as an SVG drawing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap
from xml.sax.saxutils import escape

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from situ.cli.output import visible
from situ.cli.render.layout import facts, section, table
from situ.cli.render.text import show_problems
from situ.explain.policy import PlanExplanation, PolicyExplanation, TreeNode
from situ.policies.logic_tree import Component

_COLOURS = {
    Component.LEAF: "",
    Component.QUERY: "cyan",
    Component.CORRELATION: "magenta",
    Component.CONSTRAINT: "blue",
    Component.FOLLOWED_BY: "yellow",
    Component.OR: "green",
    Component.AND: "green",
}


def show_policy(explained: PolicyExplanation) -> Iterator[RenderableType]:
    """The text, then what it becomes, step by step."""
    options = "".join(f" · {name.replace('_', ' ')} {value}" for name, value in explained.options.as_json().items())
    yield Text.assemble((visible(explained.name), "bold"), (options, "dim"))
    yield Text()
    yield Text(visible(explained.text).rstrip())
    clauses = facts((f"{number}", " or ".join(literals)) for number, literals in enumerate(explained.clauses, 1))
    for choice in explained.choices:
        clauses.add_row("", Text(f"one branch in a match: {visible(choice)}", "dim"))
    yield from section("Normal form", clauses)
    yield from section("Logic tree", _tree(explained.tree))
    yield from section("Components", facts(explained.components.items()))
    yield from section("Plan", _plan(explained.plan))
    yield Text()
    yield _leaves(explained.plan)
    yield Text()
    yield _operators(explained.plan)
    if explained.plan.warning is not None:
        yield Text()
        yield from show_problems([explained.plan.warning])


def _tree(node: TreeNode) -> Tree:
    tree = Tree(_node(node), guide_style="dim")
    waiting = [(tree, each) for each in node.below]
    while waiting:
        above, each = waiting.pop(0)
        branch = above.add(_node(each))
        waiting.extend((branch, below) for below in each.below)
    return tree


def _node(node: TreeNode) -> Text:
    text = Text.assemble((node.component.value, f"bold {_COLOURS[node.component]}".strip()))
    if node.component not in (Component.AND, Component.OR, Component.FOLLOWED_BY):
        text.append(f"  {visible(node.text)}")
    if node.window:
        text.append(f"  within {node.window}", "dim")
    if node.edges:
        text.append(f"  by {', '.join(node.edges)}", "dim")
    return text


def _plan(plan: PlanExplanation) -> Table:
    waits = f"up to {plan.reported_after} after the last of its events, where something must stay absent"
    return facts(
        (
            ("partition", f"by {plan.partition}: {plan.reason}" if plan.partition else f"one: {plan.reason}"),
            ("reported", waits if plan.waits else "with the last of its events"),
        )
    )


def _leaves(plan: PlanExplanation) -> Table:
    made = table("events", "as", "where", "joined with", "divided", "kept", "shared with")
    for each in plan.leaves:
        made.add_row(
            visible(each.events),
            ", ".join(each.aliases),
            visible(each.constraint or ""),
            visible(each.joined or ""),
            f"by {each.partition}" if each.partition else "to all" if plan.partition else "",
            each.kept,
            visible(", ".join(each.shared)),
        )
    return made


def _operators(plan: PlanExplanation) -> Table:
    made = table("component", "decides", "runs", "window")
    for each in plan.operators:
        made.add_row(each.component, visible(each.text), each.runs.value, each.window or "")
    return made


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The drawing. Leaves stand side by side, every other node above the middle of what is below it. Letters have one width,
# so boxes are as wide as their text without anybody having to measure it.

_LETTER, _SMALL_LETTER, _LINE, _FONT = 7.25, 6.05, 16, 12
_WIDEST = 26
_PAD, _GAP, _BETWEEN, _MARGIN = 10, 18, 64, 20

_LOOKS: dict[Component, tuple[str, str]] = {
    Component.LEAF: ("#f6f8fa", "#8c959f"),
    Component.QUERY: ("#ddf4ff", "#218bff"),
    Component.CORRELATION: ("#fbefff", "#a475f9"),
    Component.CONSTRAINT: ("#fff8c5", "#d4a72c"),
    Component.FOLLOWED_BY: ("#fff1e5", "#fb8f44"),
    Component.OR: ("#dafbe1", "#4ac26b"),
    Component.AND: ("#dafbe1", "#2da44e"),
}
"""Colours of each kind of component: its box, and the line around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Box:
    """A node with its place: ``x`` is its middle, ``y`` its upper edge."""

    node: TreeNode
    lines: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float
    below: tuple[_Box, ...]


def draw_tree(tree: TreeNode) -> str:
    """The picture, as the text of an SVG file."""
    tops = _tops(tree)
    root, right = _placed(tree, 0, _MARGIN, tops)
    bottom = max(box.y + box.height for box in _boxes(root))
    width, height = round(right + _MARGIN), round(bottom + _MARGIN)
    body = "\n".join((*_lines(root), *_nodes(root)))
    title = escape(visible(f"Logic tree of {tree.text}"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="{_FONT}">\n'
        f"<title>{title}</title>\n"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _text_of(node: TreeNode) -> tuple[str, ...]:
    head = node.component.value
    if node.window:
        head += f" within {node.window}"
    if node.component in (Component.OR, Component.FOLLOWED_BY):
        return (head,)
    if node.component is Component.LEAF:
        alias, opened, constraint = node.text.partition(" (")
        return (visible(alias), *_wrapped(f"({constraint}" if opened else ""))
    return (head, *_wrapped(node.text))


def _wrapped(text: str) -> list[str]:
    return wrap(visible(text), _WIDEST, break_on_hyphens=False)


def _size(lines: tuple[str, ...]) -> tuple[float, float]:
    return max(map(len, lines)) * _LETTER + 2 * _PAD, len(lines) * _LINE + _PAD


def _tops(tree: TreeNode) -> list[float]:
    """Where each level begins: below the highest box of the one above. Leaves are all on the last."""
    tallest = [0.0] * _height(tree)
    for node, level in _levels(tree, 0, len(tallest)):
        tallest[level] = max(tallest[level], _size(_text_of(node))[1])
    tops = [float(_MARGIN)]
    for height in tallest[:-1]:
        tops.append(tops[-1] + height + _BETWEEN)
    return tops


def _height(node: TreeNode) -> int:
    return 1 + max(map(_height, node.below), default=0)


def _levels(node: TreeNode, level: int, levels: int) -> Iterator[tuple[TreeNode, int]]:
    yield node, levels - 1 if node.component is Component.LEAF else level
    for each in node.below:
        yield from _levels(each, level + 1, levels)


def _placed(node: TreeNode, level: int, left: float, tops: list[float]) -> tuple[_Box, float]:
    """The box of a node that has all to the right of ``left`` for itself, and where its part of the picture ends."""
    lines = _text_of(node)
    width, height = _size(lines)
    below: list[_Box] = []
    right = left
    for each in node.below:
        box, end = _placed(each, level + 1, right, tops)
        below.append(box)
        right = end + _GAP
    right = right - _GAP if below else left
    if right - left < width:  # what is below is narrower: it moves into the middle
        shift = (width - (right - left)) / 2 if below else 0.0
        below = [_moved(box, shift) for box in below]
        right = left + width
    right = max(right, left + max((len(edge) for edge in node.edges), default=0) * _SMALL_LETTER)
    x = (below[0].x + below[-1].x) / 2 if below else (left + right) / 2
    x = min(max(x, left + width / 2), right - width / 2)
    y = tops[-1] if node.component is Component.LEAF else tops[level]
    return _Box(node=node, lines=lines, x=x, y=y, width=width, height=height, below=tuple(below)), right


def _moved(box: _Box, by: float) -> _Box:
    return _Box(
        node=box.node,
        lines=box.lines,
        x=box.x + by,
        y=box.y,
        width=box.width,
        height=box.height,
        below=tuple(_moved(each, by) for each in box.below),
    )


def _boxes(box: _Box) -> Iterator[_Box]:
    yield box
    for each in box.below:
        yield from _boxes(each)


def _lines(root: _Box) -> Iterator[str]:
    """From each node to what is below it, with the attribute that is used; dashed where events do not bring it."""
    for box in _boxes(root):
        for each in box.below:
            start, end = box.y + box.height, each.y
            brought = each.node.attributes
            events = not brought or "event" in brought.values()
            dashes = "" if events else ' stroke-dasharray="4 3"'
            turn = (start + end) / 2 if each.node.component is not Component.LEAF else end - _BETWEEN / 2
            path = f"M{box.x:.0f} {start:.0f}C{box.x:.0f} {turn:.0f} {each.x:.0f} {turn:.0f} {each.x:.0f} {end:.0f}"
            yield f'<path d="{path}" fill="none" stroke="#8c959f"{dashes}/>'
            for number, edge in enumerate(reversed(each.node.edges)):
                y = end - 8 - number * (_LINE - 2)
                yield _label(each.x, y, edge)


def _label(x: float, y: float, text: str) -> str:
    shown = escape(visible(text))
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="middle" font-size="{_FONT - 2}" fill="#57606a" stroke="#ffffff" '
        f'stroke-width="4" paint-order="stroke">{shown}</text>'
    )


def _nodes(root: _Box) -> Iterator[str]:
    for box in _boxes(root):
        fill, line = _LOOKS[box.node.component]
        left = box.x - box.width / 2
        round_by = box.height / 2 if box.node.component in (Component.AND, Component.OR, Component.FOLLOWED_BY) else 6
        dashes = ' stroke-dasharray="6 3"' if box.node.negated else ""
        yield (
            f'<rect x="{left:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" '
            f'rx="{min(round_by, 18):.0f}" fill="{fill}" stroke="{line}"{dashes}/>'
        )
        for number, text in enumerate(box.lines):
            y = box.y + _PAD / 2 + (number + 1) * _LINE - 4
            weight = ' font-weight="bold"' if number == 0 and box.node.component is not Component.LEAF else ""
            shown = escape(text)
            yield f'<text x="{box.x:.0f}" y="{y:.0f}" text-anchor="middle" fill="#1f2328"{weight}>{shown}</text>'
