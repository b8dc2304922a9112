"""Types from the text of files, for tests."""

from __future__ import annotations

from textwrap import dedent

from situ.lang.documents import parse_yaml
from situ.lang.problems import Problem, Problems
from situ.lang.types.resolve import load_types
from situ.lang.types.table import Types


def load(*texts: str) -> tuple[Types, tuple[Problem, ...]]:
    """The table that files of these texts make, ``types/1.yaml`` and so on, and the problems in order of place."""
    problems = Problems()
    documents = [parse_yaml(dedent(text), f"types/{number}.yaml") for number, text in enumerate(texts, 1)]
    return load_types(documents, problems), problems.sorted()


def types_of(*texts: str) -> Types:
    """The table of files in which nothing is wrong."""
    table, problems = load(*texts)
    assert not problems, "\n".join(map(str, problems))
    return table


def faults(*texts: str) -> list[str]:
    """What is wrong in the files: place and code."""
    return [f"{problem.location} {problem.code.code}" for problem in load(*texts)[1]]
