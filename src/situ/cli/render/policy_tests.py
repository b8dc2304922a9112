"""Tests of policies for people: a line for each that passes, a table of what was expected and found for others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from situ.cli.output import visible
from situ.cli.project import relative_to_here
from situ.cli.render.text import count, show_problems
from situ.policies.check.interactions import ChainDelay
from situ.policies.logic_tree import duration_text
from situ.policies.policy_tests import (
    ExpectedSituation,
    FoundSituation,
    GivenEvent,
    VerdictLine,
    differences,
    moment,
)
from situ.project.policy_tests import PolicyTestResult

if TYPE_CHECKING:
    from rich.console import RenderableType


def show_tests(
    tests: Sequence[PolicyTestResult], path: Path, *, verbose: bool, summary: bool
) -> Iterator[RenderableType]:
    for each in tests:
        yield _headline(each)
        yield from show_problems(relative_to_here(each.problems, path))
        yield from (Text(f"  {_delay(name, each.delays[name])}", "dim") for name in each.delays)
        if each.tried is not None and (verbose or not each.passed):
            if each.lines:
                yield _table(each.lines)
            yield from (Text(f"  late, not looked at: {_event(event)}", "dim") for event in each.tried.late)
            if each.empty:
                names = ", ".join(f"`{visible(name)}`" for name in each.empty)
                yield Text(f"  no rows are given of {names}: write them under `given`, `pull`", "dim")
            yield Text()
    if summary:
        yield _summary(tests)


def _headline(tested: PolicyTestResult) -> Text:
    word, style = ("passed", "green") if tested.passed else ("FAILED", "bold red")
    return Text.assemble((word, style), f"  {visible(tested.file)}")


def _table(lines: Sequence[VerdictLine]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 2), header_style="bold")
    for title in ("", "policy", "expected", "found"):
        table.add_column(title, no_wrap=title in ("", "policy"))
    for line in lines:
        of = line.expected or line.found
        assert of is not None
        wrong = differences(line.expected, line.found) if line.expected is not None and line.found is not None else []
        mark = Text("ok", "green") if line.passed else Text("no", "bold red")
        table.add_row(mark, of.policy, _expected(line.expected), _found(line.found, line.expected, wrong))
    return table


def _expected(expected: ExpectedSituation | None) -> Text:
    if expected is None:
        return Text("nothing", "dim")
    parts = [moment(expected.at)] if expected.at is not None else []
    parts += [f"{alias} = {identity}" for alias, identity in expected.bindings]
    parts += [f"closed {moment(expected.closed)}"] if expected.closed is not None else []
    parts += [count(expected.detections, "detection")] if expected.detections is not None else []
    return Text(visible(", ".join(parts) or "any"))


def _found(found: FoundSituation | None, expected: ExpectedSituation | None, wrong: Sequence[str]) -> Text:
    if found is None:
        return Text("nothing", "dim")
    text = Text()
    parts = [("at", moment(found.at)), *((alias, f"{alias} = {identity}") for alias, identity in found.bindings)]
    if expected is not None and expected.closed is not None:
        parts.append(("closed", "still open" if found.closed is None else f"closed {moment(found.closed)}"))
    if expected is not None and expected.detections is not None:
        parts.append(("detections", count(found.detections, "detection")))
    for place, (name, part) in enumerate(parts):
        text.append(", " if place else "")
        text.append(visible(part), "red" if name in wrong else "")
    return text


def _delay(policy: str, delay: ChainDelay) -> str:
    feeders = ", ".join(delay.fed)
    added = duration_text(delay.total - delay.own)
    steps = "one step" if delay.steps == 1 else f"{delay.steps} steps"
    return visible(f"{policy} reads events of {feeders}: in a run it decides {added} and {steps} of the engine later")


def _event(event: GivenEvent) -> str:
    return visible(f"{event.id}, {event.type} at {moment(event.time)}, received at {moment(event.received)}")


def _summary(tests: Sequence[PolicyTestResult]) -> Text:
    if not tests:
        return Text("There are no tests: put them beside policies, as policies/NAME.test.yaml.")
    failed = sum(not each.passed for each in tests)
    text = Text(f"{count(len(tests), 'test')} · ")
    return text.append(f"{failed} failed", "bold red") if failed else text.append("all passed", "green")


def tests_as_json(tests: Sequence[PolicyTestResult]) -> dict[str, Any]:
    return {
        "tests": [
            {
                "file": each.file,
                "passed": each.passed,
                "lines": [_line_as_json(line) for line in each.lines],
                "empty": list(each.empty),
                "late": [event.id for event in each.tried.late] if each.tried is not None else [],
                "delays": {
                    name: {
                        "reads": list(delay.fed),
                        "own": duration_text(delay.own),
                        "total": duration_text(delay.total),
                        "steps": delay.steps,
                    }
                    for name, delay in each.delays.items()
                },
                "problems": [problem.as_json() for problem in each.problems],
            }
            for each in tests
        ],
        "passed": all(each.passed for each in tests),
    }


def _line_as_json(line: VerdictLine) -> dict[str, Any]:
    expected, found = line.expected, line.found
    return {
        "passed": line.passed,
        "expected": expected
        and {
            "policy": expected.policy,
            "at": None if expected.at is None else moment(expected.at),
            "bindings": dict(expected.bindings),
            "closed": None if expected.closed is None else moment(expected.closed),
            "detections": expected.detections,
        },
        "found": found
        and {
            "situation": found.id,
            "policy": found.policy,
            "at": moment(found.at),
            "bindings": dict(found.bindings),
            "closed": None if found.closed is None else moment(found.closed),
            "detections": found.detections,
        },
    }
