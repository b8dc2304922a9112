"""``situ add``, ``situ alter`` and ``situ remove``: single things, changed while everything runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import typer

from situ.cli.apply import Act, NoFork, Propagate, Reason, Since, read_start, stop_for
from situ.cli.exits import Exit
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from situ.cli.output import Output
    from situ.documents import Document
    from situ.interpretation.changing import Allowed
    from situ.registry import Applied, Registry
    from situ.registry.objects import Kind as Of
    from situ.situation.policies.start import Start

    class Put(Protocol):
        def __call__(
            self, kind: Of, name: str, document: Document, *, who: str, reason: str, allowed: Allowed
        ) -> Applied: ...


class Thing(StrEnum):
    """What can be changed alone."""

    SUBSCRIPTION = "subscription"
    ADVERTISEMENT = "advertisement"
    CLIENT = "client"
    FUNCTION = "function"
    SOURCE = "source"
    PUSH = "push"
    CONCEPT = "concept"
    GROUP = "group"
    CONTAINER = "container"
    RELATIONSHIP = "relationship"
    MEASURE = "measure"
    ACTION = "action"
    POLICY = "policy"
    CONTEXT = "context"
    EVENT = "event"
    TYPE = "type"
    UNIT = "unit"


Kind = Annotated[Thing, typer.Argument(metavar="KIND", help=", ".join(Thing) + ".")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name; `client/name` for what clients declare.")]
File = Annotated[
    str,
    typer.Option(
        "--file",
        metavar="FILE",
        help="A document that declares it as a file of the project would; - is standard input.",
        show_default=False,
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option("--types", metavar="TYPE,…", help="Of a subscription: the event types.", show_default=False),
]
Where = Annotated[str, typer.Option("--where", metavar="FILTER", help="Of a subscription.", show_default=False)]
Durable = Annotated[bool, typer.Option("--durable", help="Of a subscription: keep events while it is away.")]
OfType = Annotated[str, typer.Option("--type", help="Of an advertisement: the event type.", show_default=False)]
As = Annotated[str, typer.Option("--as", metavar="TEXT", help="Of a function or a unit: what stands behind its name.")]


def _putting(put: Callable[[Registry, Start | None], Put], about: str, *, goes_on: bool = False) -> Callable[..., Exit]:
    """A command that says what a thing is; ``about`` is its help. ``goes_on``: the thing has begun already."""

    def command(
        context: typer.Context,
        kind: Kind,
        name: Name,
        file: File = "",
        types: Types = None,
        where: Where = "",
        durable: Durable = False,
        of_type: OfType = "",
        as_text: As = "",
        propagate: Propagate = False,
        no_fork: NoFork = False,
        since: Since = "",
        act: Act = False,
        reason: Reason = "",
        project: Project = None,
        as_json: Json = False,
        quiet: Quiet = False,
    ) -> Exit:
        start = _start(kind, since, act, goes_on)
        document = _document(kind, name, file, _body(kind, types, where, durable, of_type, as_text))
        output = begin(context, json=as_json, quiet=quiet)
        allowed = _allowed(propagate, no_fork)
        return _change(
            output,
            project,
            lambda registry, who: put(registry, start)(
                kind.value, name, document, who=who, reason=reason, allowed=allowed
            ),
        )

    command.__doc__ = about
    return command


add = _putting(
    lambda registry, start: partial(registry.add, start=start),
    """Add one thing to what is in force.

    It is checked as in the project's files, where it can be written down later: the folder then takes it over.

    \b
    Examples:
      situ add subscription desk/hot --types Reading --where "temperature > 30 °C" --durable
      situ add function warm --as "(t: double °C) -> boolean = t > 25 °C"
      situ add event Alarm --file alarm.yaml
      situ add policy alone --file alone.dpl
      situ add policy alone --file alone.dpl --from '1 h ago'
    """,
)

alter = _putting(
    lambda registry, start: registry.alter,
    """Put another thing of the same name in the place of one that `situ add` made.

    What is given is the whole of it, not what differs. What the folder declares is changed there.

    \b
    Examples:
      situ alter subscription desk/hot --types Reading --where "temperature > 35 °C" --durable
      situ get event Alarm > alarm.yaml    and, after editing,
      situ alter event Alarm --file alarm.yaml
    """,
    goes_on=True,
)


def remove(
    context: typer.Context,
    kind: Kind,
    name: Name,
    reason: Reason = "",
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Take out one thing that `situ add` made, or that a client left behind.

    What others still need cannot go; all that need it are named.

    \b
    Examples:
      situ remove subscription desk/hot
    """
    output = begin(context, json=as_json, quiet=quiet)
    return _change(output, project, lambda registry, who: registry.remove(kind.value, name, who=who, reason=reason))


Policies = Annotated[Literal["policy"], typer.Argument(metavar="KIND", help="policy.")]


def suspend(
    context: typer.Context,
    kind: Policies,
    name: Name,
    reason: Reason = "",
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Let a policy rest until `situ resume`.

    It stays declared, whoever declared it, and `situ apply` does not wake it. Its situations are closed.

    \b
    Examples:
      situ suspend policy unaccompanied-guest --reason "open day"
    """
    output = begin(context, json=as_json, quiet=quiet)
    return _change(output, project, lambda registry, who: registry.suspend(name, who=who, reason=reason))


def resume(
    context: typer.Context,
    kind: Policies,
    name: Name,
    reason: Reason = "",
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Let a policy that was suspended run again, from now on.

    \b
    Examples:
      situ resume policy unaccompanied-guest
    """
    output = begin(context, json=as_json, quiet=quiet)
    return _change(output, project, lambda registry, who: registry.resume(name, who=who, reason=reason))


def _change(output: Output, project: Path | None, change: Callable[[Registry, str], Applied]) -> Exit:
    from situ.cli.effective import bring_into_force, show_effect
    from situ.cli.registered import refusing, registry_of
    from situ.cli.show_difference import show_difference
    from situ.errors import SituError
    from situ.registry import current_user
    from situ.registry.written import placed

    with refusing(), registry_of(project) as registered:
        try:
            applied = change(registered.registry, current_user())
        except SituError as error:
            raise SituError(*map(placed, error.problems)) from error
        effect = bring_into_force(registered, applied.deployment)
    if output.json:
        changes = [each.as_json() for each in applied.changes]
        problems = [problem.as_json() for problem in applied.problems]
        output.data({"version": applied.version, "changes": changes, "problems": problems, "effect": effect.as_json()})
        return stop_for(output, applied)
    if not output.quiet:
        output.show(show_difference(applied.changes, summary=not applied.changes))
    show_effect(output, effect)
    return stop_for(output, applied)


def _start(kind: Thing, since: str, act: bool, goes_on: bool) -> Start | None:
    if since and kind is not Thing.POLICY:
        raise typer.BadParameter(f"{kind} has no beginning in the log; a policy has.", param_hint="'--from'")
    if since and goes_on:
        raise typer.BadParameter("an altered policy goes on from where it is.", param_hint="'--from'")
    return read_start(since, act=act)


def _allowed(propagate: bool, no_fork: bool) -> Allowed:
    from situ.interpretation.changing import Allowed

    return Allowed(propagate=propagate, fork=not no_fork)


def _body(
    kind: Thing, types: list[str] | None, where: str, durable: bool, of_type: str, as_text: str
) -> dict[str, Any] | str | None:
    """The body that the options make; None if they make none."""
    given = {"--types": types, "--where": where, "--durable": durable, "--type": of_type, "--as": as_text}
    belonging = {
        Thing.SUBSCRIPTION: ("--types", "--where", "--durable"),
        Thing.ADVERTISEMENT: ("--type",),
        Thing.FUNCTION: ("--as",),
        Thing.UNIT: ("--as",),
    }.get(kind, ())
    if stray := [option for option, value in given.items() if value and option not in belonging]:
        raise typer.BadParameter(f"{stray[0]} does not go with {kind}.", param_hint="KIND")
    if not any(given.values()):
        return {} if kind is Thing.CLIENT else None
    if kind is Thing.SUBSCRIPTION:
        names = [name.strip() for each in types or () for name in each.split(",")]
        body: dict[str, Any] = {"types": names}
        if where:
            body["where"] = where
        return {**body, "durable": True} if durable else body
    return {"type": of_type} if kind is Thing.ADVERTISEMENT else as_text


def _policy(name: str, data: bytes, file: str) -> Document:
    """A file of a policy as a document; one that is no policy is refused with its own places."""
    from situ.registry.written import policy_document
    from situ.situation.language.parse import parse_policy

    parse_policy(data, file)
    return policy_document(name, data.decode("utf-8"), file)


def _document(kind: Thing, name: str, file: str, body: dict[str, Any] | str | None) -> Document:
    from situ.cli.files import STDIN, read_file
    from situ.documents import parse_json, parse_yaml
    from situ.registry import Key
    from situ.registry.written import client_document

    if file:
        if body:
            raise typer.BadParameter("a file says all of it; leave the other options out.", param_hint="--file")
        place = "standard input" if file == STDIN else file
        if kind is Thing.POLICY:
            return _policy(name, read_file(file), place)
        return parse_yaml(read_file(file), place)
    if body is None:
        raise typer.BadParameter("say what it is, with --file or with the options for this kind.", param_hint="NAME")
    if isinstance(body, str):
        return parse_json(json.dumps({f"{kind}s": {name: body}}, ensure_ascii=False), f"{kind} {name}")
    return client_document(Key(kind.value, name), body)
