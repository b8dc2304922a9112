"""An explained expression for people: the forms, the typed tree, the text of both engines, the outcome."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from situ.cli.output import visible
from situ.cli.render.text import show_problems
from situ.explain.expression import ExpressionExplanation, ExpressionOutcome, ExpressionPart, with_unit


def show_expression(explained: ExpressionExplanation, *, only_outcome: bool = False) -> Iterator[RenderableType]:
    """Everything, from what was written down to what it gives for the sample; or the latter alone."""
    if only_outcome and explained.outcome is not None:
        yield _outcome(explained.outcome)
        return
    over = f" over {visible(explained.over)}" if explained.over else ""
    yield Text.assemble((visible(explained.subject), "bold"), (over, "dim"))
    yield Text()
    yield _forms(explained)
    yield from _section("Typed tree", Padding(_tree(explained.tree), (0, 0, 0, 2)))
    yield from _section("Spark SQL", _code(explained.spark.value))
    if explained.spark.fails:
        yield from _section("Spark SQL, true where it fails", _code(explained.spark.fails))
    yield from _section("Python", _code(explained.python.rstrip("\n")))
    if explained.outcome is not None:
        of = explained.outcome.sample
        title = f"Result for {visible(of)}" if of else "Result"
        yield from _section(title, Padding(_outcome(explained.outcome), (0, 0, 0, 2)))
    if explained.problems:
        yield Text()
        yield from show_problems(explained.problems)


def _forms(explained: ExpressionExplanation) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("written", visible(explained.text))
    table.add_row("canonical", visible(explained.canonical))
    table.add_row("simplified", visible(explained.simplified))
    table.add_row("gives", _meaning(explained.tree))
    return table


def _section(title: str, content: RenderableType) -> Iterator[RenderableType]:
    yield Text()
    yield Text(title, "bold")
    yield content


def _code(text: str) -> Text:
    return Text("\n".join(f"  {line}" for line in visible(text).split("\n")), "green")


def _outcome(outcome: ExpressionOutcome) -> Text:
    """The value, or why there is none."""
    if outcome.failure:
        return Text(f"fails: {visible(outcome.failure)}", "bold red")
    return Text(visible(outcome.shown), "bold")


def _tree(part: ExpressionPart) -> Tree:
    tree = Tree(_line(part), guide_style="dim")
    _grow(tree, part)
    return tree


def _grow(tree: Tree, part: ExpressionPart) -> None:
    for below in part.parts:
        _grow(tree.add(_line(below)), below)


def _line(part: ExpressionPart) -> Text:
    text = Text()
    if part.role:
        text.append(f"{visible(part.role)} ", "dim")
    text.append(visible(part.label), "bold")
    text.append("  ")
    text.append_text(_meaning(part))
    return text


def _meaning(part: ExpressionPart) -> Text:
    text = Text(with_unit(part.type, part.unit), "cyan")
    if part.nullable:
        text.append(" · may be null", "yellow")
    if part.can_fail:
        text.append(" · can fail", "red")
    return text
