"""Explained types, functions and codes of problems as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from situ.cli.output import visible
from situ.cli.render.layout import facts, table
from situ.cli.render.text import STYLES
from situ.explain.codes import CodeExplanation
from situ.explain.functions import FunctionExplanation
from situ.explain.types import AttributeExplanation, TypeBranch, TypeExplanation, TypeSection


def show_type(explained: TypeExplanation) -> Iterator[RenderableType]:
    """Head, what is above and below, then the attributes."""
    kind = f" · {'built-in ' if explained.built_in else ''}{explained.kind}"
    yield Text.assemble((explained.name, "bold"), (kind, "dim"))
    yield Text()
    relatives = (("supertypes", explained.supertypes), ("subtypes", explained.subtypes))
    yield facts((name, ", ".join(types) or "none") for name, types in relatives)
    if explained.attributes:
        yield Text()
        yield _attribute_table(explained.attributes)


def show_type_tree(sections: tuple[TypeSection, ...]) -> Iterator[RenderableType]:
    """All types by kind."""
    for place, section in enumerate(sections):
        if place:
            yield Text()
        tree = Tree(Text(section.title, "bold"), guide_style="dim")
        for branch in section.branches:
            _grow(tree, branch)
        yield tree


def _attribute_table(attributes: tuple[AttributeExplanation, ...]) -> Table:
    made = table("attribute", "type", "unit", "optional", "default", "from")
    for each in attributes:
        made.add_row(
            Text(each.name, "" if each.inherited_from else "bold"),
            Text(each.type, "cyan"),
            visible(each.unit or ""),
            "optional" if each.optional else "",
            "" if each.default is None else visible(json.dumps(each.default, ensure_ascii=False)),
            Text(each.inherited_from or (f"narrows {each.narrows}" if each.narrows else ""), "dim"),
        )
    return made


def _grow(tree: Tree, branch: TypeBranch) -> None:
    text = Text(branch.name, "bold")
    text.append("  " + visible(", ".join(branch.attributes)), "cyan")
    if branch.again:
        text.append("  (its subtypes are shown above)", "dim")
    inside = tree.add(text)
    for below in branch.below:
        _grow(inside, below)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Functions and codes.


def show_functions(functions: Sequence[FunctionExplanation]) -> Iterator[RenderableType]:
    """The table of all, by group."""
    made = table("group", "call", "meaning")
    group = ""
    for each in functions:
        if group and group != each.group:
            made.add_section()
        shown = "" if each.group == group else each.group
        group = each.group
        calls = "\n".join(signature.text for signature in each.signatures) or each.name
        made.add_row(Text(shown, "bold"), Text(visible(calls), "cyan"), visible(each.body or each.doc))
    yield made


def show_each_function(functions: Sequence[FunctionExplanation]) -> Iterator[RenderableType]:
    """Those of one name, one below the other."""
    for place, each in enumerate(functions):
        if place:
            yield Text()
        yield from _function(each)


def _function(explained: FunctionExplanation) -> Iterator[RenderableType]:
    yield Text.assemble((visible(explained.name), "bold"), (f" · {explained.group}", "dim"))
    yield Text(f"  {visible(explained.doc)}")
    if explained.signatures:
        yield Text()
        for signature in explained.signatures:
            remarks = f"  {', '.join(signature.remarks)}" if signature.remarks else ""
            yield Text.assemble((f"  {visible(signature.text)}", "cyan"), (remarks, "dim"))
    if explained.body:
        yield Text()
        yield Text(f"  = {visible(explained.body)}", "green")
    if explained.examples:
        yield Text()
        for each in explained.examples:
            call, result = f"  {visible(each.expression)}", visible(each.result)
            yield Text.assemble((call, "green"), ("  gives  ", "dim"), (result, "bold"))


def show_code(code: CodeExplanation) -> Iterator[RenderableType]:
    """An entry of the catalogue."""
    yield Text.assemble(
        (code.code, STYLES[code.severity]), (f" {code.title}", "bold"), (f" · {code.severity.value}", "dim")
    )
    yield Text()
    texts = (("message", code.message), ("hint", code.hint), ("or", code.otherwise))
    yield facts((title, text.replace("{{", "{").replace("}}", "}")) for title, text in texts if text)


def show_codes(codes: Sequence[CodeExplanation]) -> Iterator[RenderableType]:
    """The table of all codes."""
    made = table("code", "severity", "title")
    for code in codes:
        made.add_row(Text(code.code, "bold"), Text(code.severity.value, STYLES[code.severity]), code.title)
    yield made
