"""How literals and clauses read, for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import assert_never

from situ.quantities import format_duration
from situ.situation.policies.policy import Absence, Choice, Clause, Is, Literal, Part, Then, literals_of


def literal_text(literal: Literal, window: int = -1) -> str:
    """``A is not inside R``, ``A is inside R followed-by within 5 s B is inside R``.

    A window is said where it is another than that of the policy.
    """
    if isinstance(literal, Is):
        return _sign(literal)
    first, *others = literal.parts
    written = [_sign(first)]
    for part, within in zip(others, _windows(literal, window), strict=True):
        shown = f" within {duration_text(within)}" if within else ""
        written.append(f"followed-by{shown} {_sign(part)}")
    return " ".join(written)


def _windows(then: Then, window: int) -> list[int]:
    """Of each ``followed-by``, 0 for what need not be said."""
    gaps, last = [gap.within for gap in then.between], then.within if then.within != window else 0
    if not then.first.negated and not then.second.negated:
        return [*gaps, last]  # a gap without a length has none even if its length would be the window
    given = [each if each != window else 0 for each in gaps]
    return [last, *given] if then.first.negated else [*given, last]


def clause_text(clause: Clause, window: int = -1) -> str:
    """The literals, joined by ``or``."""
    return " or ".join(literal_text(each, window) for each in clause)


def part_text(part: Part, window: int = -1) -> str:
    """A condition as a match meets it: branches in the order they are written, those of several in parentheses."""
    match part:
        case Is() | Then():
            return literal_text(part, window)
        case Absence(literals=literals):
            return clause_text(literals, window)
        case Choice(branches=branches, absent=absent):
            written = [(_place(branch), _all_text(branch, window)) for branch in branches]
            if len(absent) == 1:
                written += [(_place((each,)), literal_text(each, window)) for each in absent[0].literals]
            elif absent:
                written.append((_place(absent), _all_text(absent, window)))
            return " or ".join(text for _, text in sorted(written))
        case _:
            assert_never(part)


def _all_text(parts: Sequence[Part], window: int) -> str:
    texts = [part_text(part, window) for part in parts]
    if len(texts) == 1:
        return texts[0]
    return f"({' and '.join(f'({each})' if _is_or(part) else each for part, each in zip(parts, texts, strict=True))})"


def _is_or(part: Part) -> bool:
    return isinstance(part, Choice) or (isinstance(part, Absence) and len(part.literals) > 1)


def _place(parts: Sequence[Part]) -> int:
    signed = (step for each in literals_of(parts) for step in ((each,) if isinstance(each, Is) else each.parts))
    return min(step.place for step in signed)


def duration_text(microseconds: int) -> str:
    return format_duration(timedelta(microseconds=microseconds))


def _sign(literal: Is) -> str:
    text = literal.relation.text
    if not literal.negated:
        return text
    if literal.relation.compares:
        return f"not {text}"
    alias, blank, said = text.partition(" ")
    if not blank:
        return f"not {text}"
    return f"{alias} is not {said.removeprefix('is ')}" if said.startswith("is ") else f"{alias} not {said}"
