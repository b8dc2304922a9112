"""Explained types, functions and codes of problems as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from situ.cli.output import visible
from situ.cli.render.layout import facts, table
from situ.cli.render.text import STYLES
from situ.explain.functions import FunctionExplanation
from situ.explain.types import AttributeExplanation, CodeExplanation, TypeExplanation

_BUILT_IN = "Built-in types"
_TITLES = {"event": "Events", "struct": "Types", "named primitive": "Named primitives", "primitive": _BUILT_IN}


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


def show_type_tree(types: Iterable[TypeExplanation]) -> Iterator[RenderableType]:
    """All types by kind, subtypes below their supertypes. Kinds of which there is none are left out."""
    kinds: dict[str, dict[str, TypeExplanation]] = {title: {} for title in _TITLES.values()}
    for each in types:
        kinds[_BUILT_IN if each.built_in else _TITLES[each.kind]][each.name] = each
    for place, (title, members) in enumerate((title, members) for title, members in kinds.items() if members):
        if place:
            yield Text()
        tree = Tree(Text(title, "bold"), guide_style="dim")
        below: dict[str, list[TypeExplanation]] = {}
        for each in members.values():
            for above in each.above:
                below.setdefault(above, []).append(each)
        seen: set[str] = set()
        for each in members.values():
            if not any(above in members for above in each.above):
                _grow(tree, each, below, seen)
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


def _grow(tree: Tree, type: TypeExplanation, below: Mapping[str, Sequence[TypeExplanation]], seen: set[str]) -> None:
    """A type with several supertypes stands below each, with what is below it only once."""
    text = Text(type.name, "bold")
    text.append("  " + visible(", ".join(type.own)), "cyan")
    inside = tree.add(text)
    if type.name not in seen:
        seen.add(type.name)
        for each in below.get(type.name, ()):
            _grow(inside, each, below, seen)
    elif type.name in below:
        text.append("  (its subtypes are shown above)", "dim")


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
