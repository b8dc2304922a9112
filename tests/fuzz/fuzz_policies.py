"""Any bytes as a policy: a tree that prints and reads back, or problems with places; its form has the same meaning."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["situ.policies"]):
    from situ.lang.problems import Problem, SituError, render
    from situ.policies.language.format import format_policy
    from situ.policies.language.parse import parse_policy
    from situ.policies.language.print import print_policy

from tests.fuzz.harness import fuzz

_PIECES = [
    "concepts\n", "conditions\n", "actions\n", "actions on close\n", "policy p\n", "window 5 s\n", "consumption all\n",
    "  person A\n", "  room R (id = 'a')\n", "person ", "A ", "B ", "is ", "not ", "inside ", "within ", "5 m ", "of ",
    "and ", "or ", "followed-by ", "followed by ", "(", ")", ",", ".", "=", "!=", "<", "==", "'a'", '"a"', "# x", "\n",
    "  A is inside R\n", "distance(A, B)", "A.x", "in ('a', 'b')", "like 'a%'", "with property ", "raise alarm\n",
    "\r\n", "\t", "\x00", "[km/h]", "isn't ", "then ", "'", "\u2018", "°C", "🙂",
]  # fmt: skip


def bytes_of(data: bytes) -> bytes:
    provider = atheris.FuzzedDataProvider(data)
    if provider.ConsumeBool():
        return "".join(provider.PickValueInList(_PIECES) for _ in range(provider.ConsumeIntInRange(1, 60))).encode()
    return bytes(provider.ConsumeBytes(4000))


def look(problems: tuple[Problem, ...]) -> None:
    assert problems
    for problem in problems:
        assert problem.location is not None
        assert problem.hint, problem
        render(problem)


def target(data: bytes) -> None:
    raw = bytes_of(data)
    try:
        policy = parse_policy(raw, "a.dpl")
    except SituError as error:
        look(error.problems)
        return
    printed = print_policy(policy)
    assert parse_policy(printed, "printed.dpl") == policy, (raw, printed)
    tidied = format_policy(raw.decode(), "a.dpl")
    assert parse_policy(tidied, "tidied.dpl") == policy, (raw, tidied)
    assert format_policy(tidied, "a.dpl") == tidied, (raw, tidied)


if __name__ == "__main__":
    fuzz(target)
