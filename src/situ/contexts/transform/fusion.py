"""Two transformations fused into one: from one context straight to another, or from one version of root to another.

The parts, in order: which failures a fused expression owes, rewriting of expressions put into one another, `fuse` with
`FusedConverter`, and `bridge_root_versions`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.contexts.function_bodies import DATA, EVENT
from situ.contexts.model import Direction
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.function_calls import ExternalValue, FindRow, with_rows
from situ.contexts.transform.steps import ValueStep
from situ.contexts.transform.transformation import Transformation
from situ.lang.expr.checker.coerce import nothing_there
from situ.lang.expr.overload import Overflow
from situ.lang.expr.simplify import simplify
from situ.lang.expr.tree import (
    FALSE,
    Apply,
    Case,
    Coerce,
    Each,
    Field,
    ForEach,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Read,
    children,
    fails_as_argument,
    rebuild,
    walk,
)
from situ.lang.problems import Problem
from situ.lang.records import replace
from situ.lang.types.json_codec import TYPE_KEY
from situ.lang.types.model import STRING, Struct, Type, plain
from situ.lang.types.table import Types

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Failures. An event that has no value for some attribute of root becomes no event at all, even for consumers who do not
# ask for that attribute. A fused transformation that leaves attributes out owes this check.


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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Rewriting: what is made only to be taken apart again disappears. Each function gives an expression with the same
# values. That what is no longer made could have failed is not theirs to see; `obligations` is for that.


def inline_variable(node: Node, variable: str, made: Node, types: Types) -> Node:
    """The node with ``made`` in the place of a variable; ``types`` are those that what is made is of."""

    def change(part: Node) -> Node:
        if isinstance(part, Read) and part.variable == variable:
            return _reach(made, part, 0, types)
        return rebuild(part, change)

    return change(node)


def _reach(found: Node, read: Read, place: int, types: Types) -> Node:
    """What stands at the path of a read, from this place of it on, below what was found so far."""
    if place == len(read.path):
        return found
    name = read.path[place]
    match found:
        case Read():
            path, optional = (*found.path, *read.path[place:]), (*found.optional, *read.optional[place + 1 :])
            return Read(found.variable, path, read.type, read.unit, optional, found.trusted)
        case MakeStruct(fields=fields):
            part = dict(fields).get(name)
            return Literal(None, read.type, read.unit) if part is None else _reach(part, read, place + 1, types)
        case Case(arms=arms, otherwise=otherwise):
            chosen = tuple((condition, _reach(result, read, place, types)) for condition, result in arms)
            return Case(chosen, _reach(otherwise, read, place, types), read.type, read.unit)
        case Literal(value=None):
            return Literal(None, read.type, read.unit)
    last = place == len(read.path) - 1
    type = read.type if last else _attribute_type(found.type, name, types)
    step = Field(found, name, type, read.unit if last else found.unit, read.optional[place + 1])
    return _reach(step, read, place + 1, types)


def _attribute_type(type: Type, name: str, types: Types) -> Type:
    """Of a struct or, where the path asks for more than it has, of one below it."""
    if name == TYPE_KEY:
        return STRING
    struct = plain(type)
    assert isinstance(struct, Struct)
    below = (each for each in (struct, *types.subtypes(struct)) if isinstance(each, Struct))
    return next(found.type for each in below if (found := each.attribute(name)) is not None)


def renamed_loops(node: Node, taken: Iterable[str]) -> Node:
    """The node with other names for the variables of its loops: what is put in has loops of its own."""
    used = {name.lower() for name in taken}  # names that differ in capitals only are the same to Spark
    used |= {part.variable.lower() for part in walk(node) if isinstance(part, Read | ForEach)}

    def fresh(name: str) -> str:
        number = 1
        while f"{name}_{number}".lower() in used:
            number += 1
        used.add(f"{name}_{number}".lower())
        return f"{name}_{number}"

    def change(part: Node, names: Mapping[str, str]) -> Node:
        match part:
            case ForEach(list=of, variable=variable, body=body):
                new = fresh(variable)
                return replace(part, list=change(of, names), variable=new, body=change(body, {**names, variable: new}))
            case Read(variable=variable):
                return replace(part, variable=names[variable]) if variable in names else part
        return rebuild(part, lambda each: change(each, names))

    return change(node, {})


def join_loops(node: Node, types: Types) -> Node:
    """A list that is made to make another of it is not made: each element becomes at once what it becomes."""
    below = rebuild(node, lambda part: join_loops(part, types))
    match below:
        case ForEach(kind=Each.TRANSFORM, list=ForEach(kind=Each.TRANSFORM) as inner):
            body = inline_variable(below.body, below.variable, inner.body, types)
            return replace(below, list=inner.list, variable=inner.variable, body=join_loops(body, types))
    return below


def drop_decided_choices(node: Node, checked: Container[Node], not_true: frozenset[Node] = frozenset()) -> Node:
    """Without choices that are made already: behind a condition that does not hold it is not asked again.

    ``checked`` are expressions of which somebody else sees whether they fail.
    """
    match node:
        case IsNull(arg=arg) if node in not_true or (not arg.nullable and _is_checked(arg, checked)):
            return FALSE
        case IsNull(arg=Case(arms=((IsNull() as absent, Literal(value=None)),), otherwise=otherwise)) if (
            not otherwise.nullable and _is_checked(node.arg, checked)
        ):
            return drop_decided_choices(absent, checked, not_true)  # whether the one is there is whether the other is
        case Case(arms=arms, otherwise=otherwise):
            left: list[tuple[Node, Node]] = []
            seen = not_true
            for condition, result in arms:
                asked = drop_decided_choices(condition, checked, seen)
                if asked not in seen and asked != FALSE:
                    left.append((asked, drop_decided_choices(result, checked, seen)))
                    seen |= {asked}
            rest = drop_decided_choices(otherwise, checked, seen)
            if not left and not _is_checked(rest, checked):
                left.append((FALSE, rest))  # a choice sees to it that what comes out is finite
            return replace(node, arms=tuple(left), otherwise=rest) if left else rest
        case ForEach(variable=variable, body=body):
            inside = frozenset(each for each in not_true if not _reads(each, variable))
            return replace(
                node,
                list=drop_decided_choices(node.list, checked, not_true),
                body=drop_decided_choices(body, checked, inside),
            )
    return rebuild(node, lambda part: drop_decided_choices(part, checked, not_true))


def _is_checked(node: Node, checked: Container[Node]) -> bool:
    if not fails(node) or node in checked:
        return True
    return isinstance(node, MakeStruct) and all(_is_checked(part, checked) for _, part in node.fields)


def _reads(node: Node, variable: str) -> bool:
    return any(isinstance(part, Read) and part.variable == variable for part in walk(node))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Fusion. What the way out of root reads of a root event is what the way into root makes of it: put in its place, root
# events need not be made. The result fails where one of the two does: what the way in would fail at is looked at even
# if the consumer does not ask for it.

_NONE: Mapping[str, Any] = MappingProxyType({})
_TYPE = "type"


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedTransformation:
    """How events of ``inbound.source`` become events of ``outbound.target``, over a root type that is never made.

    Rows of tables and results of Python are calls in ``node``; nothing has to be bound.
    """

    inbound: Transformation
    outbound: Transformation
    node: Node
    find: tuple[Mapping[str, FindRow], Mapping[str, FindRow]] = field(default=(_NONE, _NONE), compare=False, repr=False)
    """How what the two ways need besides the event is found."""
    plan: str = ""

    @property
    def source(self) -> Struct:
        return self.inbound.source

    @property
    def target(self) -> Struct:
        return self.outbound.target

    @property
    def types(self) -> Types:
        return self.inbound.types

    @property
    def targets(self) -> Types:
        return self.outbound.targets

    @property
    def can_fail(self) -> bool:
        return self.node.can_fail

    @property
    def lossy(self) -> bool:
        return self.inbound.lossy or self.outbound.lossy

    @property
    def is_identity(self) -> bool:
        return isinstance(self.node, Read) and not self.node.path and self.source == self.target

    @property
    def transformation(self) -> Transformation:
        """As one transformation, which says of no place why it is as it is."""
        return Transformation(
            context=f"{self.inbound.context} → {self.outbound.context}",
            direction=Direction.OUT,
            source=self.source,
            target=self.target,
            step=ValueStep(node=self.node, function="fused", copied=self.is_identity),
            lossy=self.lossy,
            types=self.types,
            targets=self.targets,
            plan=self.plan,
        )


def fuse(
    inbound: Transformation,
    outbound: Transformation,
    find: tuple[Mapping[str, FindRow], Mapping[str, FindRow]] = (_NONE, _NONE),
) -> FusedTransformation:
    """The two in one; the way out begins with the type with which the way in ends.

    ``find`` gives functions for everything that the two need besides the event.
    """
    if inbound.target != outbound.source:
        raise ValueError(f"{outbound.source} is not what becomes of {inbound.source}")
    for way, found in zip((inbound, outbound), find, strict=True):
        if lacking := way.externals.keys() - found.keys():
            raise ValueError(f"nobody finds {', '.join(sorted(lacking))}")
    made, types = simplify(with_rows(inbound.node, inbound.externals, find[0])), inbound.targets
    taken = {part.variable for part in walk(made) if isinstance(part, Read | ForEach)}
    owed = tuple(obligations(made))
    checked = frozenset(part for each in owed for part in walk(each))
    out = renamed_loops(with_rows(outbound.node, outbound.externals, find[1]), taken)
    node = inline_variable(_named(out, outbound.source.name), DATA, made, types)
    node = simplify(drop_decided_choices(simplify(node), checked))
    node = simplify(drop_decided_choices(join_loops(node, types), checked))
    open_ends = [each for each in owed if not is_met(each, node)]
    return FusedTransformation(
        inbound=inbound,
        outbound=outbound,
        node=_guarded(node, open_ends, outbound) if open_ends else node,
        find=find,
        plan=hashlib.sha256(f"{inbound.plan} {outbound.plan}".encode()).hexdigest()[:16],
    )


class FusedConverter:
    """Converts events from one context to another, as :class:`~situ.contexts.transform.converter.Converter` does."""

    def __init__(self, way: FusedTransformation) -> None:
        self.fused = way
        self._whole = Converter(way.transformation)

    def data(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
        """The data of the target, as values of its type; ``event`` is the envelope of what came in."""
        return self._whole.data(event, data)

    def text(self, event: Mapping[str, Any], text: bytes) -> bytes:
        """The canonical text of the target's data, given that of the source's."""
        return self._whole.text(event, text)

    def faults(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[Problem, ...]:
        """Every place that this event gives no value for: of root if it does not get there, else of the target."""
        way = self.fused
        inbound = Converter(way.inbound, way.find[0])
        if problems := inbound.faults(event, data):
            return problems
        outbound = Converter(way.outbound, way.find[1])
        return outbound.faults({**event, _TYPE: way.outbound.source.name}, inbound.data(event, data))


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────


def _named(node: Node, type: str) -> Node:
    """On the way out the type of the event is that of root."""
    if isinstance(node, Read) and node.variable == EVENT and node.path == (_TYPE,):
        return Literal(type, STRING, span=node.span)
    return rebuild(node, lambda part: _named(part, type))


def _guarded(node: Node, open_ends: list[Node], outbound: Transformation) -> Node:
    """Evaluates what the way in would fail at and the consumer does not ask for, and goes on."""
    looked_at = MakeStruct(tuple((f"p{number}", each) for number, each in enumerate(open_ends)), Struct("", ()))
    never = nothing_there(outbound.target, outbound.targets)
    return Case(((IsNull(looked_at), never),), node, outbound.target)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Versions of root: the ways of a context that was made against a root which was replaced, straight from and to the root
# of now. What leads from one root to the other is made of expressions alone. The context's own ways may need tables,
# state or Python as well; what these are asked for is then said of the event as it is now.

Ways = Mapping[str, Transformation]


def bridge_root_versions(own: Ways, bridge: Ways, direction: Direction) -> Ways:
    """``own`` are from or to the old root, ``bridge`` between the old root and the new one, in the same direction."""
    first, second = (bridge, own) if direction is Direction.OUT else (own, bridge)
    return MappingProxyType(
        {
            name: _one(way, second[way.target.name], way if first is own else second[way.target.name])
            for name, way in first.items()
            if way.target.name in second and second[way.target.name].source == way.target
        }
    )


def _one(first: Transformation, second: Transformation, own: Transformation) -> Transformation:
    """The two in one, as one of the context's ``own``."""
    if first.is_identity:
        return replace(second, context=own.context, types=first.types)
    if second.is_identity:
        return replace(first, context=own.context, targets=second.targets)
    needs_more = first.externals or second.externals
    made = _with_externals(first, second) if needs_more else fuse(first, second).transformation
    return replace(
        made,
        context=own.context,
        direction=own.direction,
        mapping=own.mapping,
        dropped=(*first.dropped, *second.dropped),
        plan=f"{first.plan[:8]}{second.plan[:8]}",
        through=(first, second),
    )


def _with_externals(first: Transformation, second: Transformation) -> Transformation:
    """As one, where names of loops are said outside of them: in what tables are asked for."""
    second = _apart(second, first.externals.keys())
    made, behind = simplify(first.node), second.node
    if second.externals:
        others = (*(each.argument for each in second.externals.values()), *_keys(second.externals))
        made = renamed_loops(made, {name for node in (behind, *others) for name in _variables(node)})
    else:
        behind = renamed_loops(behind, _variables(made))

    def through(node: Node) -> Node:
        return inline_variable(_named(node, second.source.name), DATA, made, first.targets)

    externals = {
        name: replace(
            each,
            argument=through(each.argument),
            keys=tuple((column, through(key)) for column, key in each.keys),
        )
        for name, each in second.externals.items()
    }
    return replace(
        second,
        source=first.source,
        types=first.types,
        step=ValueStep(node=simplify(through(behind)), function="fused"),
        lossy=first.lossy or second.lossy,
        externals=MappingProxyType({**first.externals, **externals}),
    )


def _apart(way: Transformation, taken: Collection[str]) -> Transformation:
    """The same, with other names for what it needs where another way has those."""
    names = {name: f"{name} behind" for name in way.externals if name in taken}
    if not names:
        return way

    def change(node: Node) -> Node:
        if isinstance(node, Read) and node.variable in names:
            return replace(node, variable=names[node.variable])
        return rebuild(node, change)

    externals = {
        names.get(name, name): replace(
            each,
            variable=names.get(name, name),
            argument=change(each.argument),
            keys=tuple((column, change(key)) for column, key in each.keys),
        )
        for name, each in way.externals.items()
    }
    return replace(way, step=ValueStep(node=change(way.node), function="fused"), externals=MappingProxyType(externals))


def _keys(externals: Mapping[str, ExternalValue]) -> list[Node]:
    return [key for each in externals.values() for _, key in each.keys]


def _variables(node: Node) -> set[str]:
    return {part.variable for part in walk(node) if isinstance(part, Read | ForEach)}
