"""Scopes for people: each dimension as a tree, with the filters at boundaries and the clients inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text
from rich.tree import Tree

from situ.cli.output import visible
from situ.visibility.graph import Dimension, ScopeGraph

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
