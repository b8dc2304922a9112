"""``situ explain`` for types, expressions, functions, subscriptions, events, codes and visibility."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.commands.explain_context import explain_context, explain_transform
from situ.cli.commands.explain_policy import explain_detection, explain_miss, explain_policy
from situ.cli.commands.quality import explain_quality
from situ.cli.exits import CommandError, Exit
from situ.cli.groups import group
from situ.cli.options import Credentials, Project, Server, common_options

if TYPE_CHECKING:
    from pathlib import Path

    from situ.cli.output import Output
    from situ.model import Deployment
    from situ.router.explain_visibility import Progress
    from situ.scopes.graph import ScopeGraph


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ explain visibility``: why a subscription sees an event, or does not.


@common_options
def explain_visibility(
    output: Output,
    to: Annotated[str, typer.Option("--to", metavar="CLIENT/NAME", help="The subscription.")],
    event: Annotated[
        str, typer.Argument(metavar="[EVENT]", help="The event's id, its key (client.incarnation.seq) or its position.")
    ] = "",
    source: Annotated[
        str,
        typer.Option("--from", metavar="CLIENT/NAME", help="Instead: what this advertisement would publish."),
    ] = "",
    data: Annotated[
        str,
        typer.Option("--data", metavar="FILE", help="The data of it, or a whole event; - is standard input."),
    ] = "",
    project: Project = None,
    credentials: Credentials = None,
    server: Server = "",
) -> Exit:
    """Explain why an event is visible to a subscription, or why not.

    In each dimension it shows the way that the event takes, the filters on it and what they said, and what would help;
    of a situation also what it was made of. An event is decided by the scopes of its time and by those in force.

    With --credentials a client asks: about its own events or its own subscription, and is told the answer and what it
    said itself; an administrator or observer of all closed dimensions is told everything.

    \b
    Examples:
      situ explain visibility tracker.1793520000000.12 --to desk/arrivals
      situ explain visibility --from tracker/sightings --data sighting.json --to desk/arrivals
      situ explain visibility 4512874496 --to desk/arrivals --credentials desk.creds
    """
    import asyncio

    from situ.cli.progress import progress

    if bool(event) == bool(source):
        raise typer.BadParameter("name an event, or an advertisement with --from", param_hint="'EVENT' / '--from'")
    if bool(source) != bool(data):
        raise typer.BadParameter("--from and --data belong together", param_hint="'--from' / '--data'")
    with progress("Searching", shown=output.has_terminal) as advance:
        if credentials is not None or server:
            found, text = asyncio.run(_as_client(project, output, credentials, server, event, source, data, to))
        else:
            found, text = asyncio.run(_as_operator(project, output, event, source, data, to, advance))

    def shown() -> Any:
        from rich.text import Text

        from situ.cli.output import visible

        return [Text(visible(text))]

    output.answer(lambda: found, shown)
    return Exit.DONE


async def _as_operator(
    project: Path | None, output: Output, event: str, source: str, data: str, to: str, advance: Progress | None
) -> tuple[dict[str, Any], str]:
    from situ.cli.arguments import read_file
    from situ.cli.project import bus_of, find_run, open_in_force
    from situ.explain.expression import RawSample
    from situ.explain.visibility import explain_visibility as explain
    from situ.explain.visibility import explain_visibility_of_sample
    from situ.registry.snapshots import fetch_deployment
    from situ.stages.explain_visibility import explanation_lines

    if source:
        opened = await open_in_force(project, output)
        written = _written(opened.path, opened.deployment)
        answer = explain_visibility_of_sample(source, RawSample(data, read_file(data)), to, opened, written)
        return answer.as_json(), explanation_lines(answer)
    live = find_run(project, output)
    async with bus_of(live, "explain") as bus:
        deployment = await fetch_deployment(bus)
        answer = await explain(event, to, bus, deployment, _written(live.path, deployment), advance)
    return answer.as_json(), explanation_lines(answer)


def _written(path: Path, deployment: Deployment) -> ScopeGraph:
    """The scopes as they stand in the folder, for the places of filters; while that has errors, those in force."""
    from situ.project.check import check_folder

    found = check_folder(path).deployment
    return deployment.scopes if found is None else found.scopes


async def _as_client(
    project: Path | None,
    output: Output,
    credentials: Path | None,
    server: str,
    event: str,
    source: str,
    data: str,
    to: str,
) -> tuple[dict[str, Any], str]:
    from situ.cli.arguments import read_file
    from situ.cli.connection import as_client
    from situ.client.connection import connect

    who = as_client(project, "", credentials, server, output)
    sample = read_file(data).decode(errors="replace") if data else ""
    async with connect(who.place, client=who.name, **who.options) as node:
        told = await node.explain_visibility(event, to=to, ad=source, sample=sample)
    return dict(told.answer), told.text


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The group ``situ explain``: what is declared, and what it means.

app = group(
    "explain",
    "Explain types, expressions, functions, subscriptions, events, visibility, quality, contexts, policies, "
    "detections, codes.",
)


def _type_names(incomplete: str) -> list[str]:
    from situ.cli.project import type_names

    return [name for name in type_names() if name.startswith(incomplete)]


def _function_names(incomplete: str) -> list[str]:
    from situ.explain.functions import function_names

    return [name for name in function_names({}) if name.startswith(incomplete)]


def _codes(incomplete: str) -> list[tuple[str, str]]:
    from situ.lang.catalogue import CODES

    return [(name, code.title) for name, code in CODES.items() if name.startswith(incomplete.upper())]


@app.command("types")
@common_options
def explain_types(
    output: Output,
    project: Path | None,
    name: Annotated[
        str, typer.Argument(metavar="TYPE", help="A type of the project.", autocompletion=_type_names)
    ] = "",
) -> Exit:
    """Explain a type, or show all types as a tree.

    Of a type it shows the attributes and where they come from, and what is above and below it.

    \b
    Examples:
      situ explain types
      situ explain types Sighting
    """
    from situ.cli.project import open_project
    from situ.cli.render.types import show_type, show_type_tree
    from situ.explain.types import explain_all, explain_type
    from situ.lang.catalogue import UNKNOWN_TYPE
    from situ.lang.problems import nearest

    types = open_project(project).deployment.types
    if not name:
        found = explain_all(types)
        output.answer(
            lambda: [explained.as_json() for explained in found if not explained.built_in],
            lambda: show_type_tree(found),
        )
        return Exit.DONE
    type = types.get(name)
    if type is None:
        raise CommandError(Exit.NO, UNKNOWN_TYPE(name=name, nearest=nearest(name, types.names)))
    explained = explain_type(type, types)
    output.answer(explained.as_json, lambda: show_type(explained))
    return Exit.DONE


@app.command("expression")
@common_options
def explain_expression(
    output: Output,
    project: Path | None,
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
    from situ.cli.arguments import read_file
    from situ.cli.project import open_project
    from situ.cli.render.expression import show_expression
    from situ.explain.expression import RawSample, explain_subject

    sample = RawSample(event, read_file(event)) if event else None
    explained = explain_subject(text, type, sample, open_project(project).deployment)
    output.answer(
        explained.as_json, lambda: show_expression(explained, only_outcome=output.quiet and sample is not None)
    )
    return Exit.DONE


@app.command("functions")
@common_options
def explain_functions(
    output: Output,
    project: Path | None,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A function or a form such as CASE.", autocompletion=_function_names)
    ] = "",
) -> Exit:
    """Explain a function, or list all.

    Functions are the project's own and those of the language.

    \b
    Examples:
      situ explain functions
      situ explain functions substring
    """
    from situ.cli.project import open_functions
    from situ.cli.render.types import show_each_function, show_functions
    from situ.explain import functions
    from situ.lang.catalogue import UNKNOWN_NAME
    from situ.lang.problems import nearest

    own = open_functions(project)
    found = functions.find_functions(name, own) if name else functions.explain_functions(own)
    if not found:
        close = nearest(name, functions.function_names(own))
        instead = "`situ explain functions` lists them all."
        raise CommandError(Exit.NO, UNKNOWN_NAME(kind="function", name=name, nearest=close, instead=instead))
    show = show_each_function if name else show_functions
    output.answer(lambda: [explained.as_json() for explained in found], lambda: show(found))
    return Exit.DONE


@app.command("subscription")
@common_options
def explain_subscription(
    output: Output,
    project: Path | None,
    id: Annotated[str, typer.Argument(metavar="CLIENT/NAME", help="A subscription of the project or of the run.")],
) -> Exit:
    """Explain a subscription: what it asks for, how events find it, with whom it shares deliveries.

    While the project runs it is explained as it is in force, with what clients declared themselves.

    \b
    Examples:
      situ explain subscription desk/arrivals
    """
    import asyncio

    from situ.cli.project import deployment_in_force
    from situ.cli.render.event import show_subscription
    from situ.explain import subscription as subscriptions

    deployment = asyncio.run(deployment_in_force(project, output))
    explained = subscriptions.explain_subscription(id, deployment)
    output.answer(explained.as_json, lambda: show_subscription(explained))
    return Exit.DONE


@app.command("event")
@common_options
def explain_event(
    output: Output,
    project: Path | None,
    name: Annotated[
        str, typer.Argument(metavar="EVENT", help="The event's id, its key (client.incarnation.seq) or its position.")
    ],
) -> Exit:
    """Explain what became of an event: where it is, who wanted it, and why the others did not.

    Needs the run: events are on its bus. A key or position is found at once, an id is searched for.

    \b
    Examples:
      situ explain event tracker.1793520000000.12
      situ explain event 4512874496
    """
    import asyncio

    from situ.cli.progress import progress
    from situ.cli.project import bus_of, find_run
    from situ.cli.render.event import show_explained_event
    from situ.explain import event as events
    from situ.registry.snapshots import fetch_deployment

    live = find_run(project, output)

    async def look() -> events.EventExplanation:
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
@common_options
def explain_code(
    output: Output,
    name: Annotated[
        str, typer.Argument(metavar="CODE", help="A code as problems show it.", autocompletion=_codes)
    ] = "",
) -> Exit:
    """Explain the code of a problem, or list all.

    \b
    Examples:
      situ explain code X103
    """
    from situ.cli.render.types import show_code, show_codes
    from situ.explain.types import describe_code
    from situ.lang.catalogue import CODES, UNKNOWN_CODE
    from situ.lang.problems import nearest

    if not name:
        codes = [describe_code(CODES[each]) for each in sorted(CODES)]
        output.answer(lambda: [each.as_json() for each in codes], lambda: show_codes(codes))
        return Exit.DONE
    code = CODES.get(name.upper())
    if code is None:
        raise CommandError(Exit.NO, UNKNOWN_CODE(name=name, nearest=nearest(name, CODES)))
    explained = describe_code(code)
    output.answer(explained.as_json, lambda: show_code(explained))
    return Exit.DONE
