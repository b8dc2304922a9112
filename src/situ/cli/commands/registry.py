"""What is in force: ``situ apply``, ``add``, ``alter``, ``remove``, ``suspend``, ``resume`` and ``get``."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import typer

from situ.cli.exits import CommandError, Exit
from situ.cli.options import common_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from situ.cli.output import Output
    from situ.cli.registry import Adoption
    from situ.model import Deployment
    from situ.policies.model import PolicyStart
    from situ.project.check import CheckedProject
    from situ.registry import Applied, Object, Recorded, Registry, Version


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ apply``: puts in force what the folder declares.

Reason = Annotated[str, typer.Option("--reason", help="Why, for the history of changes.", show_default=False)]
Propagate = Annotated[
    bool, typer.Option("--propagate", help="Let new rules of contexts take effect in those below, too.")
]
NoFork = Annotated[bool, typer.Option("--no-fork", help="Refuse changes of contexts in use, instead of forking them.")]

Since = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="WHEN",
        help="Start of a new policy, instead of now: begin, 1 h ago, 2026-11-01T08:30:00Z.",
        show_default=False,
    ),
]
Act = Annotated[bool, typer.Option("--act", help="With --from: do actions for past situations, too.")]


@common_options
def apply(
    output: Output,
    project: Path | None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    propagate: Propagate = False,
    no_fork: NoFork = False,
    since: Since = "",
    act: Act = False,
    reason: Reason = "",
) -> Exit:
    """Put what the project declares in force.

    Shows what changes, stores it as a new version, and hands it to the run that is active; returns when its engines
    work with it, after 10 s at the latest. What clients and `situ add` declared stays. If one thing is wrong, nothing
    changes. A context that somebody uses gets what is new only if he does not notice; else a fork of it does.

    \b
    Examples:
      situ apply --dry-run
      situ apply --reason "more rooms"
      situ apply --from '1 h ago'
    """
    from situ.bus.address import settings_of_run
    from situ.cli.project import locate_project
    from situ.cli.registry import OpenRegistry, refused_as_error, roll_out
    from situ.contexts.compatibility import ChangeOptions
    from situ.project.apply import apply_folder
    from situ.project.check import check_folder
    from situ.project.state_folder import note_applied
    from situ.registry import current_user, open_registry

    allowed = ChangeOptions(propagate=propagate, fork=not no_fork)
    start = read_start(since, act=act)
    path = locate_project(project)
    checked = check_folder(path)
    deployment = _sound(checked, output)
    with refused_as_error(), open_registry(path, deployment.settings) as registry:
        if dry_run:
            planned = registry.plan(deployment, allowed)
            _show_changes(output, planned.version, planned)
            return stop_for(output, planned)
        who = current_user()
        applied = apply_folder(path, deployment, registry, who=who, reason=reason, allowed=allowed, start=start)
        if not any(problem.is_error for problem in applied.problems):
            note_applied(path, checked.digests)
        registered = OpenRegistry(path=path, settings=settings_of_run(path) or deployment.settings, registry=registry)
        # Also if nothing changed: whoever applied it before may have been stopped before the engines got it.
        effect = roll_out(registered, applied.deployment)
    _show_applied(output, applied, effect)
    return stop_for(output, applied)


def read_start(since: str, *, act: bool) -> PolicyStart | None:
    """Where new policies start, as options say it; None: with what comes from now on."""
    from situ.cli.arguments import read_moment
    from situ.event.instants import microseconds
    from situ.policies.model import PolicyStart

    if since:
        return PolicyStart(at=max(microseconds(read_moment(since, "--from")), 0), acts=act)
    if act:
        raise typer.BadParameter("only with --from there is something from before.", param_hint="'--act'")
    return None


def stop_for(output: Output, applied: Applied) -> Exit:
    """Say what was put in; and what is not in force although the rest is, which is an error."""
    errors = [problem for problem in applied.problems if problem.is_error]
    if not output.json and not output.quiet:
        output.warn([problem for problem in applied.problems if not problem.is_error])
    if errors and not output.json:
        raise CommandError(Exit.REFUSED, *errors)
    return Exit.REFUSED if errors else Exit.DONE


def _show_changes(output: Output, version: int, applied: Applied) -> None:
    from situ.cli.render.registry import show_difference

    output.answer(
        lambda: {
            "version": version,
            "changes": [change.as_json() for change in applied.changes],
            "problems": [problem.as_json() for problem in applied.problems],
        },
        lambda: show_difference(applied.changes, summary=not output.quiet),
    )


def _show_applied(output: Output, applied: Applied, effect: Adoption) -> None:
    from situ.cli.registry import show_adoption

    if output.json:
        changes = [change.as_json() for change in applied.changes]
        problems = [problem.as_json() for problem in applied.problems]
        output.data({"version": applied.version, "changes": changes, "problems": problems, "effect": effect.as_json()})
    elif applied.changes:
        _show_changes(output, applied.version, applied)
        show_adoption(output, effect)
    else:
        output.say(f"Nothing to apply: version {applied.version} is what the folder declares, {effect}.")
        output.warn(effect.problems)


def _sound(checked: CheckedProject, output: Output) -> Deployment:
    """The deployment of a folder without errors, its warnings shown."""
    from situ.cli.project import relative_to_here
    from situ.lang.problems import Severity

    if checked.deployment is None:
        raise CommandError(Exit.REFUSED, *relative_to_here(checked.errors, checked.path))
    warnings = tuple(problem for problem in checked.problems if problem.severity is Severity.WARNING)
    if not output.json and not output.quiet:
        output.warn(relative_to_here(warnings, checked.path))
    return checked.deployment


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ add``, ``alter``, ``remove``, ``suspend`` and ``resume``: single things, changed while events flow.

if TYPE_CHECKING:
    from situ.cli.output import Output
    from situ.contexts.compatibility import ChangeOptions
    from situ.lang.documents import Document
    from situ.model.kinds import Kind as Of
    from situ.policies.model import PolicyStart
    from situ.registry import Applied, Registry

    class Put(Protocol):
        def __call__(
            self, kind: Of, name: str, document: Document, *, who: str, reason: str, allowed: ChangeOptions
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
Durable = Annotated[bool, typer.Option("--durable", help="Of a subscription: keep events while its reader is away.")]
OfType = Annotated[str, typer.Option("--type", help="Of an advertisement: the event type.", show_default=False)]
As = Annotated[str, typer.Option("--as", metavar="TEXT", help="Of a function or a unit: its definition.")]


def _putting(
    put: Callable[[Registry, PolicyStart | None], Put], about: str, *, goes_on: bool = False
) -> Callable[..., Exit]:
    """A command that says what a thing is; ``about`` is its help. ``goes_on``: the thing has begun already."""

    @common_options
    def command(
        output: Output,
        project: Path | None,
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
    ) -> Exit:
        start = _start(kind, since, act, goes_on)
        document = _document(kind, name, file, _body(kind, types, where, durable, of_type, as_text))
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


@common_options
def remove(
    output: Output,
    project: Path | None,
    kind: Kind,
    name: Name,
    reason: Reason = "",
) -> Exit:
    """Take out one thing that `situ add` made, or that a client left behind.

    What others still need cannot go; all that need it are named.

    \b
    Examples:
      situ remove subscription desk/hot
    """
    return _change(output, project, lambda registry, who: registry.remove(kind.value, name, who=who, reason=reason))


Policies = Annotated[Literal["policy"], typer.Argument(metavar="KIND", help="policy.")]


@common_options
def suspend(
    output: Output,
    project: Path | None,
    kind: Policies,
    name: Name,
    reason: Reason = "",
) -> Exit:
    """Let a policy rest until `situ resume`.

    It stays declared, whoever declared it, and `situ apply` does not wake it. Its situations are closed.

    \b
    Examples:
      situ suspend policy unaccompanied-guest --reason "open day"
    """
    return _change(output, project, lambda registry, who: registry.suspend(name, who=who, reason=reason))


@common_options
def resume(
    output: Output,
    project: Path | None,
    kind: Policies,
    name: Name,
    reason: Reason = "",
) -> Exit:
    """Let a policy that was suspended run again, from now on.

    \b
    Examples:
      situ resume policy unaccompanied-guest
    """
    return _change(output, project, lambda registry, who: registry.resume(name, who=who, reason=reason))


def _change(output: Output, project: Path | None, change: Callable[[Registry, str], Applied]) -> Exit:
    from situ.cli.registry import refused_as_error, registry_of, roll_out, show_adoption
    from situ.cli.render.registry import show_difference
    from situ.lang.problems import SituError
    from situ.registry import current_user
    from situ.registry.object_files import placed

    with refused_as_error(), registry_of(project) as registered:
        try:
            applied = change(registered.registry, current_user())
        except SituError as error:
            raise SituError(*map(placed, error.problems)) from error
        effect = roll_out(registered, applied.deployment)
    if output.json:
        changes = [each.as_json() for each in applied.changes]
        problems = [problem.as_json() for problem in applied.problems]
        output.data({"version": applied.version, "changes": changes, "problems": problems, "effect": effect.as_json()})
        return stop_for(output, applied)
    if not output.quiet:
        output.show(show_difference(applied.changes, summary=not applied.changes))
    show_adoption(output, effect)
    return stop_for(output, applied)


def _start(kind: Thing, since: str, act: bool, goes_on: bool) -> PolicyStart | None:
    if since and kind is not Thing.POLICY:
        raise typer.BadParameter(f"{kind} has no beginning in the log; a policy has.", param_hint="'--from'")
    if since and goes_on:
        raise typer.BadParameter("an altered policy goes on from where it is.", param_hint="'--from'")
    return read_start(since, act=act)


def _allowed(propagate: bool, no_fork: bool) -> ChangeOptions:
    from situ.contexts.compatibility import ChangeOptions

    return ChangeOptions(propagate=propagate, fork=not no_fork)


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
    from situ.policies.language.parse import parse_policy
    from situ.registry.object_files import policy_document

    parse_policy(data, file)
    return policy_document(name, data.decode("utf-8"), file)


def _document(kind: Thing, name: str, file: str, body: dict[str, Any] | str | None) -> Document:
    from situ.cli.arguments import STDIN, read_file
    from situ.lang.documents import parse_json, parse_yaml
    from situ.registry import Key
    from situ.registry.object_files import client_document

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ get``: what is in force, since when, and who changed it.

_MOST = 1000


@common_options
def get(
    output: Output,
    project: Path | None,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="policy, action, opposed, concept, relationship, measure, group, container, push, source, context, "
            "subscription, advertisement, client, function, event, type, unit, settings; versions or changes.",
        ),
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="One object, in full.", show_default=False)] = "",
) -> Exit:
    """Show what is in force.

    Without NAME a table; with it the thing itself, as a file of the project would declare it. Origins are `folder`
    (`situ apply`), `client` (declared by a client that runs) and `api` (`situ add`). What is suspended is declared and
    not in force: its client lost its right to the scopes that it names.

    \b
    Examples:
      situ get subscriptions
      situ get subscription desk/hot > hot.yaml
      situ get versions
      situ get version 3 --json
      situ get changes
    """
    from situ.cli.project import find_run
    from situ.cli.registry import read_kind, registry_of
    from situ.lang.catalogue import NOT_A_CHOICE
    from situ.lang.problems import nearest
    from situ.registry import KINDS

    known = read_kind(kind)
    others = {"version": _versions, "versions": _versions, "change": _changes, "changes": _changes}
    if known is None and kind not in others:
        choices = (*KINDS, "versions", "changes")
        raise CommandError(
            Exit.USAGE, NOT_A_CHOICE(found=f"The kind `{kind}`", nearest=nearest(kind, choices), choices=choices)
        )
    find_run(project, output)  # for what it says about the folder
    with registry_of(project) as registered:
        registry = registered.registry
        if known is None:
            others[kind](output, registry, name)
        elif name:
            suspended = [each for each in registry.suspended(known) if each.name == name]
            _one(output, registry, suspended[0] if suspended else registry.find(known, name))
        else:
            _all(output, (*registry.objects(known), *registry.suspended(known)))
        if known == "policy":
            _resting(output, registry, name)
    return Exit.DONE


def _one(output: Output, registry: Registry, each: Object) -> None:
    from situ.registry.object_files import as_yaml

    if output.json:
        output.data({**_described(each), "text": each.text, "body": each.value})
        return
    output.text(as_yaml(each, registry.current()))
    place = f" · {each.file}" if each.file else ""
    suspended = " · suspended: its client has no right to it any more" if each.suspended else ""
    output.note(f"# version {each.version} · {each.origin}{place}{suspended}")


def _resting(output: Output, registry: Registry, name: str) -> None:
    """Which of the policies do not run, and why; which began before they were added."""
    from situ.event.instants import print_instant

    deployment = registry.current()
    for each, stopped in deployment.stopped.items():
        if name in ("", each):
            output.note(f"# {each} is stopped, it does not fit what is declared now: {stopped.reasons[0].message}")
    for each in sorted(deployment.suspended):
        if name in ("", each):
            output.note(f"# {each} is suspended; `situ resume policy {each}` lets it run again")
    for each, start in deployment.starts.items():
        if name in ("", each):
            output.note(f"# {each} was added with what happened since {print_instant(start.at)}")


def _all(output: Output, objects: Sequence[Object]) -> None:
    from situ.cli.render.registry import show_objects

    if not objects:
        output.note("There is none.")
    output.answer(
        lambda: [{**_described(each), "body": each.value} for each in objects],
        lambda: show_objects(objects),
    )


def _versions(output: Output, registry: Registry, name: str) -> None:
    from situ.cli.render.registry import show_versions

    if name:
        output.data(registry.at(_number(name)).as_json())
        return
    found: tuple[Version, ...] = registry.versions(_MOST)
    output.answer(
        lambda: [{"version": each.version, "digest": each.digest, "at": each.at.isoformat()} for each in found],
        lambda: show_versions(found),
    )


def _changes(output: Output, registry: Registry, name: str) -> None:
    from situ.cli.render.registry import show_changes

    wanted = _number(name) if name else None
    found = [each for each in registry.changes(_MOST) if wanted in (None, each.deployment)]
    output.answer(lambda: [_recorded(each) for each in found], lambda: show_changes(found))


def _number(text: str) -> int:
    if not text.isdecimal():
        raise typer.BadParameter(f"{text!r} is no version; write a number.", param_hint="NAME")
    return int(text)


def _described(each: Object) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "name": each.name,
        "version": each.version,
        "origin": each.origin,
        "state": "suspended" if each.suspended else "active",
        "file": each.file or None,
    }


def _recorded(each: Recorded) -> dict[str, Any]:
    return {
        "at": each.at.isoformat(),
        "who": each.who,
        "deployment": each.deployment,
        "kind": each.key.kind,
        "name": each.key.name,
        "from": each.before,
        "to": each.after,
        "state": each.state,
        "reason": each.reason,
    }
