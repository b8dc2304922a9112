"""``situ get``: what is in force, since when, and who changed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit, Stop
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from situ.cli.output import Output
    from situ.registry import Object, Recorded, Registry, Version

_MOST = 1000


def get(
    context: typer.Context,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="policy, action, opposed, concept, relationship, measure, group, container, push, source, context, "
            "subscription, advertisement, client, function, event, type, unit, settings; versions or changes.",
        ),
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of them, in full.", show_default=False)] = "",
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
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
    from situ.catalogue import NOT_A_CHOICE
    from situ.cli.in_force import find_run
    from situ.cli.registered import read_kind, registry_of
    from situ.errors import nearest
    from situ.registry import KINDS

    output = begin(context, json=as_json, quiet=quiet)
    known = read_kind(kind)
    others = {"version": _versions, "versions": _versions, "change": _changes, "changes": _changes}
    if known is None and kind not in others:
        choices = (*KINDS, "versions", "changes")
        raise Stop(
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
    from situ.registry.written import as_yaml

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
    from situ.cli.show_registry import show_objects

    if not objects:
        output.note("There is none.")
    output.answer(
        lambda: [{**_described(each), "body": each.value} for each in objects],
        lambda: show_objects(objects),
    )


def _versions(output: Output, registry: Registry, name: str) -> None:
    from situ.cli.show_registry import show_versions

    if name:
        output.data(registry.at(_number(name)).as_json())
        return
    found: tuple[Version, ...] = registry.versions(_MOST)
    output.answer(
        lambda: [{"version": each.version, "digest": each.digest, "at": each.at.isoformat()} for each in found],
        lambda: show_versions(found),
    )


def _changes(output: Output, registry: Registry, name: str) -> None:
    from situ.cli.show_registry import show_changes

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
