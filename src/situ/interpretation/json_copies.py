"""What has the same text on both sides: structs that are made anew, under another name, of all that they had.

To values it matters that a struct is of another type now; to JSON it does not, as long as its attributes are the same
and stand in the same order. What is found here is handed on as it is, unread, with all below it.
"""

from __future__ import annotations

from collections.abc import Mapping

from situ.expr.tree import Case, Each, ForEach, IsNull, Literal, MakeStruct, Node, Read, rebuild
from situ.interpretation.bodies import DATA
from situ.types.model import ListOf, Struct, Type, plain
from situ.types.table import Types


def with_copies(node: Node, source: Struct, types: Types) -> Node:
    """The expression for text alone: a read in the place of whatever has the text of what is read."""
    return _Copies(types).copied(node, {DATA: source})


class _Copies:
    def __init__(self, types: Types) -> None:
        self._types = types

    def copied(self, node: Node, variables: Mapping[str, Type]) -> Node:
        """``variables`` are those in sight, with what they stand for."""
        if isinstance(node, ForEach):
            return self._each(node, variables)
        below = rebuild(node, lambda part: self.copied(part, variables))
        match below:
            case MakeStruct():
                return self._whole(below, variables) or below
            case Case(arms=((IsNull(arg=Read() as read), Literal(value=None)),), otherwise=Read() as found):
                return read if _same_place(read, found) else below
        return below

    def _each(self, node: ForEach, variables: Mapping[str, Type]) -> Node:
        of = self.copied(node.list, variables)
        listed = plain(of.type)
        if not isinstance(listed, ListOf):
            return node
        body = self.copied(node.body, {**variables, node.variable: listed.element})
        same = isinstance(body, Read) and body.variable == node.variable and not body.path
        if node.kind is Each.TRANSFORM and same and isinstance(of, Read):
            return of
        return ForEach(node.kind, of, node.variable, body, node.type, node.unit, span=node.span)

    def _whole(self, made: MakeStruct, variables: Mapping[str, Type]) -> Read | None:
        """The struct whose attributes these are: all of them, in their order, and no subtype has more."""
        first = made.fields[0][1] if made.fields else None
        if not made.sparse or not isinstance(first, Read) or not first.path:
            return None
        path = first.path[:-1]
        for name, part in made.fields:
            if not isinstance(part, Read) or part.variable != first.variable or part.path != (*path, name):
                return None
        struct = self._type_at(first.variable, path, variables)
        if not isinstance(struct, Struct) or len(self._types.subtypes(struct)) > 1:
            return None
        if tuple(each.name for each in struct.attributes) != tuple(name for name, _ in made.fields):
            return None
        return Read(first.variable, path, struct, optional=first.optional[:-1])

    def _type_at(self, variable: str, path: tuple[str, ...], variables: Mapping[str, Type]) -> Type | None:
        found = variables.get(variable)
        for step in path:
            struct = plain(found) if found is not None else None
            attribute = struct.attribute(step) if isinstance(struct, Struct) else None
            found = None if attribute is None else attribute.type
        return None if found is None else plain(found)


def _same_place(one: Read, other: Read) -> bool:
    return (one.variable, one.path) == (other.variable, other.path)
