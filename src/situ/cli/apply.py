"""``situ apply``: what the folder declares, in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from situ.cli.exits import Exit, Stop
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from situ.cli.effective import Effect
    from situ.cli.output import Output
    from situ.deployment import Deployment
    from situ.project.check import Checked
    from situ.registry import Applied
    from situ.situation.policies.start import Start

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
        help="Where a new policy starts, if not now: begin, 1 h ago, 2026-11-01T08:30:00Z.",
        show_default=False,
    ),
]
Act = Annotated[
    bool, typer.Option("--act", help="With --from: do the actions, too, for what happened before the policy came.")
]


def apply(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    propagate: Propagate = False,
    no_fork: NoFork = False,
    since: Since = "",
    act: Act = False,
    reason: Reason = "",
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
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
    from situ.cli.effective import bring_into_force
    from situ.cli.opened import locate_project
    from situ.cli.registered import Registered, refusing
    from situ.interpretation.changing import Allowed
    from situ.project.apply import apply_folder
    from situ.project.check import check_folder
    from situ.project.drift import note_applied
    from situ.registry import current_user, open_registry

    output = begin(context, json=as_json, quiet=quiet)
    allowed = Allowed(propagate=propagate, fork=not no_fork)
    start = read_start(since, act=act)
    path = locate_project(project)
    checked = check_folder(path)
    deployment = _sound(checked, output)
    with refusing(), open_registry(path, deployment.settings) as registry:
        if dry_run:
            planned = registry.plan(deployment, allowed)
            _show_changes(output, planned.version, planned)
            return stop_for(output, planned)
        who = current_user()
        applied = apply_folder(path, deployment, registry, who=who, reason=reason, allowed=allowed, start=start)
        if not any(problem.is_error for problem in applied.problems):
            note_applied(path, checked.digests)
        registered = Registered(path=path, settings=settings_of_run(path) or deployment.settings, registry=registry)
        # Also if nothing changed: whoever applied it before may have been stopped before the engines got it.
        effect = bring_into_force(registered, applied.deployment)
    _show_applied(output, applied, effect)
    return stop_for(output, applied)


def read_start(since: str, *, act: bool) -> Start | None:
    """Where new policies start, as options say it; None: with what comes from now on."""
    from situ.cli.moments import read_moment
    from situ.event.instants import microseconds
    from situ.situation.policies.start import Start

    if since:
        return Start(at=max(microseconds(read_moment(since, "--from")), 0), acts=act)
    if act:
        raise typer.BadParameter("only with --from there is something from before.", param_hint="'--act'")
    return None


def stop_for(output: Output, applied: Applied) -> Exit:
    """Say what was put in; and what is not in force although the rest is, which is an error."""
    errors = [problem for problem in applied.problems if problem.is_error]
    if not output.json and not output.quiet:
        output.warn([problem for problem in applied.problems if not problem.is_error])
    if errors and not output.json:
        raise Stop(Exit.REFUSED, *errors)
    return Exit.REFUSED if errors else Exit.DONE


def _show_changes(output: Output, version: int, applied: Applied) -> None:
    from situ.cli.show_difference import show_difference

    output.answer(
        lambda: {
            "version": version,
            "changes": [change.as_json() for change in applied.changes],
            "problems": [problem.as_json() for problem in applied.problems],
        },
        lambda: show_difference(applied.changes, summary=not output.quiet),
    )


def _show_applied(output: Output, applied: Applied, effect: Effect) -> None:
    from situ.cli.effective import show_effect

    if output.json:
        changes = [change.as_json() for change in applied.changes]
        problems = [problem.as_json() for problem in applied.problems]
        output.data({"version": applied.version, "changes": changes, "problems": problems, "effect": effect.as_json()})
    elif applied.changes:
        _show_changes(output, applied.version, applied)
        show_effect(output, effect)
    else:
        output.say(f"Nothing to apply: version {applied.version} is what the folder declares, {effect}.")
        output.warn(effect.problems)


def _sound(checked: Checked, output: Output) -> Deployment:
    """The deployment of a folder without errors, its warnings shown."""
    from situ.cli.opened import seen_from_here
    from situ.errors import Severity

    if checked.deployment is None:
        raise Stop(Exit.REFUSED, *seen_from_here(checked.errors, checked.path))
    warnings = tuple(problem for problem in checked.problems if problem.severity is Severity.WARNING)
    if not output.json and not output.quiet:
        output.warn(seen_from_here(warnings, checked.path))
    return checked.deployment
