"""What a person may have meant by a ``not`` that stands outside of a relation: conditions as they could be written.

Negation of a sequence is where intuitions part, so the reader is shown both and chooses.
"""

from __future__ import annotations

from situ.errors import SituError
from situ.situation.language.print import print_condition
from situ.situation.language.syntax import AllOf, AnyOf, Comparison, Condition, FollowedBy, Relation

OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""For values for which a comparison is not true: that one comes does not say that none comes for which it is."""

_IN_GENERAL = ("X followed-by not Y", "(X followed-by not Y) or not X")


def readings_of_group(text: str, opening: int) -> tuple[str, ...]:
    """Of ``not (…)``, the parenthesis beginning at ``opening``."""
    depth = 0
    for index in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return _readings(text[opening + 1 : index])
    return _IN_GENERAL


def readings_of_not_followed(text: str, start: int) -> tuple[str, ...]:
    """Of ``X not followed-by Y``, the ``not`` beginning at ``start``."""
    return _readings(text[:start] + " " * len("not") + text[start + len("not") :])


def is_condition(text: str) -> bool:
    """Whether a line reads: nothing else is proposed to anybody."""
    from situ.situation.language.parse import reads  # which asks us what to propose

    return reads(text)


def _readings(text: str) -> tuple[str, ...]:
    from situ.situation.language.parse import parse_condition  # which asks us when it meets such a `not`

    try:
        condition = parse_condition(text)
    except SituError:
        return _IN_GENERAL
    if not isinstance(condition, FollowedBy):
        return _readings_without_sequence(condition)
    first, second = _negated(condition.first), _negated(condition.second)
    if first is None or second is None:
        return _IN_GENERAL
    then = FollowedBy(condition.first, second, condition.within)
    return print_condition(then), f"({print_condition(then)}) or {print_condition(first)}"


def _readings_without_sequence(condition: Condition) -> tuple[str, ...]:
    """The opposite of the whole, and that of its first part only."""
    negated = _negated(condition)
    if negated is None:
        return _IN_GENERAL
    if not isinstance(condition, (AllOf, AnyOf)):
        return (print_condition(negated),)
    first = _negated(condition.parts[0])
    assert first is not None
    return print_condition(negated), print_condition(type(condition)((first, *condition.parts[1:])))


def _negated(condition: Condition) -> Condition | None:
    """The opposite, with `not` inside relations and before comparisons only; None for sequences."""
    match condition:
        case Relation():
            return Relation(
                condition.left,
                condition.relationship,
                condition.right,
                negated=not condition.negated,
                parameter=condition.parameter,
                says_is=condition.says_is,
                says_of=condition.says_of,
            )
        case Comparison():
            # That no such value comes; `<=` for `>` would say that another one does.
            return Comparison(condition.left, condition.operator, condition.right, negated=not condition.negated)
        case AllOf() | AnyOf():
            parts = tuple(_negated(part) for part in condition.parts)
            known = tuple(part for part in parts if part is not None)
            other = AnyOf if isinstance(condition, AllOf) else AllOf
            return other(known) if len(known) == len(parts) else None
        case FollowedBy():
            return None
