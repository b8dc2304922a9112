"""An explained policy for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from situ.cli.explained_policy import PolicyExplained
from situ.cli.output import visible
from situ.cli.show_problems import show_problems
from situ.cli.show_types import table
from situ.situation.policies.logic_tree import Component, Node
from situ.situation.policies.wording import duration_text

_COLOURS = {
    Component.LEAF: "",
    Component.QUERY: "cyan",
    Component.CORRELATION: "magenta",
    Component.CONSTRAINT: "blue",
    Component.FOLLOWED_BY: "yellow",
    Component.OR: "green",
    Component.AND: "green",
}


def show_policy(explained: PolicyExplained) -> Iterator[RenderableType]:
    """The text, then what it becomes, step by step."""
    options = "".join(f" · {name} {value}" for name, value in explained.options)
    yield Text.assemble((visible(explained.policy.name), "bold"), (options, "dim"))
    yield Text()
    yield Text(visible(explained.policy.text).rstrip())
    yield from _section("Normal form", _clauses(explained))
    yield from _section("Logic tree", _tree(explained.tree))
    yield from _section("Components", _components(explained))
    yield from _section("Plan", _plan(explained))
    yield Text()
    yield _leaves(explained)
    yield Text()
    yield _operators(explained)
    if explained.plan.warning is not None:
        yield Text()
        yield from show_problems([explained.plan.warning])


def _section(title: str, content: RenderableType) -> Iterator[RenderableType]:
    yield Text()
    yield Text(title, "bold")
    yield content


def _clauses(explained: PolicyExplained) -> Table:
    grid = _grid()
    for number, literals in enumerate(explained.clauses, 1):
        grid.add_row(f"{number}", visible(" or ".join(literals)))
    for choice in explained.choices:
        grid.add_row("", Text(f"one branch in a match: {visible(choice)}", "dim"))
    return grid


def _tree(node: Node) -> Tree:
    tree = Tree(_node(node), guide_style="dim")
    waiting = [(tree, each) for each in node.below]
    while waiting:
        above, each = waiting.pop(0)
        branch = above.add(_node(each))
        waiting.extend((branch, below) for below in each.below)
    return tree


def _node(node: Node) -> Text:
    text = Text.assemble((node.component.value, f"bold {_COLOURS[node.component]}".strip()))
    if node.component not in (Component.AND, Component.OR, Component.FOLLOWED_BY):
        text.append(f"  {visible(node.text)}")
    if node.window:
        text.append(f"  within {duration_text(node.window)}", "dim")
    if node.edges:
        text.append(f"  by {', '.join(map(str, node.edges))}", "dim")
    return text


def _components(explained: PolicyExplained) -> Table:
    grid = _grid()
    for component, meaning in explained.components:
        grid.add_row(component.value, meaning)
    return grid


def _plan(explained: PolicyExplained) -> Table:
    plan = explained.plan
    grid = _grid()
    grid.add_row("partition", f"by {plan.partition}: {plan.reason}" if plan.partition else f"one: {plan.reason}")
    waits = f"up to {duration_text(plan.wait)} after the last of its events, where something must stay absent"
    grid.add_row("reported", waits if plan.wait else "with the last of its events")
    return grid


def _leaves(explained: PolicyExplained) -> Table:
    made = table("events", "as", "where", "joined with", "divided", "kept", "shared with")
    for each in explained.leaves:
        made.add_row(
            visible(each.events),
            ", ".join(each.aliases),
            visible(each.constraint),
            visible(each.joined),
            f"by {each.partition}" if each.partition else "to all" if explained.plan.partition else "",
            duration_text(each.plan.kept),
            visible(", ".join(each.shared)),
        )
    return made


def _operators(explained: PolicyExplained) -> Table:
    made = table("component", "decides", "runs", "window")
    for each in explained.plan.operators:
        made.add_row(each.kind, visible(each.text), each.runs.value, duration_text(each.window) if each.window else "")
    return made


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid
