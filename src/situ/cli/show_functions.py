"""Explained functions and codes for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from situ.cli.explained_functions import FunctionExplained
from situ.cli.output import visible
from situ.cli.show_problems import STYLES
from situ.cli.show_types import table
from situ.errors import Code


def show_functions(functions: Sequence[FunctionExplained]) -> Iterator[RenderableType]:
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


def show_each_function(functions: Sequence[FunctionExplained]) -> Iterator[RenderableType]:
    """Those of one name, one below the other."""
    for place, each in enumerate(functions):
        if place:
            yield Text()
        yield from _function(each)


def _function(explained: FunctionExplained) -> Iterator[RenderableType]:
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
        for expression, result in explained.examples:
            yield Text.assemble((f"  {visible(expression)}", "green"), ("  gives  ", "dim"), (visible(result), "bold"))


def show_code(code: Code) -> Iterator[RenderableType]:
    """An entry of the catalogue."""
    yield Text.assemble(
        (code.code, STYLES[code.severity]), (f" {code.title}", "bold"), (f" · {code.severity.value}", "dim")
    )
    yield Text()
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for title, template in (("message", code.message), ("hint", code.hint), ("or", code.otherwise)):
        if template:
            grid.add_row(title, template.replace("{{", "{").replace("}}", "}"))
    yield grid


def show_codes(codes: Sequence[Code]) -> Iterator[RenderableType]:
    """The table of all codes."""
    made = table("code", "severity", "title")
    for code in codes:
        made.add_row(Text(code.code, "bold"), Text(code.severity.value, STYLES[code.severity]), code.title)
    yield made
