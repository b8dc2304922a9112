"""``situ explain``: what is declared, and what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit, Stop
from situ.cli.explain_contexts import explain_context, explain_transform
from situ.cli.explain_matches import explain_detection, explain_miss
from situ.cli.explain_policies import explain_policy
from situ.cli.explain_quality import explain_quality
from situ.cli.explain_visibility import explain_visibility
from situ.cli.groups import group
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from situ.errors import Code

app = group(
    "explain",
    "Explain types, expressions, functions, subscriptions, events, visibility, quality, contexts, policies, "
    "detections, codes.",
)


def _type_names(incomplete: str) -> list[str]:
    from situ.cli.opened import type_names

    return [name for name in type_names() if name.startswith(incomplete)]


def _function_names(incomplete: str) -> list[str]:
    from situ.cli.explained_functions import function_names

    return [name for name in function_names({}) if name.startswith(incomplete)]


def _codes(incomplete: str) -> list[tuple[str, str]]:
    from situ.catalogue import CODES

    return [(name, code.title) for name, code in CODES.items() if name.startswith(incomplete.upper())]


@app.command("types")
def explain_types(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="TYPE", help="A type of the project.", autocompletion=_type_names)
    ] = "",
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Explain a type, or show all types as a tree.

    Of a type it shows the attributes and where they come from, and what is above and below it.

    \b
    Examples:
      situ explain types
      situ explain types Sighting
    """
    from situ.catalogue import UNKNOWN_TYPE
    from situ.cli.explained_types import explain_all, explain_type, type_tree
    from situ.cli.opened import open_project
    from situ.cli.show_types import show_type, show_type_tree
    from situ.errors import nearest

    output = begin(context, json=as_json, quiet=quiet)
    types = open_project(project).deployment.types
    if not name:
        output.answer(
            lambda: [explained.as_json() for explained in explain_all(types)], lambda: show_type_tree(type_tree(types))
        )
        return Exit.DONE
    type = types.get(name)
    if type is None:
        raise Stop(Exit.NO, UNKNOWN_TYPE(name=name, nearest=nearest(name, types.names)))
    explained = explain_type(type, types)
    output.answer(explained.as_json, lambda: show_type(explained))
    return Exit.DONE


@app.command("expression")
def explain_expression(
    context: typer.Context,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="An expression, or the name of a function, or CLIENT/SUBSCRIPTION.")
    ],
    type: Annotated[
        str,
        typer.Option("--type", metavar="TYPE", help="The type of event it is about.", autocompletion=_type_names),
    ] = "",
    event: Annotated[
        str,
        typer.Option(
            "--event", metavar="FILE", help="Evaluate it for this event, or its data alone; - is standard input."
        ),
    ] = "",
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Explain an expression, a filter or a function.

    Shows its types and units, its simplest form, its text for Spark and for Python, and what it gives for an event.

    TEXT may also name what holds an expression: CLIENT/SUBSCRIPTION stands for its filter, and without --type the name
    of a function of the project for its definition.

    \b
    Examples:
      situ explain expression 'at.x < 5 m' --type Sighting
      situ explain expression desk/arrivals --event sighting.json
      situ explain expression near
      situ explain expression --type Sighting -- '-at.x > 5 m'
    """
    from situ.cli.explained_subject import explain_subject
    from situ.cli.files import read_file
    from situ.cli.opened import open_project
    from situ.cli.outcome import Raw
    from situ.cli.show_expression import show_expression

    output = begin(context, json=as_json, quiet=quiet)
    sample = Raw(event, read_file(event)) if event else None
    explained = explain_subject(text, type, sample, open_project(project).deployment)
    output.answer(explained.as_json, lambda: show_expression(explained, only_outcome=quiet and sample is not None))
    return Exit.DONE


@app.command("functions")
def explain_functions(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A function or a form such as CASE.", autocompletion=_function_names)
    ] = "",
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Explain a function, or list all.

    Functions are the project's own and those of the language.

    \b
    Examples:
      situ explain functions
      situ explain functions substring
    """
    from situ.catalogue import UNKNOWN_NAME
    from situ.cli import explained_functions as functions
    from situ.cli.opened import open_functions
    from situ.cli.show_functions import show_each_function, show_functions
    from situ.errors import nearest

    output = begin(context, json=as_json, quiet=quiet)
    own = open_functions(project)
    found = functions.find_functions(name, own) if name else functions.explain_functions(own)
    if not found:
        close = nearest(name, functions.function_names(own))
        instead = "`situ explain functions` lists them all."
        raise Stop(Exit.NO, UNKNOWN_NAME(kind="function", name=name, nearest=close, instead=instead))
    show = show_each_function if name else show_functions
    output.answer(lambda: [explained.as_json() for explained in found], lambda: show(found))
    return Exit.DONE


@app.command("subscription")
def explain_subscription(
    context: typer.Context,
    id: Annotated[str, typer.Argument(metavar="CLIENT/NAME", help="A subscription of the project or of the run.")],
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Explain a subscription: what it asks for, how events find it, with whom it shares deliveries.

    While the project runs it is explained as it is in force, with what clients declared themselves.

    \b
    Examples:
      situ explain subscription desk/arrivals
    """
    import asyncio

    from situ.cli import explained_subscription as subscriptions
    from situ.cli.in_force import deployment_in_force
    from situ.cli.show_subscription import show_subscription

    output = begin(context, json=as_json, quiet=quiet)
    deployment = asyncio.run(deployment_in_force(project, output))
    explained = subscriptions.explain_subscription(id, deployment)
    output.answer(explained.as_json, lambda: show_subscription(explained))
    return Exit.DONE


@app.command("event")
def explain_event(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="EVENT", help="The event's id, its key (client.incarnation.seq) or its position.")
    ],
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Explain what became of an event: where it is, who wanted it, and why the others did not.

    Needs the run: events are on its bus. A key or position is found at once, an id is searched for.

    \b
    Examples:
      situ explain event tracker.1793520000000.12
      situ explain event 4512874496
    """
    import asyncio

    from situ.cli import explained_event as events
    from situ.cli.in_force import find_run
    from situ.cli.on_bus import bus_of
    from situ.cli.progress import progress
    from situ.cli.show_explained_event import show_explained_event
    from situ.registry.snapshots import fetch_deployment

    output = begin(context, json=as_json, quiet=quiet)
    live = find_run(project, output)

    async def look() -> events.EventExplained:
        async with bus_of(live, "explain") as bus:
            return await events.explain_event(name, bus, await fetch_deployment(bus), advance)

    with progress("Searching", shown=output.has_terminal) as advance:
        explained = asyncio.run(look())
    output.answer(explained.as_json, lambda: show_explained_event(explained))
    return Exit.DONE


app.command("visibility")(explain_visibility)
app.command("quality")(explain_quality)
app.command("context")(explain_context)
app.command("transform")(explain_transform)
app.command("policy")(explain_policy)
app.command("detection")(explain_detection)
app.command("miss")(explain_miss)


@app.command("code")
def explain_code(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="CODE", help="A code as problems show it.", autocompletion=_codes)
    ] = "",
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Explain the code of a problem, or list all.

    \b
    Examples:
      situ explain code X103
    """
    from situ.catalogue import CODES, UNKNOWN_CODE
    from situ.cli.show_functions import show_code, show_codes
    from situ.errors import nearest

    output = begin(context, json=as_json, quiet=quiet)
    if not name:
        codes = [CODES[each] for each in sorted(CODES)]
        output.answer(lambda: [_as_json(each) for each in codes], lambda: show_codes(codes))
        return Exit.DONE
    code = CODES.get(name.upper())
    if code is None:
        raise Stop(Exit.NO, UNKNOWN_CODE(name=name, nearest=nearest(name, CODES)))
    output.answer(lambda: _as_json(code), lambda: show_code(code))
    return Exit.DONE


def _as_json(code: Code) -> dict[str, Any]:
    return {
        "code": code.code,
        "severity": code.severity.value,
        "title": code.title,
        "message": code.message,
        "hint": code.hint,
        "otherwise": code.otherwise,
        "parameters": {name: type.__name__ for name, type in code.parameters.items()},
    }
