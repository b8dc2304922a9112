"""``situ simulate``: routers of several zones in virtual time, with faults, and whether everything holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit
from situ.cli.options import common_options

if TYPE_CHECKING:
    from situ.cli.output import Output
    from situ.protocol.simulator.scenario import Scenario, World
    from situ.protocol.simulator.simulation import Outcome, Simulation


@common_options
def simulate(
    output: Output,
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="The file of a scenario.")] = "",
    random: Annotated[bool, typer.Option("--random", help="Instead: a scenario drawn from the seed.")] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="What chance begins with.")] = 1,
    runs: Annotated[int, typer.Option("--runs", metavar="N", min=1, help="How many seeds, from this one on.")] = 1,
    zones: Annotated[int, typer.Option("--zones", metavar="N", min=1, max=500, help="With --random.")] = 5,
    routers: Annotated[int, typer.Option("--routers", metavar="N", min=1, max=100, help="In each zone.")] = 10,
    clients: Annotated[int, typer.Option("--clients", metavar="N", min=1, help="With --random.")] = 60,
    events: Annotated[int, typer.Option("--events", metavar="N", min=0, help="With --random.")] = 120,
    faults: Annotated[int, typer.Option("--faults", metavar="N", min=0, help="With --random.")] = 6,
    flood: Annotated[bool, typer.Option("--flood", help="Tell every subscription to everybody.")] = False,
    draw: Annotated[
        Path | None,
        typer.Option("--draw", metavar="FILE", help="Draw the way of one event, as SVG.", show_default=False),
    ] = None,
    event: Annotated[str, typer.Option("--event", metavar="KEY", help="Which event to draw; the first, if none.")] = "",
) -> Exit:
    """Simulate routers of several zones, with faults, and check that everything holds.

    The routers are those of the protocol; time is virtual, and a run depends on the scenario and the seed alone. Every
    step is checked: who gets what, in which order, how often and over which routers. A run in which something does not
    hold is made short and told as a story, with a sequence diagram in Mermaid.

    \b
    Examples:
      situ simulate two-zones.yaml --seed 7
      situ simulate two-zones.yaml --draw way.svg --event press.1.3
      situ simulate --random --runs 20 --routers 10
    """
    from situ.lang.records import replace
    from situ.protocol.simulator.random_scenario import random_scenario
    from situ.protocol.simulator.scenario import declared_world, read_scenario
    from situ.protocol.simulator.simulation import Simulation

    if bool(scenario) == random:
        raise typer.BadParameter("name the file of a scenario, or say --random", param_hint="'SCENARIO' / '--random'")
    results: list[dict[str, Any]] = []
    failed: tuple[Scenario, int, World] | None = None
    for number in range(seed, seed + runs):
        if random:
            made = random_scenario(
                number, zones=zones, routers=routers, clients=clients, events=events, faults=faults, flood=flood
            )
        else:
            made = read_scenario(Path(scenario).read_text(encoding="utf-8"), scenario)
            made = replace(made, flood=flood or made.flood)
        world = declared_world(made)
        run = Simulation(made, number, watch=draw is not None, world=world)
        outcome = run.run()
        results.append(_as_json(number, outcome))
        if draw is not None:
            draw.write_text(_drawn(run, outcome, event), encoding="utf-8")
        if not output.json:
            output.text(_line(number, outcome))
        if outcome.violation is not None:
            failed = (made, number, world)
            break
    if failed is not None:
        results[-1]["story"] = _story(output, *failed)
    if output.json:
        output.data({"runs": results})
    elif runs == 1 and failed is None:
        output.text(_counts(outcome))
    return Exit.NO if failed is not None else Exit.DONE


def _as_json(seed: int, outcome: Outcome) -> dict[str, Any]:
    return {
        "seed": seed,
        "holds": outcome.violation is None,
        "violation": None if outcome.violation is None else str(outcome.violation),
        "steps": outcome.steps,
        "seconds": outcome.ended,
        "delivered": outcome.delivered,
        "forwarded": outcome.forwarded,
        "elections": outcome.elections,
        "faults": dict(sorted(outcome.faults.items())),
        "messages": dict(sorted(outcome.messages.items())),
        "links": dict(sorted(outcome.links.items())),
    }


def _line(seed: int, outcome: Outcome) -> str:
    verdict = "everything holds" if outcome.violation is None else str(outcome.violation)
    return (
        f"seed {seed}: {verdict} · {outcome.steps} steps in {outcome.ended:g} s of virtual time, "
        f"{outcome.delivered} delivered, {outcome.forwarded} forwarded, {outcome.elections} elections\n"
    )


def _counts(outcome: Outcome) -> str:
    lines = [f"{name:<22}{count:>9}" for name, count in sorted(outcome.messages.items())]
    links = [f"{f'over links: {name}':<22}{count:>9}" for name, count in sorted(outcome.links.items())]
    return "\n".join([*lines, *links]) + "\n"


def _drawn(run: Simulation, outcome: Outcome, event: str) -> str:
    from situ.protocol.simulator.diagram import draw

    wanted = event or next((about for _, _, _, kind, about in outcome.log if kind == "Publish"), "")
    gateways = {host.zone: host.name for host in run.hosts.values() if host.is_acting(run.now)}
    places = {name: client.router for name, client in run.clients.items()}
    return draw(run.scenario, gateways, places, outcome.log, wanted)


def _story(output: Output, scenario: Scenario, seed: int, world: World) -> dict[str, Any]:
    """What is told of a run that failed, as short as it could be made."""
    from situ.protocol.simulator.simulation import Simulation
    from situ.protocol.simulator.story import shrink, tell_story

    found = Simulation(scenario, seed, world=world).run().violation
    story = None if found is None else tell_story(shrink(scenario, seed, found, world), seed, world)
    if story is None:
        return {}
    if not output.json:
        output.text(f"\nThe shortest schedule that was found has {len(story.actions)} actions:\n\n")
        output.text("\n".join(story.lines) + "\n\n```mermaid\n" + story.diagram + "```\n")
    return {"actions": [str(each) for each in story.actions], "lines": story.lines, "diagram": story.diagram}
