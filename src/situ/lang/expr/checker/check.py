"""What an expression costs at most, told from its tree: patterns to match, text to hold, work for Spark.

The number of nodes alone bounds neither memory nor time: a text can be put together with itself many times over, and
some forms that are harmless one by one are too much for an engine inside each other.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator

from situ.catalogue import TOO_LARGE
from situ.errors import Location, Problem, SituError
from situ.expr.emit_spark import emit_spark
from situ.expr.runtime_text import LONGEST_TEXT
from situ.expr.tree import (
    And,
    Apply,
    Case,
    Coalesce,
    Each,
    ForEach,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
    Read,
    children,
    walk,
)
from situ.types.model import BYTES, STRING, plain

MOST_TEXT = 64
"""How many times the text of an event an expression may hold at once."""

MOST_PATTERNS = 4096
"""Characters of LIKE patterns in an expression: matching takes up to their number times that of the text."""

_EVENT = 1 << 20  # characters: the largest event, unless a project says otherwise
_ELEMENTS = _EVENT // 2


def bound_problems(node: Node, location: Location) -> Iterator[Problem]:
    """What is too much about an expression that is right otherwise."""
    patterns = sum(
        len(part.constants[0]) for part in walk(node) if isinstance(part, Apply) and part.overload.name == "like"
    )
    if patterns > MOST_PATTERNS:
        yield TOO_LARGE(location, what="characters of LIKE patterns", limit=MOST_PATTERNS)
    if _Texts().held(node).most > MOST_TEXT:
        yield TOO_LARGE(location, what="times the text of its event to be held at once", limit=MOST_TEXT)
    try:
        emit_spark(node)
    except SituError as error:
        yield from (problem.code(location, **problem.values) for problem in error.problems)


class _Volume:
    """An amount of text: so many times the text of each path, and so many events' worth besides.

    Paths are different parts of one event, so what counts is the one that is used most.
    """

    __slots__ = ("besides", "paths")

    def __init__(self, paths: dict[tuple[str, ...], float] | None = None, besides: float = 0.0) -> None:
        self.paths, self.besides = paths or {}, besides

    @property
    def most(self) -> float:
        return self.besides + max(self.paths.values(), default=0.0)

    def times(self, factor: float) -> _Volume:
        return _Volume({key: count * factor for key, count in self.paths.items()}, self.besides * factor)


_NOTHING = _Volume()


def _sum(volumes: Iterable[_Volume]) -> _Volume:
    return _together(volumes, operator.add)


def _either(volumes: Iterable[_Volume]) -> _Volume:
    """Any of these, whichever is most."""
    return _together(volumes, max)


def _together(volumes: Iterable[_Volume], join: Callable[[float, float], float]) -> _Volume:
    paths: dict[tuple[str, ...], float] = {}
    besides = 0.0
    for volume in volumes:
        besides = join(besides, volume.besides)
        for path, count in volume.paths.items():
            paths[path] = join(paths.get(path, 0.0), count)
    return _Volume(paths, besides)


class _Texts:
    """Volumes of the nodes of one tree; each node is looked at once, however often it is used."""

    def __init__(self) -> None:
        self._held: dict[int, _Volume] = {}

    def held(self, node: Node) -> _Volume:
        """The text made and not yet let go of while the node is computed; that of the event is there anyway."""
        if id(node) not in self._held:
            self._held[id(node)] = self._hold(node)
        return self._held[id(node)]

    def _hold(self, node: Node) -> _Volume:
        match node:
            case Literal() | Read():
                return _NOTHING
            case And() | Or() | Not() | IsNull() | Case() | Coalesce():
                return _either(self.held(part) for part in children(node))
            case ForEach():
                return _sum((self.held(node.list), self._in_elements(node)))
            case Apply() if plain(node.type) in (STRING, BYTES):
                return _sum((*(self.held(part) for part in node.args), self.length(node)))
            case _:
                return _sum(self.held(part) for part in children(node))

    def _in_elements(self, node: ForEach) -> _Volume:
        """All elements together are part of the event; what else is put into each is there for each of them."""
        body = self.held(node.body)
        own = sum(count for path, count in body.paths.items() if path[0] == node.variable)
        others = {path: count for path, count in body.paths.items() if path[0] != node.variable}
        within = _reads(node.list).times(own)
        if node.kind is not Each.TRANSFORM:
            return _sum((within, _Volume(others, body.besides)))
        # The checker sees to it that all copies of a path together are no more than an event.
        return _sum((within, _Volume({}, sum(others.values()) + body.besides * _ELEMENTS)))

    def length(self, node: Node) -> _Volume:
        """How long the text of the node can be."""
        match node:
            case Literal(value=value):
                return _Volume({}, len(value) / _EVENT if isinstance(value, str | bytes) else 0.0)
            case Case(results=results):
                return _either(self.length(part) for part in results)
            case Coalesce(args=args):
                return _either(self.length(part) for part in args)
            case Apply(overload=overload, args=args):
                match overload.name:
                    case "||":
                        return _sum(self.length(part) for part in args)
                    case "least" | "greatest":
                        return _either(self.length(part) for part in args)
                    case "replace":
                        return self._replaced(args)
                    case "element_at":
                        return _reads(node)
                    case _ if plain(args[0].type) in (STRING, BYTES):
                        return self.length(args[0])
                return _NOTHING
            case _:
                return _reads(node)

    def _replaced(self, args: tuple[Node, ...]) -> _Volume:
        old, new = (len(arg.value) if isinstance(arg, Literal) and arg.value is not None else None for arg in args[1:])
        factor = max(1.0, new / max(1, old or 1)) if new is not None else LONGEST_TEXT
        longest = self.length(args[0]).times(factor)
        most = LONGEST_TEXT / _EVENT  # beyond it the function fails
        return longest if longest.most < most else _Volume({}, most)


def _reads(node: Node) -> _Volume:
    return _Volume({(read.variable, *read.path): 1.0 for read in walk(node) if isinstance(read, Read)})
