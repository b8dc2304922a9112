"""A scenario as a diagram: zones with their routers and clients, and the way of one event over them, as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import ceil, cos, pi, sin, sqrt

from situ.protocol.simulator.scenario import Scenario

_SIZE = 260
_KINDS = {"Publish": "#1b7837", "Forward": "#2166ac", "GatewayForward": "#b2182b", "Deliver": "#1b7837"}


def draw(
    scenario: Scenario,
    gateways: Mapping[str, str],
    places: Mapping[str, str],
    log: list[tuple[float, str, str, str, str]],
    event: str,
) -> str:
    """The drawing. ``places`` says at which router each client is, ``event`` whose way is shown, by its key."""
    columns = ceil(sqrt(len(scenario.zones)))
    rows = ceil(len(scenario.zones) / columns)
    where: dict[str, tuple[float, float]] = {}
    shapes: list[str] = []
    for number, (zone, members) in enumerate(scenario.zones.items()):
        x, y = float(number % columns * _SIZE), float(number // columns * _SIZE)
        shapes.append(
            f'<rect x="{x + 8:.0f}" y="{y + 8:.0f}" width="{_SIZE - 16}" height="{_SIZE - 16}" rx="14" class="zone"/>'
            f'<text x="{x + 20:.0f}" y="{y + 30:.0f}" class="name">zone {escape(zone)}</text>'
        )
        for place, name in enumerate(members):
            turn = 2 * pi * place / len(members) - pi / 2
            far = 0 if len(members) == 1 else _SIZE * 0.24
            where[name] = (x + _SIZE / 2 + far * cos(turn), y + _SIZE / 2 + 8 + far * sin(turn))
    ways = [each for each in log if each[4] == event and each[3] in _KINDS]
    shown = {name for _, source, target, _, _ in ways for name in (source, target)}
    children: dict[str, list[str]] = {}
    for client, router in places.items():
        if router in where and (client in shown or len(places) <= 40):
            children.setdefault(router, []).append(client)
    for router, clients in children.items():
        x, y = where[router]
        for place, client in enumerate(clients):
            turn = 2 * pi * place / len(clients) + 0.4
            where[client] = (x + 34 * cos(turn), y + 34 * sin(turn))
            shapes.append(_line(where[client], (x, y), "child", 0))
    for source, target, kind, number in _steps(ways):
        if source in where and target in where:
            shapes.append(_line(where[source], where[target], "way", 10, _KINDS[kind]))
            x, y = ((one + 2 * other) / 3 for one, other in zip(where[source], where[target], strict=True))
            shapes.append(f'<text x="{x:.0f}" y="{y - 4:.0f}" class="step">{number}</text>')
    for name, (x, y) in where.items():
        is_router = "/" in name
        style = "gateway" if name in gateways.values() else "router" if is_router else "client"
        label = name.partition("/")[2] if is_router else name
        shapes.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{11 if is_router else 6}" class="{style}"/>')
        shapes.append(f'<text x="{x:.0f}" y="{y + (4 if is_router else 15):.0f}" class="label">{escape(label)}</text>')
    title = f"the way of {event}" if event else "zones, routers and gateways"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {columns * _SIZE} {rows * _SIZE}" '
        f'font-family="sans-serif" role="img"><title>{escape(title)}</title>{_STYLE}{"".join(shapes)}</svg>\n'
    )


def _steps(ways: list[tuple[float, str, str, str, str]]) -> list[tuple[str, str, str, int]]:
    """Each link that the event takes, once, numbered by how far the event has come."""
    depth: dict[str, int] = {}
    found: dict[tuple[str, str], tuple[str, str, str, int]] = {}
    for _, source, target, kind, _ in ways:
        if (source, target) not in found:
            step = depth.get(source, 0) + 1
            depth.setdefault(target, step)
            found[source, target] = (source, target, kind, step)
    return list(found.values())


def _line(source: tuple[float, float], target: tuple[float, float], style: str, short: float, colour: str = "") -> str:
    (x1, y1), (x2, y2) = source, target
    length = max(sqrt((x2 - x1) ** 2 + (y2 - y1) ** 2), 1.0)
    x2, y2 = x2 - (x2 - x1) / length * short, y2 - (y2 - y1) / length * short
    stroke = f' stroke="{colour}"' if colour else ""
    return f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" class="{style}"{stroke}/>'


_STYLE = (
    "<style>.zone{fill:#f6f6f6;stroke:#bbb}.router{fill:#9ecae1;stroke:#333}.gateway{fill:#fdae6b;stroke:#333}"
    ".client{fill:#fff;stroke:#666}.child{stroke:#ccc}.way{stroke-width:2}.name{font-size:13px;fill:#444}"
    ".label{font-size:9px;text-anchor:middle;fill:#222}.step{font-size:12px;font-weight:bold;fill:#b2182b}</style>"
)
