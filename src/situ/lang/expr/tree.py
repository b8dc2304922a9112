"""The typed expression tree: what an expression means, after names, types and units are settled.

Every node knows its ``type`` and ``unit``, whether it may be null (``nullable``) and whether evaluating it
may fail (``can_fail``). Nodes are plain immutable data; both emitters, the interpreter, the printer
and the simplifier read this tree and nothing else. ``span`` says where a node was written and does not count
in equality.

What evaluation means
    The outcome of an expression is a value, null, or *failure*. Strict nodes fail if a part fails, and are
    else null if a part is null. AND is false if any part is false, else fails if any part fails, else is null if
    any part is null, else true; OR is its mirror image: neither depends on the order of its parts. CASE and
    coalesce look at their parts in order and see only those they need.

Doubles
    Values are finite. Inside an expression sums, differences and products follow IEEE 754, so they may overflow to an
    infinity or become NaN on the way. Comparisons take an infinity for what it is, a number beyond all others, and fail
    on NaN; every other use, the result of the whole expression included, fails on both. ``overflow`` says what a node
    of type double may hand to the node above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Any, cast

from situ.lang.expr.limits import Remembering, make_room, once
from situ.lang.expr.overload import Overflow, Overload
from situ.lang.records import replace
from situ.lang.types.model import BOOLEAN, DOUBLE, Primitive, Struct, Type, plain
from situ.lang.units import NO_UNIT, DoubleStep, Unit, double_steps

make_room()  # whoever has a tree recurses over it

NULL = Primitive("null")
"""The type of the literal NULL until its surroundings settle it."""

Span = tuple[int, int]
NOWHERE: Span = (0, 0)


class Each(Enum):
    """What is done with the elements of a list."""

    TRANSFORM = "transform"
    FILTER = "filter"
    EXISTS = "exists"
    FORALL = "forall"


def _span() -> Any:
    return field(default=NOWHERE, compare=False, repr=False, kw_only=True)


class _Tree(Remembering):
    """What every node knows of itself besides its own fields, worked out once: trees are asked often."""

    __slots__ = ()

    @once
    def size(self) -> int:
        """The number of nodes if parts that are shared are counted each time, as the engines would."""
        return 1 + sum(part.size for part in children(cast("Node", self)))

    @once
    def depth(self) -> int:
        return 1 + max((part.depth for part in children(cast("Node", self))), default=0)

    @once
    def choices(self) -> int:
        """How many choices, CASE and coalesce, stand inside each other here."""
        own = isinstance(self, Case | Coalesce)
        return own + max((part.choices for part in children(cast("Node", self))), default=0)


class _Condition(_Tree):
    """A node that is true, false or null."""

    __slots__ = ()
    type = BOOLEAN
    unit = NO_UNIT
    overflow = Overflow.NONE


@dataclass(frozen=True, slots=True)
class Literal(_Tree):
    """A constant, as the Python value that stands for it at run time."""

    value: Any
    type: Type
    unit: Unit = NO_UNIT
    span: Span = _span()

    @once
    def nullable(self) -> bool:
        return self.value is None

    can_fail = False
    overflow = Overflow.NONE


@dataclass(frozen=True, slots=True)
class Read(_Tree):
    """The value at ``path`` below a variable.

    ``optional`` says of the variable and of each step whether its value may be null. ``trusted`` is false
    where doubles may be NaN or infinite, because nothing has checked them.
    """

    variable: str
    path: tuple[str, ...]
    type: Type
    unit: Unit = NO_UNIT
    optional: tuple[bool, ...] = (False,)
    trusted: bool = True
    span: Span = _span()
    can_fail = False

    @once
    def nullable(self) -> bool:
        return any(self.optional)

    @once
    def overflow(self) -> Overflow:
        return Overflow.NONE if self.trusted or plain(self.type) != DOUBLE else Overflow.NAN


@dataclass(frozen=True, slots=True)
class Apply(_Tree):
    """A function or an operator of the table, with arguments of exactly the types it takes."""

    overload: Overload
    args: tuple[Node, ...]
    type: Type
    unit: Unit = NO_UNIT
    span: Span = _span()

    @property
    def constants(self) -> tuple[Any, ...]:
        """The values of the arguments that the overload takes as constants."""
        given = (self.args[place] for place in self.overload.constants if place < len(self.args))
        return tuple(arg.value for arg in given if isinstance(arg, Literal))

    @once
    def nullable(self) -> bool:
        return self.overload.may_be_null or any(arg.nullable for arg in self.args)

    @once
    def can_fail(self) -> bool:
        return self.overload.fails or any(
            arg.can_fail or fails_as_argument(arg, self.overload.tolerance(place))
            for place, arg in enumerate(self.args)
        )

    @once
    def overflow(self) -> Overflow:
        if self.overload.result == "element":
            return _unchecked(self.type, self.args[0])
        zero = [not isinstance(arg, Literal) or not arg.value for arg in self.args]
        return self.overload.overflow_of([arg.overflow for arg in self.args], zero)


@dataclass(frozen=True, slots=True)
class Coerce(_Tree):
    """An implicit step to a wider number type, or to another unit: ``value * scale + offset``.

    ``steps`` are the operations on doubles that this takes.
    """

    arg: Node
    type: Type
    unit: Unit = NO_UNIT
    scale: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)
    span: Span = _span()

    @once
    def steps(self) -> tuple[DoubleStep, ...]:
        return double_steps(self.scale, self.offset)

    @once
    def nullable(self) -> bool:
        return self.arg.nullable

    @once
    def can_fail(self) -> bool:
        return self.arg.can_fail

    @once
    def overflow(self) -> Overflow:
        """A conversion can overflow, but with a constant factor never makes NaN of a number."""
        if self.scale <= 1 and not self.offset:
            return self.arg.overflow
        return max(self.arg.overflow, Overflow.INFINITE)


@dataclass(frozen=True, slots=True)
class Compare(_Condition):
    """``left op right`` with op one of ``= <> < <= > >=``; both sides have the same type and unit."""

    op: str
    left: Node
    right: Node
    span: Span = _span()

    @once
    def nullable(self) -> bool:
        return self.left.nullable or self.right.nullable

    @once
    def can_fail(self) -> bool:
        return any(arg.can_fail or arg.overflow is Overflow.NAN for arg in (self.left, self.right))


@dataclass(frozen=True, slots=True)
class In(_Condition):
    """``item IN (values)``; the values are constants of the item's type, none of them null, each once."""

    item: Node
    values: tuple[Any, ...]
    span: Span = _span()

    @once
    def nullable(self) -> bool:
        return self.item.nullable

    @once
    def can_fail(self) -> bool:
        return self.item.can_fail or self.item.overflow is Overflow.NAN


@dataclass(frozen=True, slots=True)
class _Connection(_Condition):
    """Conditions taken together; their order does not count."""

    args: tuple[Node, ...]
    span: Span = _span()

    @once
    def nullable(self) -> bool:
        return any(arg.nullable for arg in self.args)

    @once
    def can_fail(self) -> bool:
        return any(arg.can_fail for arg in self.args)


class And(_Connection):
    """All of its parts."""

    __slots__ = ()


class Or(_Connection):
    """Any of its parts."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Not(_Condition):
    """The opposite; null stays null."""

    arg: Node
    span: Span = _span()

    @once
    def nullable(self) -> bool:
        return self.arg.nullable

    @once
    def can_fail(self) -> bool:
        return self.arg.can_fail


@dataclass(frozen=True, slots=True)
class IsNull(_Condition):
    """Whether there is no value; never null itself."""

    arg: Node
    span: Span = _span()
    nullable = False

    @once
    def can_fail(self) -> bool:
        return self.arg.can_fail or fails_as_argument(self.arg, Overflow.NONE)


@dataclass(frozen=True, slots=True)
class Case(_Tree):
    """The result of the first condition that is true, else ``otherwise``."""

    arms: tuple[tuple[Node, Node], ...]
    otherwise: Node
    type: Type
    unit: Unit = NO_UNIT
    span: Span = _span()
    overflow = Overflow.NONE

    @property
    def results(self) -> tuple[Node, ...]:
        return (*(result for _, result in self.arms), self.otherwise)

    @once
    def nullable(self) -> bool:
        return any(result.nullable for result in self.results)

    @once
    def can_fail(self) -> bool:
        return any(condition.can_fail for condition, _ in self.arms) or any(
            result.can_fail or fails_as_argument(result, Overflow.NONE) for result in self.results
        )


@dataclass(frozen=True, slots=True)
class Coalesce(_Tree):
    """The first of its parts that is not null."""

    args: tuple[Node, ...]
    type: Type
    unit: Unit = NO_UNIT
    span: Span = _span()
    overflow = Overflow.NONE

    @once
    def nullable(self) -> bool:
        return all(arg.nullable for arg in self.args)

    @once
    def can_fail(self) -> bool:
        return any(arg.can_fail or fails_as_argument(arg, Overflow.NONE) for arg in self.args)


@dataclass(frozen=True, slots=True)
class MakeStruct(_Tree):
    """``struct(a AS x, b AS y)``: never null, its attributes may be.

    With ``sparse``, attributes that are null are left out: so are values of declared types. A value of a subtype of
    what is declared in its place has a field ``$type`` with the name of that, first.
    """

    fields: tuple[tuple[str, Node], ...]
    type: Struct
    sparse: bool = False
    span: Span = _span()
    unit = NO_UNIT
    nullable = False
    overflow = Overflow.NONE

    @once
    def can_fail(self) -> bool:
        return any(part.can_fail or fails_as_argument(part, Overflow.NONE) for _, part in self.fields)


@dataclass(frozen=True, slots=True)
class Field(_Tree):
    """An attribute of a struct that an expression made or found in a list."""

    of: Node
    name: str
    type: Type
    unit: Unit = NO_UNIT
    optional: bool = False
    span: Span = _span()

    @once
    def nullable(self) -> bool:
        return self.optional or self.of.nullable

    @once
    def overflow(self) -> Overflow:
        return _unchecked(self.type, self.of)

    @once
    def can_fail(self) -> bool:
        return self.of.can_fail


@dataclass(frozen=True, slots=True)
class ForEach(_Tree):
    """``transform|filter|exists|forall(list, variable -> body)``."""

    kind: Each
    list: Node
    variable: str
    body: Node
    type: Type
    unit: Unit = NO_UNIT
    span: Span = _span()
    overflow = Overflow.NONE

    @once
    def nullable(self) -> bool:
        return self.list.nullable or (self.kind in (Each.EXISTS, Each.FORALL) and self.body.nullable)

    @once
    def can_fail(self) -> bool:
        return self.list.can_fail or self.body.can_fail or fails_as_argument(self.body, Overflow.NONE)


Node = (
    Literal | Read | Apply | Coerce | Compare | In | And | Or | Not | IsNull | Case | Coalesce | MakeStruct | Field
    | ForEach
)  # fmt: skip

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)
UNKNOWN = Literal(None, BOOLEAN)


def _unchecked(type: Type, source: Node) -> Overflow:
    """What a double taken out of a struct or list may be: anything, if nobody checked where that comes from."""
    if plain(type) != DOUBLE or isinstance(source, MakeStruct):
        return Overflow.NONE
    trusted = all(part.trusted for part in walk(source) if isinstance(part, Read))
    return Overflow.NONE if trusted else Overflow.NAN


def fails_as_argument(node: Node, tolerated: Overflow) -> bool:
    """Whether handing this node's double on needs a check that can fail."""
    return node.overflow > tolerated


def children(node: Node) -> tuple[Node, ...]:
    """The parts of a node, in the order they are written."""
    match node:
        case Literal() | Read():
            return ()
        case Apply(args=args) | And(args=args) | Or(args=args) | Coalesce(args=args):
            return args
        case Coerce(arg=arg) | Not(arg=arg) | IsNull(arg=arg) | Field(of=arg) | In(item=arg):
            return (arg,)
        case Compare(left=left, right=right):
            return (left, right)
        case Case(arms=arms, otherwise=otherwise):
            return (*(part for arm in arms for part in arm), otherwise)
        case MakeStruct(fields=fields):
            return tuple(part for _, part in fields)
        case ForEach(list=of, body=body):
            return (of, body)


def rebuild(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with ``change`` applied to each of its parts; itself if none of them changed."""
    before = children(node)
    after = tuple(change(part) for part in before)
    if all(old is new for old, new in zip(before, after, strict=True)):
        return node
    match node:
        case Literal() | Read():
            return node
        case Apply() | And() | Or() | Coalesce():
            return replace(node, args=after)
        case Coerce() | Not() | IsNull():
            return replace(node, arg=after[0])
        case Field():
            return replace(node, of=after[0])
        case In():
            return replace(node, item=after[0])
        case Compare():
            return replace(node, left=after[0], right=after[1])
        case Case():
            pairs = iter(after[:-1])
            return replace(node, arms=tuple(zip(pairs, pairs, strict=True)), otherwise=after[-1])
        case MakeStruct(fields=fields):
            return replace(node, fields=tuple((name, new) for (name, _), new in zip(fields, after, strict=True)))
        case ForEach():
            return replace(node, list=after[0], body=after[1])


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))
