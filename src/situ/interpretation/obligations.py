"""Where an expression can fail, and whether another fails there, too.

An event that has no value for some attribute of root becomes no event at all, even for those who do not ask for that
attribute. A fused transformation that leaves attributes out owes this check; here it is found what it owes.
"""

from __future__ import annotations

from collections.abc import Iterator

from situ.expr.overload import Overflow
from situ.expr.tree import Apply, Case, Coerce, Each, ForEach, Literal, MakeStruct, Node, children, fails_as_argument


def obligations(node: Node) -> Iterator[Node]:
    """The parts of what is made that can fail, each by itself."""
    if isinstance(node, MakeStruct):
        for _, part in node.fields:
            yield from obligations(part)
    elif fails(node):
        yield node


def fails(node: Node) -> bool:
    """Whether the node can fail where its value has to be one."""
    return node.can_fail or fails_as_argument(node, Overflow.NONE)


def is_met(owed: Node, node: Node) -> bool:
    """Whether the node, where it stands for a whole value, fails whenever ``owed`` does."""
    if node == owed:
        return True
    match owed:
        case MakeStruct(fields=fields):
            return all(is_met(part, node) for _, part in fields if fails(part))
        case Case(arms=arms, otherwise=otherwise) if isinstance(node, Case):
            return _same_choice(arms, otherwise, node) or _inside(owed, node)
        case ForEach(kind=Each.TRANSFORM) if isinstance(node, ForEach) and node.kind is Each.TRANSFORM:
            same = (owed.list, owed.variable) == (node.list, node.variable)
            return same and is_met(owed.body, node.body)
    return _inside(owed, node)


def _inside(owed: Node, node: Node) -> bool:
    """Whether a part that is always looked at does."""
    match node:
        case MakeStruct(fields=fields):
            return any(is_met(owed, part) for _, part in fields)
        case Case(arms=arms):
            # The first condition is always looked at; a choice fails only with what it takes.
            return _evaluates(arms[0][0], owed)
        case Coerce(arg=arg):
            return arg == owed or _inside(owed, arg)
        case Apply(args=args):
            return any(_hands_on(node, place) and (arg == owed or _inside(owed, arg)) for place, arg in enumerate(args))
    return False


def _hands_on(node: Apply, place: int) -> bool:
    """Whether what is wrong with an argument is wrong with the result.

    Failure always is. What is not finite is refused, or else stays not finite, unless another argument is null.
    """
    if node.overload.tolerance(place) is Overflow.NONE:
        return True
    return not any(arg.nullable for other, arg in enumerate(node.args) if other != place)


def _same_choice(arms: tuple[tuple[Node, Node], ...], otherwise: Node, node: Case) -> bool:
    """The same conditions, and in each case what is owed there."""
    if tuple(condition for condition, _ in arms) != tuple(condition for condition, _ in node.arms):
        return False
    pairs = zip((*(result for _, result in arms), otherwise), node.results, strict=True)
    return all(isinstance(owed, Literal) or not fails(owed) or is_met(owed, result) for owed, result in pairs)


def _evaluates(condition: Node, owed: Node) -> bool:
    return owed in children(condition) and not fails_as_argument(owed, Overflow.NONE)
