"""Scopes as text and as an SVG drawing: dimensions, boundary filters, and the clients inside.

`show_scopes` prints each dimension as a tree; `draw_scopes` puts dimensions side by side, each in layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from xml.sax.saxutils import escape

from rich.console import RenderableType
from rich.text import Text
from rich.tree import Tree

from situ.cli.output import visible
from situ.scopes.graph import Dimension, ScopeGraph

_MOST_CLIENTS = 8


def show_scopes(graph: ScopeGraph, wanted: Sequence[str]) -> Iterator[RenderableType]:
    """The dimensions, one below the other."""
    if not wanted:
        yield Text("There are no scopes: everybody sees everything.")
    for number, name in enumerate(wanted):
        if number:
            yield Text()
        yield _dimension(graph, graph.dimensions[name])


def _dimension(graph: ScopeGraph, dimension: Dimension) -> Tree:
    mode = "closed" if dimension.closed else "open"
    tree = Tree(Text.assemble((visible(dimension.name), "bold"), (f"  {mode}", "dim")), guide_style="dim")
    inside = _clients(graph, dimension)
    shown: set[str] = set()
    tops = [(tree, name, "") for name in sorted(dimension.scopes, reverse=True) if not dimension.containers(name)]
    while tops:  # depth first without recursion: a graph may be deeper than the interpreter's stack
        above, name, container = tops.pop()
        again = name in shown and bool(dimension.members(name))
        branch = above.add(_scope(dimension, name, container, inside.get(name, []), again))
        if name not in shown:
            shown.add(name)
            tops.extend((branch, each, name) for each in reversed(dimension.members(name)))
    return tree


def _clients(graph: ScopeGraph, dimension: Dimension) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for client, where in graph.clients.items():
        for scope in where.get(dimension.name, ()):
            found.setdefault(scope, []).append(client)
    return found


def _scope(dimension: Dimension, name: str, container: str, clients: Sequence[str], again: bool) -> Text:
    scope = dimension.scopes[name]
    text = Text(visible(name), "cyan")
    if clients:
        more = f" and {len(clients) - _MOST_CLIENTS} more" if len(clients) > _MOST_CLIENTS else ""
        text.append(f"  {visible(', '.join(clients[:_MOST_CLIENTS]))}{more}", "green")
    link = scope.link(container)
    filters = (("output", scope.output), ("input", scope.input), ("link up", link.up), ("link down", link.down))
    for word, each in filters:
        if each is not None:
            text.append(f"  {word} ", "dim")
            text.append(visible(each.text), "not bold default")
    if scope.carriers is not None:
        text.append(f"  in {', '.join(scope.carriers) or 'no zone'}", "dim")
    if again:
        text.append("  (its members are above)", "dim")
    return text


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The drawing: every scope stands below all that it is in.

_LETTER, _LINE, _FONT = 7.25, 16, 12
_WIDEST = 34
_PAD, _GAP, _BETWEEN, _MARGIN = 10, 24, 70, 20
_MOST_CLIENTS_DRAWN = 6
_FILL, _BORDER, _CLOSED = "#ddf4ff", "#218bff", "#fff1e5"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Box:
    """A scope with its place: ``x`` is its middle, ``y`` its upper edge."""

    name: str
    lines: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float


def draw_scopes(graph: ScopeGraph, wanted: Sequence[str]) -> str:
    """The picture, as the text of an SVG file."""
    left, bottom = float(_MARGIN), float(_MARGIN)
    body: list[str] = []
    for name in wanted:
        dimension = graph.dimensions[name]
        boxes, right, end = _placed(graph, dimension, left)
        body.extend(_drawn(dimension, boxes, left))
        left, bottom = right + 2 * _GAP, max(bottom, end)
    width, height = round(max(left - 2 * _GAP, 2 * _MARGIN) + _MARGIN), round(bottom + _MARGIN)
    title = escape(visible(f"Scopes of {', '.join(wanted)}"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="{_FONT}">\n'
        f"<title>{title}</title>\n"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def layers_of(dimension: Dimension) -> list[list[str]]:
    """The scopes by how many steps lie above them at most; in each layer below the middle of what they are in."""
    depth: dict[str, int] = {}
    for name in reversed(dimension.upwards()):
        depth[name] = 1 + max((depth[each] for each in dimension.containers(name)), default=-1)
    layers: list[list[str]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
    for name in dimension.scopes:
        layers[depth[name]].append(name)
    place: dict[str, float] = {}
    for layer in layers:
        middles = {name: _middle([place[each] for each in dimension.containers(name)]) for name in layer}
        layer.sort(key=lambda name: (middles[name], name))
        place.update((name, (number + 0.5) / len(layer)) for number, name in enumerate(layer))
    return layers


def _middle(places: Sequence[float]) -> float:
    return sum(places) / len(places) if places else 0.0


def _placed(graph: ScopeGraph, dimension: Dimension, left: float) -> tuple[dict[str, _Box], float, float]:
    """The boxes of a dimension that begins at ``left``, and where it ends, to the right and below."""
    inside: dict[str, list[str]] = {}
    for client, where in graph.clients.items():
        for scope in where.get(dimension.name, ()):
            inside.setdefault(scope, []).append(client)
    layers = layers_of(dimension)
    texts = {name: _text_of(dimension, name, inside.get(name, [])) for name in dimension.scopes}
    sizes = {
        name: (max(map(len, lines)) * _LETTER + 2 * _PAD, len(lines) * _LINE + _PAD) for name, lines in texts.items()
    }
    widths = [sum(sizes[name][0] for name in layer) + _GAP * (len(layer) - 1) for layer in layers]
    widest = max([*widths, (len(dimension.name) + 8) * _LETTER])
    boxes: dict[str, _Box] = {}
    y = _MARGIN + 2.0 * _LINE
    for layer, width in zip(layers, widths, strict=True):
        x = left + (widest - width) / 2
        for name in layer:
            across, high = sizes[name]
            boxes[name] = _Box(name=name, lines=texts[name], x=x + across / 2, y=y, width=across, height=high)
            x += across + _GAP
        y += max(sizes[name][1] for name in layer) + _BETWEEN
    return boxes, left + widest, y - _BETWEEN if layers else y


def _text_of(dimension: Dimension, name: str, clients: Sequence[str]) -> tuple[str, ...]:
    scope = dimension.scopes[name]
    lines = [visible(name)]
    for word, each in (("output", scope.output), ("input", scope.input)):
        if each is not None:
            lines += _wrapped(f"{word}: {each.text}")
    if scope.carriers is not None:
        lines += _wrapped(f"carried by {', '.join(scope.carriers) or 'no zone'}")
    if clients:
        more = f" and {len(clients) - _MOST_CLIENTS_DRAWN} more" if len(clients) > _MOST_CLIENTS_DRAWN else ""
        lines += _wrapped(f"· {', '.join(clients[:_MOST_CLIENTS_DRAWN])}{more}")
    return tuple(lines)


def _wrapped(text: str) -> list[str]:
    return wrap(visible(text), _WIDEST, break_on_hyphens=False)


def _drawn(dimension: Dimension, boxes: dict[str, _Box], left: float) -> Iterator[str]:
    mode = "closed" if dimension.closed else "open"
    yield (
        f'<text x="{left:.0f}" y="{_MARGIN + _LINE - 4}" font-weight="bold" fill="#1f2328">'
        f'{escape(visible(dimension.name))} <tspan font-weight="normal" fill="#57606a">{mode}</tspan></text>'
    )
    for name, scope in dimension.scopes.items():
        for container in scope.containers:
            yield from _edge(boxes[name], boxes[container])
            link = scope.link(container)
            said = [f"{word} {each.text}" for word, each in (("↑", link.up), ("↓", link.down)) if each is not None]
            for number, text in enumerate(said):
                yield _label(boxes[name], boxes[container], number, text)
    for box in boxes.values():
        yield from _box(box, _CLOSED if dimension.closed else _FILL)


def _edge(member: _Box, container: _Box) -> Iterator[str]:
    x, start, above, end = member.x, member.y, container.x, container.y + container.height
    turn = (start + end) / 2
    path = f"M{x:.0f} {start:.0f}C{x:.0f} {turn:.0f} {above:.0f} {turn:.0f} {above:.0f} {end:.0f}"
    yield f'<path d="{path}" fill="none" stroke="#8c959f"/>'


def _label(member: _Box, container: _Box, number: int, text: str) -> str:
    x, y = (3 * member.x + container.x) / 4, member.y - 10 - number * (_LINE - 2)
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="middle" font-size="{_FONT - 2}" fill="#57606a" stroke="#ffffff" '
        f'stroke-width="4" paint-order="stroke">{escape(visible(text))}</text>'
    )


def _box(box: _Box, fill: str) -> Iterator[str]:
    yield (
        f'<rect x="{box.x - box.width / 2:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" '
        f'rx="6" fill="{fill}" stroke="{_BORDER}"/>'
    )
    for number, text in enumerate(box.lines):
        y = box.y + _PAD / 2 + (number + 1) * _LINE - 4
        weight = ' font-weight="bold"' if number == 0 else ""
        yield f'<text x="{box.x:.0f}" y="{y:.0f}" text-anchor="middle" fill="#1f2328"{weight}>{escape(text)}</text>'
