"""``situ explain policy``, ``detection`` and ``miss``: what a policy means, why it detected something or did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import CommandError, Exit
from situ.cli.options import common_options

if TYPE_CHECKING:
    from pathlib import Path

    from situ.cli.output import Output
    from situ.explain.policy_match import ExplainedDetection, ExplainedMiss
    from situ.policies.model import Policy
    from situ.project.check import LoadedProject
    from situ.project.policy_tests import PolicyTestResult


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ explain policy``: what a policy means, and how it is detected.


def policy_completion(incomplete: str) -> list[str]:
    from situ.cli.project import open_project

    try:
        return [name for name in open_project(None).deployment.policies if name.startswith(incomplete)]
    except (CommandError, OSError):
        return []


@common_options
def explain_policy(
    output: Output,
    project: Path | None,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE", help="A policy of the project, or a file with one.", autocompletion=policy_completion
        ),
    ],
    svg: Annotated[str, typer.Option("--svg", metavar="FILE", help="Draw the logic tree into this file.")] = "",
) -> Exit:
    """Explain a policy: its text, its normal form, its logic tree, and the plan by which it is detected.

    While the project runs it is explained as it is in force. A file is explained as if it were part of that: what it
    shares with the policies there is shown, too.

    \b
    Examples:
      situ explain policy unaccompanied-guest
      situ explain policy new.dpl --svg tree.svg
    """
    import asyncio
    from pathlib import Path

    from situ.cli.arguments import read_file, write_new
    from situ.cli.project import deployment_in_force
    from situ.cli.render.policy import draw_tree, show_policy
    from situ.explain.policy import explain_policy, find_policy
    from situ.policies.load import read_policy

    deployment = asyncio.run(deployment_in_force(project, output))
    if _is_file(name):
        policy = read_policy(read_file(name), name, deployment.domain, deployment.policies)
    else:
        policy = find_policy(name, deployment)
    explained = explain_policy(policy, deployment.ontology, deployment.policies.values())
    if svg:
        write_new(Path(svg), draw_tree(explained.tree), overwrite=True)
    output.answer(explained.as_json, lambda: show_policy(explained))
    if svg:
        output.note(f"The logic tree is drawn in {svg}.")
    return Exit.DONE


def _is_file(name: str) -> bool:
    from situ.cli.arguments import STDIN

    return name == STDIN or "/" in name or name.endswith(".dpl")


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ explain detection`` and ``situ explain miss``.

Test = Annotated[
    str,
    typer.Option(
        "--test",
        metavar="NAME|FILE",
        help="Look at the events of this test instead of the log; nothing needs to run.",
        show_default=False,
    ),
]


@common_options
def explain_detection(
    output: Output,
    project: Path | None,
    id: Annotated[
        str, typer.Argument(metavar="ID", help="A detection or a situation; the beginning of its id is enough.")
    ],
    test: Test = "",
) -> Exit:
    """Explain a detection: whom it is about, what its events said, and how each clause of the policy was met.

    The events are those of the log, so the run is needed; tables and policies are taken as they are now.

    \b
    Examples:
      situ explain detection 29d4751f
      situ explain detection 29d4751f --test unaccompanied-guest
    """
    import asyncio

    from situ.cli.project import bus_of, find_run, open_project
    from situ.event.instants import print_instant
    from situ.explain import detection as matches
    from situ.explain.match_report import report_detection
    from situ.policies.policy_tests import moment
    from situ.registry.snapshots import fetch_deployment

    async def look() -> tuple[Policy, ExplainedDetection]:
        live = find_run(project, output)
        async with bus_of(live, "explain") as bus:
            return await matches.detected_in_log(bus, live.path, await fetch_deployment(bus), id)

    if test:
        opened = open_project(project)
        policy, why = matches.detected_in_test(opened, _tested(opened, test), id)
    else:
        policy, why = asyncio.run(look())
    explained = report_detection(policy, why, moment if test else print_instant)
    output.answer(explained.as_json, lambda: _shown(explained.text))
    return Exit.DONE


@common_options
def explain_miss(
    output: Output,
    project: Path | None,
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="The policy.", autocompletion=policy_completion)
    ],
    at: Annotated[
        str,
        typer.Option("--at", metavar="TIME", help="Around when: an instant, 10 min ago; in a test also 5 s."),
    ],
    bind: Annotated[
        list[str] | None,
        typer.Option("--bind", metavar="ALIAS=ID", help="The instance that an alias should have; may be repeated."),
    ] = None,
    test: Test = "",
) -> Exit:
    """Explain why a policy did not detect something: the nearest thing to it, and the clause that failed.

    What was detected is read from the log, and what the policy did not look at is named: events that were late for it,
    not visible to it, or dead letters. Ends with 1 if it was detected after all.

    \b
    Examples:
      situ explain miss --policy unaccompanied-guest --bind A=g2 --at '10 min ago'
      situ explain miss --policy unaccompanied-guest --bind A=g2 --at 5s --test unaccompanied-guest
    """
    import asyncio

    from situ.cli.project import bus_of, find_run, open_project
    from situ.event.instants import print_instant
    from situ.explain import detection as matches
    from situ.explain.match_report import report_miss
    from situ.policies.policy_tests import moment
    from situ.registry.snapshots import fetch_deployment

    bindings = _bindings(bind or [])
    time = _time(at, in_test=bool(test))

    async def look() -> tuple[Policy, ExplainedMiss]:
        live = find_run(project, output)
        async with bus_of(live, "explain") as bus:
            deployment = await fetch_deployment(bus)
            asked = matches.policy_of(deployment, policy)
            return asked, await matches.missed_in_log(bus, live.path, deployment, asked, bindings, time)

    if test:
        opened = open_project(project)
        asked = matches.policy_of(opened.deployment, policy)
        why = matches.missed_in_test(opened, _tested(opened, test), asked, bindings, time)
    else:
        asked, why = asyncio.run(look())
    explained = report_miss(asked, why, moment if test else print_instant)
    output.answer(explained.as_json, lambda: _shown(explained.text))
    return Exit.NO if why.detected else Exit.DONE


def _tested(opened: LoadedProject, name: str) -> PolicyTestResult:
    from situ.cli.project import find_named_tests
    from situ.project.policy_tests import run_tests

    # As a run would take the events: what is late, or not decided when the clock stops, is explained as such.
    [tested] = run_tests(opened, find_named_tests(opened, [name]), engine="edge")
    return tested


def _bindings(written: list[str]) -> dict[str, str]:
    found = {}
    for each in written:
        alias, equals, identity = each.partition("=")
        if not equals or not alias:
            raise typer.BadParameter(f"{each!r} is no ALIAS=ID", param_hint="'--bind'")
        found[alias.strip()] = identity.strip()
    return found


def _time(text: str, *, in_test: bool) -> int:
    from datetime import timedelta

    from situ.cli.arguments import read_duration, read_moment
    from situ.event.instants import microseconds
    from situ.policies.policy_tests import START

    if in_test and not text[:4].isdigit():
        return START + read_duration(text, "--at") // timedelta(microseconds=1)
    return microseconds(read_moment(text, "--at"))


def _shown(lines: tuple[str, ...]) -> Any:
    from rich.text import Text

    from situ.cli.output import visible

    for line in lines:
        text = Text(visible(line))
        text.highlight_regex(r"^  met:", "green")
        text.highlight_regex(r"^  not met:", "red")
        yield text
