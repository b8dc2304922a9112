"""What a check found, for people: the problems, then one line that sums them up."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from situ.cli.project import relative_to_here
from situ.cli.render.text import STYLES, count, plural, show_problems
from situ.lang.problems import Severity
from situ.project.check import CheckedProject

_WORDS = ("file", "type", "function", "source", "concept", "policy", "context", "client")


def counts(checked: CheckedProject) -> dict[str, int]:
    """How many of what. What is declared only where the project has no errors, some of it only if there is any."""
    deployment = checked.deployment
    declared = (
        {
            "types": len(deployment.types.declared),
            "functions": len(deployment.functions),
            **({"sources": len(deployment.sources)} if deployment.sources else {}),
            **({"concepts": len(deployment.ontology.concepts)} if deployment.ontology.concepts else {}),
            **({"policies": len(deployment.policies)} if deployment.policies else {}),
            **({"contexts": len(deployment.contexts)} if len(deployment.contexts) > 1 else {}),
            "clients": len(deployment.clients),
        }
        if deployment is not None
        else {}
    )
    found = {
        f"{severity.value}s": sum(problem.severity is severity for problem in checked.problems) for severity in Severity
    }
    return {"files": len(checked.files), **declared, **found}


def show_check(checked: CheckedProject, seconds: float, *, verbose: bool, summary: bool) -> Iterator[Text]:
    """The problems in the order of their places, observations only if asked for, and the summary."""
    problems = tuple(each for each in checked.problems if verbose or each.severity is not Severity.OBSERVATION)
    yield from show_problems(relative_to_here(problems, checked.path))
    if summary:
        if problems:
            yield Text()
        yield _summary(checked, seconds, verbose)


def _summary(checked: CheckedProject, seconds: float, verbose: bool) -> Text:
    numbers = counts(checked)
    declared = [count(numbers[plural(word)], word) for word in _WORDS if plural(word) in numbers]
    text = Text(", ".join(declared) + " · ")
    for place, severity in enumerate((Severity.ERROR, Severity.WARNING)):
        number = numbers[f"{severity.value}s"]
        text.append(", " if place else "")
        text.append(count(number, severity.value), STYLES[severity] if number else "")
    hidden = numbers["observations"]
    if hidden:
        text.append(f", {count(hidden, 'observation')}")
        text.append("" if verbose else " (-v shows them)", "dim")
    text.append(f" · {seconds:.1f} s", "dim")
    return text
