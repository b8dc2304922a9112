"""A policy's tree → its canonical text, which parses to an equal tree.

Keywords are small, a statement has a line, aliases stand below each other, and a condition that does not fit into the
width goes on behind an ``and`` or ``or``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from situ.lang.quantities import format_duration
from situ.policies.language.syntax import (
    ActionText,
    AllOf,
    AnyOf,
    AttributeOf,
    Comparison,
    ConceptDefinition,
    Condition,
    FollowedBy,
    MeasureOf,
    Operand,
    PolicyText,
    PropertyText,
    RelationText,
    ValueText,
)

WIDTH = 100
INDENT = "  "


def print_policy(policy: PolicyText) -> str:
    """The whole policy."""
    return "\n".join(_lines(policy)) + "\n"


def _lines(policy: PolicyText) -> Iterator[str]:
    if policy.name is not None:
        yield f"policy {policy.name.text}"
    for option in ("window", "lateness", "hold"):
        if (duration := getattr(policy, option)) is not None:
            yield f"{option} {format_duration(duration)}"
    if policy.consumption is not None:
        yield f"consumption {policy.consumption.value}"
    yield "concepts"
    width = concept_width(policy.concepts)
    yield from (INDENT + print_concept(each, width) for each in policy.concepts)
    yield "conditions"
    yield from (INDENT + print_line(line) for line in lines_of(policy.conditions))
    yield "actions" if policy.when is None else f"actions on {policy.when.value}"
    yield from (INDENT + print_action(each) for each in policy.actions)


def lines_of(conditions: Condition) -> tuple[Condition, ...]:
    """The conditions that stand on lines of their own."""
    return conditions.parts if isinstance(conditions, AllOf) and conditions.lines else (conditions,)


def concept_width(concepts: tuple[ConceptDefinition, ...]) -> int:
    """How wide concepts are written, so that aliases stand below each other."""
    return max((len(each.concept.text) for each in concepts), default=0)


def print_concept(concept: ConceptDefinition, width: int = 0) -> str:
    text = f"{concept.concept.text.ljust(width)} {concept.alias.text}"
    if not concept.properties:
        return text
    return f"{text} ({', '.join(print_property(each) for each in concept.properties)})"


def print_property(each: PropertyText) -> str:
    return f"{each.attribute.text} {each.operator} {each.value.text}"


def print_line(condition: Condition) -> str:
    """A condition on lines of its own: on one if it fits, else going on behind its weakest operator."""
    whole = print_condition(condition)
    if len(whole) + len(INDENT) <= WIDTH or not isinstance(condition, (AnyOf, AllOf)):
        return whole
    word = "or" if isinstance(condition, AnyOf) else "and"
    return f" {word}\n{INDENT * 3}".join(_within(part, condition) for part in condition.parts)


def print_condition(condition: Condition) -> str:
    """A condition on one line."""
    return _PRINTED[type(condition)](condition)


def print_action(action: ActionText) -> str:
    return " ".join(word.text for word in action.words)


def _relation(each: RelationText) -> str:
    words = [each.left.text]
    if each.says_is:
        words.append("is")
    if each.negated:
        words.append("not")
    words.append(each.relationship.text)
    if each.parameter is not None:
        words.append(each.parameter.text)
    if each.says_of or each.parameter is not None:  # a number would take the alias for its unit
        words.append("of")
    return " ".join([*words, each.right.text])


def _comparison(each: Comparison) -> str:
    return f"{'not ' * each.negated}{_operand(each.left)} {each.operator} {_operand(each.right)}"


def _operand(operand: Operand) -> str:
    match operand:
        case MeasureOf():
            return f"{operand.measure.text}({operand.left.text}, {operand.right.text})"
        case AttributeOf():
            return f"{operand.alias.text}.{operand.attribute.text}"
        case ValueText():
            return operand.text


def _followed_by(each: FollowedBy) -> str:
    first = print_condition(each.first) if isinstance(each.first, FollowedBy) else _within(each.first, each)
    window = f" within {format_duration(each.within)}" if each.within is not None else ""
    return f"{first} followed-by{window} {_within(each.second, each)}"


def _all_of(each: AllOf) -> str:
    return " and ".join(_within(part, each) for part in each.parts)


def _any_of(each: AnyOf) -> str:
    return " or ".join(_within(part, each) for part in each.parts)


_STRENGTH: dict[type, int] = {AnyOf: 1, AllOf: 2, FollowedBy: 3, RelationText: 4, Comparison: 4}


def _within(part: Condition, whole: Condition) -> str:
    """A part of a condition, in parentheses unless it binds more strongly than what it is part of."""
    text = print_condition(part)
    return text if _STRENGTH[type(part)] > _STRENGTH[type(whole)] else f"({text})"


_PRINTED: dict[type, Callable[..., str]] = {
    RelationText: _relation,
    Comparison: _comparison,
    FollowedBy: _followed_by,
    AllOf: _all_of,
    AnyOf: _any_of,
}
