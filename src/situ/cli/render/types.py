"""Explained types for people: a table of one, a tree of all."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from situ.cli.explained_types import AttributeExplained, Branch, Section, TypeExplained
from situ.cli.output import visible


def show_type(explained: TypeExplained) -> Iterator[RenderableType]:
    """Head, what is above and below, then the attributes."""
    kind = f" · {'built-in ' if explained.built_in else ''}{explained.kind}"
    yield Text.assemble((explained.name, "bold"), (kind, "dim"))
    yield Text()
    yield _relatives(explained)
    if explained.attributes:
        yield Text()
        yield _attribute_table(explained.attributes)


def show_type_tree(sections: tuple[Section, ...]) -> Iterator[RenderableType]:
    """All types by kind."""
    for place, section in enumerate(sections):
        if place:
            yield Text()
        tree = Tree(Text(section.title, "bold"), guide_style="dim")
        for branch in section.branches:
            _grow(tree, branch)
        yield tree


def table(*titles: str) -> Table:
    """The one look of tables: no vertical lines, a rule under the titles."""
    made = Table(box=box.SIMPLE_HEAD, header_style="dim", pad_edge=False, show_edge=False)
    for title in titles:
        made.add_column(title, overflow="fold")
    return made


def _relatives(explained: TypeExplained) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("supertypes", ", ".join(explained.supertypes) or "none")
    grid.add_row("subtypes", ", ".join(explained.subtypes) or "none")
    return grid


def _attribute_table(attributes: tuple[AttributeExplained, ...]) -> Table:
    made = table("attribute", "type", "unit", "optional", "default", "from")
    for each in attributes:
        made.add_row(
            Text(each.name, "" if each.origin else "bold"),
            Text(each.type, "cyan"),
            visible(each.unit),
            "optional" if each.optional else "",
            "" if each.default is None else visible(json.dumps(each.default, ensure_ascii=False)),
            Text(each.origin or (f"narrows {each.narrows}" if each.narrows else ""), "dim"),
        )
    return made


def _grow(tree: Tree, branch: Branch) -> None:
    text = Text(branch.name, "bold")
    text.append("  " + visible(", ".join(branch.attributes)), "cyan")
    if branch.again:
        text.append("  (its subtypes are shown above)", "dim")
    inside = tree.add(text)
    for below in branch.below:
        _grow(inside, below)
