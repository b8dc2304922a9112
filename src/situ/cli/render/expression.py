"""An explained expression for people: the forms, the typed tree, the text of both engines, the outcome."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree

from situ.cli.output import visible
from situ.cli.render.layout import facts, section
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
    forms = (("written", explained.text), ("canonical", explained.canonical), ("simplified", explained.simplified))
    yield facts((*forms, ("gives", _meaning(explained.tree))))
    yield from section("Typed tree", Padding(_tree(explained.tree), (0, 0, 0, 2)))
    yield from section("Spark SQL", _code(explained.spark.value))
    if explained.spark.fails:
        yield from section("Spark SQL, true where it fails", _code(explained.spark.fails))
    yield from section("Python", _code(explained.python.rstrip("\n")))
    if explained.outcome is not None:
        of = explained.outcome.sample
        title = f"Result for {visible(of)}" if of else "Result"
        yield from section(title, Padding(_outcome(explained.outcome), (0, 0, 0, 2)))
    if explained.problems:
        yield Text()
        yield from show_problems(explained.problems)


def _code(text: str) -> Text:
    return Text("\n".join(f"  {line}" for line in visible(text).split("\n")), "green")


def _outcome(outcome: ExpressionOutcome) -> Text:
    """The value, or why there is none."""
    if outcome.fails:
        return Text(f"fails: {visible(outcome.reason)}", "bold red")
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
    text.append(visible(part.node), "bold")
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
