"""``situ scopes``: the scopes drawn, their history, and the commands that change them while events flow."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from situ.cli.exits import CommandError, Exit
from situ.cli.groups import group
from situ.cli.options import Credentials, Server, common_options

if TYPE_CHECKING:
    from situ.cli.output import Output
    from situ.scopes.graph import Grant


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ scopes join|leave|put|drop|filter|link|carriers|mode|grant|revoke``. Each says how things shall be; doing it
# again changes nothing. Who has the project folder is its operator and may do all of it; who has the credentials of a
# client may do what the scopes let that client do. A command function says what is asked for; where, as whom and for
# which epoch is the same for all of them.


class RightTo(StrEnum):
    """What can be granted."""

    OBSERVE = "observe"
    BROADCAST = "broadcast"
    ADMIN = "admin"


In = Annotated[str, typer.Option("--dimension", "-d", metavar="NAME", help="The dimension.")]
Member = Annotated[str, typer.Argument(metavar="MEMBER", help="A client, a policy or a scope.")]
InScope = Annotated[str, typer.Argument(metavar="MEMBER", help="The scope that is in the other.")]
OfScope = Annotated[str, typer.Argument(metavar="SCOPE", help="The scope.")]
Who = Annotated[str, typer.Argument(metavar="WHO", help="A client or a policy.")]
Rights = Annotated[list[RightTo], typer.Argument(metavar="RIGHT...", help=", ".join(RightTo) + ".")]
OnScopes = Annotated[
    list[str] | None,
    typer.Option(
        "--scope", metavar="SCOPE", help="Only in this scope and all below it; repeatable.", show_default=False
    ),
]


def _filter_option(name: str, text: str) -> Any:
    return typer.Option(name, metavar="FILTER", help=text, show_default=False)


# ── what is asked for ──


def join(member: Member, scope: OfScope, dimension: In) -> Any:
    """Let a client, a policy or a scope be directly in a scope.

    That takes `admin` on the scope that is joined, and on a scope that joins.

    \b
    Examples:
      situ scopes join press-7 line-a -d membership
      situ scopes join press-7 line-a -d membership --credentials site-admin.creds
    """
    from situ.scopes.operations import JoinScope

    return JoinScope(member=member, scope=scope, dimension=dimension)


def leave(member: Member, scope: OfScope, dimension: In) -> Any:
    """Let a client, a policy or a scope be directly in a scope no more.

    Advertisements and subscriptions that name the scope are suspended with that, and stay so until they are declared
    anew. A client may leave by itself.

    \b
    Examples:
      situ scopes leave press-7 line-a -d membership --reason "sold"
    """
    from situ.scopes.operations import LeaveScope

    return LeaveScope(member=member, scope=scope, dimension=dimension)


def put(
    scope: OfScope,
    dimension: In,
    containers: Annotated[
        list[str] | None,
        typer.Option("--in", metavar="SCOPE", help="A scope that it is in; repeatable.", show_default=False),
    ] = None,
    out: Annotated[str, _filter_option("--output", "What lets events out.")] = "",
    entry: Annotated[str, _filter_option("--input", "What lets events in.")] = "",
    zones: Annotated[
        list[str] | None,
        typer.Option(
            "--carrier", metavar="ZONE", help="A zone that may hold its events; repeatable.", show_default=False
        ),
    ] = None,
) -> Any:
    """Let a scope be there, and be exactly this: what is not said it has not.

    \b
    Examples:
      situ scopes put line-b -d membership --in operations --output "type IS Alarm"
    """
    from situ.scopes.operations import PutScope

    return PutScope(
        dimension=dimension,
        scope=scope,
        containers=tuple(containers or ()),
        output=out or None,
        input=entry or None,
        carriers=tuple(zones) if zones else None,
    )


def drop(scope: OfScope, dimension: In) -> Any:
    """Take a scope away that has no members.

    \b
    Examples:
      situ scopes drop line-b -d membership
    """
    from situ.scopes.operations import DropScope

    return DropScope(dimension=dimension, scope=scope)


def set_filter(
    scope: OfScope,
    side: Annotated[Literal["output", "input"], typer.Argument(metavar="SIDE", help="output or input.")],
    dimension: In,
    text: Annotated[
        str, typer.Argument(metavar="FILTER", help="A condition that an event must meet to pass.", show_default=False)
    ] = "",
) -> Any:
    """Set the filter at one side of a scope; without FILTER everything passes there.

    \b
    Examples:
      situ scopes filter line-a output "NOT (type IS CycleCount)" -d membership
      situ scopes filter line-a output -d membership
    """
    from situ.scopes.operations import SetFilter

    return SetFilter(dimension=dimension, scope=scope, side=side, text=text or None)


def link(
    member: InScope,
    scope: OfScope,
    dimension: In,
    up: Annotated[str, _filter_option("--up", "What lets events into SCOPE.")] = "",
    down: Annotated[str, _filter_option("--down", "What lets events into MEMBER.")] = "",
) -> Any:
    """Set what one membership asks for beside the filters of the scopes; what is not said is asked no more.

    \b
    Examples:
      situ scopes link line-a maintenance --up "machine_class = 'press'" -d membership
    """
    from situ.scopes.operations import SetLink

    return SetLink(dimension=dimension, member=member, scope=scope, up=up or None, down=down or None)


def carriers(
    scope: OfScope,
    dimension: In,
    zones: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ZONE...",
            help="Zones that may hold its events; none: those of the scopes that it is in.",
            show_default=False,
        ),
    ] = None,
) -> Any:
    """Set the zones that may hold the events of a scope.

    \b
    Examples:
      situ scopes carriers lyon zone-lyon zone-paris -d geography
    """
    from situ.scopes.operations import SetCarriers

    return SetCarriers(dimension=dimension, scope=scope, carriers=tuple(zones) if zones else None)


def mode(
    dimension: Annotated[str, typer.Argument(metavar="DIMENSION", help="The dimension.")],
    to: Annotated[Literal["open", "closed"], typer.Argument(metavar="MODE", help="open or closed.")],
) -> Any:
    """Open or close a dimension. In a closed one who says nothing sees nothing.

    \b
    Examples:
      situ scopes mode membership closed
    """
    from situ.scopes.operations import SetMode

    return SetMode(dimension=dimension, closed=to == "closed")


def grant(who: Who, rights: Rights, dimension: In, scopes: OnScopes = None) -> Any:
    """Give somebody rights in a dimension, or in some of its scopes and all below them.

    \b
    Examples:
      situ scopes grant safety-office observe -d membership
      situ scopes grant site-admin admin -d membership --scope plant-lyon
    """
    from situ.scopes.operations import GrantRights

    return GrantRights(grant=_grant(who, dimension, rights, scopes))


def revoke(who: Who, rights: Rights, dimension: In, scopes: OnScopes = None) -> Any:
    """Take rights back that somebody has by a grant on exactly these scopes, or on the whole dimension.

    Declarations that needed them are suspended with that.

    \b
    Examples:
      situ scopes revoke safety-office observe -d membership
    """
    from situ.scopes.operations import RevokeRights

    return RevokeRights(grant=_grant(who, dimension, rights, scopes))


def _grant(who: str, dimension: str, rights: list[RightTo], scopes: list[str] | None) -> Grant:
    from situ.scopes.graph import RIGHTS, Grant

    return Grant(
        to=who,
        dimension=dimension,
        may=tuple(right for right in RIGHTS if right in rights),
        scopes=tuple(scopes or ()),
    )


# ── where, as whom, for which epoch ──


@dataclass(frozen=True, slots=True)
class ScopeRequest:
    project: Path | None
    epoch: int | None
    reason: str
    client: str
    credentials: Path | None
    server: str
    dry_run: bool


def _carry_out(
    output: Output,
    project: Path | None,
    operation: Any,
    epoch: Annotated[
        int | None,
        typer.Option("--epoch", metavar="N", help="Only if this epoch is still in force.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why, for the history.", show_default=False)] = "",
    client: Annotated[
        str, typer.Option("--client", metavar="NAME", help="With the rights of this client.", show_default=False)
    ] = "",
    credentials: Credentials = None,
    server: Server = "",
) -> Exit:
    from situ.cli.render.registry import show_difference
    from situ.cli.scope_changes import change_as_client, change_as_operator

    asked = ScopeRequest(project, epoch, reason, client, credentials, server, dry_run)
    if dry_run and (client or credentials is not None):
        raise typer.BadParameter("only who has the project folder can look ahead", param_hint="'--dry-run'")
    done = (change_as_client if client or credentials is not None else change_as_operator)(operation, asked)
    if output.json:
        output.data(done.as_json())
        return Exit.DONE
    if not output.quiet:
        output.show(show_difference(done.changes, summary=False))
    output.say(str(done))
    output.warn(done.problems)
    return Exit.DONE


def command_of(operation: Callable[..., Any]) -> Callable[..., Exit]:
    """The command that has an operation carried out: its own arguments, then those that all of them have."""
    own, shared = (dict(inspect.signature(each).parameters) for each in (operation, _carry_out))
    first = {name: shared.pop(name) for name in ("output", "project", "operation")}

    def command(output: Output, project: Path | None, **given: Any) -> Exit:
        asked = operation(**{name: given.pop(name) for name in own})
        return _carry_out(output, project, asked, **given)

    parameters = (first["output"], first["project"], *own.values(), *shared.values())
    command.__doc__, command.__name__ = operation.__doc__, operation.__name__
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    )
    command.__annotations__ = {**_carry_out.__annotations__, **operation.__annotations__}
    return common_options(command)


# ── what was done ──


@common_options
def history(
    output: Output,
    project: Path | None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most this many, newest first.")] = 100,
) -> Exit:
    """Show every change of the scopes: when, by whom, what is different since, and what was suspended with it.

    \b
    Examples:
      situ scopes history
      situ scopes history --json | jq '.[0].changes'
    """
    from situ.cli.registry import registry_of

    with registry_of(project) as registered:
        found = registered.registry.epochs(limit)
    if not found:
        output.note("There never were scopes.")

    def shown() -> Any:
        from situ.cli.render.registry import show_epochs

        return show_epochs(found)

    output.answer(lambda: [each.as_json() for each in found], shown)
    return Exit.DONE


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The group ``situ scopes``, which alone draws who is in what.

app = group(
    "scopes",
    """Draw scopes: what is in what, the filters at their boundaries, and the clients in them.

    Edges go from a scope up to what it is in. A scope that is in several is shown below each of them, and what is in it
    below the first. While the project runs its scopes are drawn as they are in force.

    \b
    Examples:
      situ scopes
      situ scopes --dimension membership --svg membership.svg
      situ scopes join press-7 line-a --dimension membership
    """,
)


@app.callback(invoke_without_command=True)
@common_options
def scopes(
    output: Output,
    project: Path | None,
    context: typer.Context,
    dimension: Annotated[
        str, typer.Option("--dimension", "-d", metavar="NAME", help="Only this one.", show_default=False)
    ] = "",
    svg: Annotated[
        str, typer.Option("--svg", metavar="FILE", help="Draw them into this file, too.", show_default=False)
    ] = "",
) -> Exit:
    """Its help is the one above."""
    import asyncio
    from pathlib import Path

    from situ.cli.arguments import write_new
    from situ.cli.project import deployment_in_force
    from situ.cli.render.scopes import draw_scopes
    from situ.scopes.json_form import scopes_as_json
    from situ.scopes.rights import unknown_dimension

    if context.invoked_subcommand is not None:
        return Exit.DONE
    deployment = asyncio.run(deployment_in_force(project, output))
    graph = deployment.scopes
    if dimension and dimension not in graph.dimensions:
        raise CommandError(Exit.NO, unknown_dimension(graph, dimension))
    wanted = (dimension,) if dimension else tuple(graph.dimensions)
    if svg:
        write_new(Path(svg), draw_scopes(graph, wanted), overwrite=True)

    def shown() -> Any:
        from situ.cli.render.scopes import show_scopes

        return show_scopes(graph, wanted)

    def data() -> dict[str, Any]:
        written = scopes_as_json(graph)
        epoch = {"epoch": deployment.epoch} if deployment.epoch else {}
        return {**epoch, **written, "dimensions": {name: written["dimensions"][name] for name in wanted}}

    output.answer(data, shown)
    if deployment.epoch:
        output.note(f"Epoch {deployment.epoch}, version {deployment.version}.")
    if svg:
        output.note(f"The scopes are drawn in {svg}.")
    return Exit.DONE


for _each in (join, leave, put, drop, link, carriers, mode, grant, revoke):
    app.command()(command_of(_each))
app.command("filter")(command_of(set_filter))
app.command()(history)
