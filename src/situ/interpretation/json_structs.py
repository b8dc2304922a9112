"""From the struct that an event was read into to the struct of the target, without any text between.

An event that has come in is a struct already (:mod:`situ.event.plans`), and what it becomes in root is one, too, from
which the ways out of root go on. What is copied is handed on, with all below it; text is made of a struct only where it
is to be sent. Structs hold what stands in JSON: of dates, decimals and the like the text, which can be copied and
written but not computed with. Transformations that do that, or that tell subtypes apart, have no plan here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET

from situ.event.plans import by_place, field_of, shape_of
from situ.expr.emit_python import Emitter, PythonFunction
from situ.expr.tree import Case, Coalesce, Each, ForEach, Literal, MakeStruct, Node, Read
from situ.interpretation.bodies import DATA
from situ.interpretation.json_texts import AS_IN_JSON, Need, Needs, NotPossible
from situ.types.model import INT, LONG, ListOf, Struct, Type, plain
from situ.types.table import Types


class StructPlan(Needs):
    """``call`` makes of a struct of the class ``takes`` that of the target; ``many`` makes them of some rows."""

    def __init__(self, node: Node, source: Struct, target: Struct, types: Types, parameters: Sequence[str]) -> None:
        super().__init__(node, source, types, apart=False)
        _check(self.root)
        self.takes: type[msgspec.Struct] = shape_of(source)
        self.made: dict[int, Struct] = {}
        """The structs that are made, by the identity of the node, and of which type."""
        self.node = self.written(node)
        self._place(self.node, target)
        emitter = _StructEmitter(parameters, self)
        text = emitter.finite(self.node)
        self.function = emitter.function(text)
        self.call: Callable[..., msgspec.Struct] = self.function.call
        self.many: Callable[..., list[msgspec.Struct]] = emitter.over_rows(text).call

    def _place(self, node: Node, wanted: Type) -> None:
        """See that values of the node look as readers of the wanted type expect them to."""
        match node:
            case Read() if (need := self.need(node)) is not None:
                if not _alike(need.type, wanted):
                    raise NotPossible
            case Literal(value=value) if not isinstance(value, dict | list):
                pass
            case MakeStruct():
                self._make(node, wanted)
            case Case(arms=arms, otherwise=otherwise):
                for part in (*(result for _, result in arms), otherwise):
                    self._place(part, wanted)
            case Coalesce(args=args):
                for part in args:
                    self._place(part, wanted)
            case ForEach(kind=Each.TRANSFORM, list=Read() as items, body=body) if self.need(items) is not None:
                listed = plain(wanted)
                if not isinstance(listed, ListOf):
                    raise NotPossible
                self._place(body, listed.element)
            case _ if _has_structs(node.type):
                raise NotPossible

    def _make(self, node: MakeStruct, wanted: Type) -> None:
        struct = plain(wanted)
        if not isinstance(struct, Struct) or self.made.setdefault(id(node), struct) is not struct:
            raise NotPossible
        given = dict(node.fields)
        in_order = [each for each in struct.attributes if each.name in given]
        if [each.name for each in in_order] != [name for name, _ in node.fields]:
            raise NotPossible
        lacking = {each.name for each in struct.attributes if each.name not in given or given[each.name].nullable}
        if any(each.name in lacking and not each.nullable for each in struct.attributes):
            raise NotPossible
        if not node.sparse and any(part.nullable for part in given.values()):
            raise NotPossible
        for each in in_order:
            self._place(given[each.name], each.type)

    def struct_at(self, read: Read, place: int) -> Struct | None:
        """The type of the struct of which this step of a path is an attribute; None if it is not in the data."""
        need = self.needs.get(read.variable)
        for step in read.path[:place]:
            need = need.below[step] if need is not None else None
        struct = None if need is None else plain(need.type)
        return struct if isinstance(struct, Struct) else None


class _StructEmitter(Emitter):
    def __init__(self, parameters: Sequence[str], plan: StructPlan) -> None:
        super().__init__(parameters)
        self._plan = plan
        self._unset = self._bind(UNSET)

    def over_rows(self, text: str) -> PythonFunction:
        """The same for each of a list of rows: calling a function costs as much as much of what it does."""
        data, made, add = self.names[DATA], self._temporary(), self._temporary()
        return self.block(
            f"    {made} = []\n    {add} = {made}.append\n"
            f"    for {data} in {data}:\n        {data} = {data}.value\n        {add}({text})\n    return {made}\n"
        )

    def attribute(self, of: str, node: Read, place: int) -> str:
        struct = self._plan.struct_at(node, place)
        if struct is None:
            return super().attribute(of, node, place)
        numbers = [number for number, each in enumerate(struct.attributes) if each.name == node.path[place]]
        if not numbers:
            raise NotPossible  # of a subtype, or its name
        text = f"{of}.{field_of(numbers[0])}"
        if not node.optional[place + 1]:
            return text
        held = self._temporary()
        return f"(None if ({held} := {text}) is {self._unset} else {held})"

    def _struct(self, node: MakeStruct) -> str:
        struct = self._plan.made.get(id(node))
        if struct is None:
            return super()._struct(node)
        given = dict(node.fields)
        named = [(field_of(number), given.get(each.name)) for number, each in enumerate(struct.attributes)]
        if by_place(struct):
            parts = [self._field(part) for _, part in named]
        else:
            parts = [f"{field}={self._field(part)}" for field, part in named if part is not None]
        return f"{self._bind(shape_of(struct))}({', '.join(parts)})"

    def _field(self, part: Node | None) -> str:
        if part is None or (isinstance(part, Literal) and part.value is None):
            return self._unset
        if not part.nullable:
            return self.finite(part)
        held = self._temporary()
        return f"({self._unset} if ({held} := {self.finite(part)}) is None else {held})"


def _check(need: Need) -> None:
    """Structs hold JSON: what is something else there cannot be computed with."""
    if need.computed and plain(need.type) not in AS_IN_JSON:
        raise NotPossible
    for each in need.below.values():
        _check(each)
    if need.elements is not None:
        _check(need.elements)


def _alike(type: Type, wanted: Type) -> bool:
    """Whether structs of the one can be read as those of the other."""
    one, other = plain(type), plain(wanted)
    if isinstance(one, ListOf) and isinstance(other, ListOf):
        return _alike(one.element, other.element)
    if isinstance(one, Struct) and isinstance(other, Struct):
        return [each.name for each in one.attributes] == [each.name for each in other.attributes] and all(
            _alike(each.type, another.type) for each, another in zip(one.attributes, other.attributes, strict=True)
        )
    return one == other or (one, other) == (INT, LONG)


def _has_structs(type: Type) -> bool:
    bare = plain(type)
    return isinstance(bare, Struct) or (isinstance(bare, ListOf) and _has_structs(bare.element))
