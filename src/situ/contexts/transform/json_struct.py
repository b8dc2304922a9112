"""Fast plans for transformations over msgspec structs: from struct to struct, and from text to text by patching.

`StructPlan` makes the struct of the target of the one that an event was read into. `PatchPlan` reads JSON, changes what
it has read and writes it. Both raise `NoTextPlan` for transformations that they cannot do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from situ.contexts.function_bodies import DATA
from situ.contexts.transform.json_text import AS_IN_JSON, NoTextPlan, PlaceUse, SourceUsage
from situ.event.data_reader import by_place, field_of, shape_of
from situ.lang.expr.checker.coerce import NOTHING_THERE
from situ.lang.expr.emit.python import Emitter, PythonFunction
from situ.lang.expr.tree import Apply, Case, Coalesce, Each, ForEach, IsNull, Literal, MakeStruct, Node, Read, walk
from situ.lang.types.json_codec import TYPE_KEY
from situ.lang.types.model import INT, LONG, ListOf, Struct, Type, plain
from situ.lang.types.table import Types

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Struct to struct, without any text between. An event that has come in is a struct already
# (:mod:`situ.event.data_reader`), and what it becomes in root is one, too, from which the ways out of root go on. What
# is copied is handed on, with all below it; text is made of a struct only where it is to be sent. Structs hold what
# stands in JSON: of dates, decimals and the like the text, which can be copied and written but not computed with.
# Transformations that do that, or that tell subtypes apart, have no plan here.


class StructPlan(SourceUsage):
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
        self.function = emitter.over_one(text)
        self.call: Callable[..., msgspec.Struct] = self.function.call
        self.many: Callable[..., list[msgspec.Struct]] = emitter.over_rows(text).call

    def _place(self, node: Node, wanted: Type) -> None:
        """See that values of the node look as readers of the wanted type expect them to."""
        match node:
            case Read() if (need := self.need(node)) is not None:
                if not _alike(need.type, wanted):
                    raise NoTextPlan
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
                    raise NoTextPlan
                self._place(body, listed.element)
            case Apply(overload=overload) if overload is NOTHING_THERE:
                pass  # it gives no value at all
            case _ if _has_structs(node.type):
                raise NoTextPlan

    def _make(self, node: MakeStruct, wanted: Type) -> None:
        struct = plain(wanted)
        if not isinstance(struct, Struct) or self.made.setdefault(id(node), struct) is not struct:
            raise NoTextPlan
        given = dict(node.fields)
        in_order = [each for each in struct.attributes if each.name in given]
        if [each.name for each in in_order] != [name for name, _ in node.fields]:
            raise NoTextPlan
        if any(each.name not in given and not each.nullable for each in struct.attributes):
            raise NoTextPlan
        if not node.sparse and any(given[each.name].nullable and each.nullable for each in in_order):
            raise NoTextPlan
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
        self._looked_up: dict[tuple[int, tuple[str, ...]], tuple[str, str]] = {}
        """Names for rows of tables, and how they are found, by the function that finds them and the keys."""

    def over_one(self, text: str) -> PythonFunction:
        """The struct of one."""
        return self.block(f"{self._found(4)}    return {text}\n")

    def over_rows(self, text: str) -> PythonFunction:
        """The same for each of a list of rows: calling a function costs as much as much of what it does."""
        data, made, add = self.names[DATA], self._temporary(), self._temporary()
        return self.block(
            f"    {made} = []\n    {add} = {made}.append\n"
            f"    for {data} in {data}:\n        {data} = {data}.value\n"
            f"{self._found(8)}        {add}({text})\n    return {made}\n"
        )

    def _found(self, indent: int) -> str:
        return "".join(f"{' ' * indent}{name} = {call}\n" for name, call in self._looked_up.values())

    def _apply(self, node: Apply) -> str:
        """What is looked up by keys that every event has is looked up first, and once: each column that is read of a
        row asks for it again. Should that fail where it would not have been asked for, the slow way is taken."""
        text = super()._apply(node)
        if not node.overload.lookup or not all(_is_always_there(each) for each in node.args):
            return text
        key = (id(node.overload), tuple(self.value(each) for each in node.args))
        name, _ = self._looked_up.setdefault(key, (f"t{self.temporaries + 1}", text))
        self.temporaries += 1
        return name

    def _part(self, text: str) -> str:
        """Functions of their own see what was looked up so far: later ones, which they do not ask for, need not be."""
        names = [name for name, _ in self._looked_up.values()]
        self.lambdas += names
        try:
            return super()._part(text)
        finally:
            del self.lambdas[len(self.lambdas) - len(names) :]

    def attribute(self, of: str, node: Read, place: int) -> str:
        struct = self._plan.struct_at(node, place)
        if struct is None:
            return super().attribute(of, node, place)
        numbers = [number for number, each in enumerate(struct.attributes) if each.name == node.path[place]]
        if not numbers:
            raise NoTextPlan  # of a subtype, or its name
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
        needed = {field_of(number) for number, each in enumerate(struct.attributes) if not each.nullable}
        if by_place(struct):
            parts = [self._field(part, needed=field in needed) for field, part in named]
        else:
            parts = [
                f"{field}={self._field(part, needed=field in needed)}" for field, part in named if part is not None
            ]
        return f"{self._bind(shape_of(struct))}({', '.join(parts)})"

    def _field(self, part: Node | None, *, needed: bool) -> str:
        """``needed``: without a value there is no such struct, and the slow way says what there is then."""
        if part is None or (isinstance(part, Literal) and part.value is None):
            return _NOTHING_THERE if needed else self._unset
        if not part.nullable:
            return self.finite(part)
        held = self._temporary()
        otherwise = _NOTHING_THERE if needed else self._unset
        return f"({otherwise} if ({held} := {self.finite(part)}) is None else {held})"


_NOTHING_THERE = "_fail('nothing there')"


def _is_always_there(node: Node) -> bool:
    """Whether it is read of the data, and never null."""
    return isinstance(node, Read) and node.variable == DATA and not node.nullable


def _check(need: PlaceUse) -> None:
    """Structs hold JSON: what is something else there cannot be computed with."""
    if need.computed and plain(need.type) not in AS_IN_JSON:
        raise NoTextPlan
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Text to text by changing what was read, where the target looks much like the source. Data is read into generated
# structs that have the fields of the target, in its order. What the target takes over stays where it is, unread; what
# is computed is put in its place; what the target does not have is taken out. So an event costs what changes in it, not
# what it has. Transformations of which this makes no plan take the way of
# :class:`~situ.contexts.transform.json_text.TextPlan`.
#
# Nothing may be changed before the last that reads it has done so. In each *scope*, the event or a part that may be
# missing or repeated, all values are computed first, then the scopes inside are done, then the values put in.


class _Scope(msgspec.Struct):
    """Lines of the function, by when they are to run; ``inner`` are scopes with the line that opens them."""

    parent: _Scope | None = None
    first: list[str] = msgspec.field(default_factory=list)
    inner: list[tuple[str, _Scope]] = msgspec.field(default_factory=list)
    last: list[str] = msgspec.field(default_factory=list)

    def lines(self, indent: str) -> str:
        own = "".join(f"{indent}{line}\n" for line in self.first)
        inner = ((opening, scope.lines(indent + "    ")) for opening, scope in self.inner)
        within = "".join(f"{indent}{opening}\n{lines}" for opening, lines in inner if lines)
        return own + within + "".join(f"{indent}{line}\n" for line in self.last)

    def is_around(self, other: _Scope) -> bool:
        each: _Scope | None = other
        while each is not None and each is not self:
            each = each.parent
        return each is self


class _Object(msgspec.Struct):
    """A struct that is read, and if ``made`` is given becomes that of the target: its fields, in their order."""

    need: PlaceUse
    made: MakeStruct | None = None
    names: dict[str, str] = msgspec.field(default_factory=dict)


class PatchPlan(SourceUsage):
    """``call`` reads text, changes what it has read into what is to be written, and writes that: one function."""

    def __init__(self, node: Node, source: Struct, types: Types, parameters: Sequence[str]) -> None:
        super().__init__(node, source, types)
        if not isinstance(node, MakeStruct):
            raise NoTextPlan
        self._objects: dict[int, _Object] = {}
        self._read: list[tuple[_Scope, PlaceUse]] = []
        self._changed: list[tuple[_Scope, PlaceUse]] = []
        self._held = 0
        self._emitter = _PatchEmitter(parameters, self)
        whole = _Scope()
        start = Read("data", (), source)
        self._claim(node, self.root)
        self._claim_parts(node, self.root)
        self._record(node, self.root, start, whole)
        self._check_order()
        self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(self._shape(self.root)).decode
        data = self._emitter.names["data"]
        read, write = (self._emitter.bind(each) for each in (self.decode, msgspec.json.Encoder().encode))
        lines = f"    {data} = {read}({data})\n{whole.lines('    ')}    return {write}({data})\n"
        self.function = self._emitter.block(lines)
        self.call: Callable[..., bytes] = self.function.call

    # ── which structs are changed in place ──

    def _claim(self, made: MakeStruct, need: PlaceUse) -> None:
        if need.computed or id(need) in self._objects or not isinstance(plain(need.type), Struct):
            raise NoTextPlan
        self._objects[id(need)] = _Object(need, made)

    def _claim_parts(self, made: MakeStruct, need: PlaceUse) -> None:
        """Find the parts that are changed in place, before any text is written that reads from them."""
        for name, part in made.fields:
            inner = self._inside(part, name, need)
            if inner is not None:
                made_inner, need_inner = inner
                self._claim(made_inner, need_inner)
                self._claim_parts(made_inner, need_inner)

    def _inside(self, part: Node, name: str, need: PlaceUse) -> tuple[MakeStruct, PlaceUse] | None:
        """A part that is made of the struct of its own name, or of the elements of that list."""
        below = need.below.get(name)
        if below is None or below.computed:
            return None
        body = _unguarded(part)
        if isinstance(body, ForEach) and body.kind is Each.TRANSFORM and self._is_at(body.list, below):
            body, below = _unguarded(body.body), below.elements
        if not isinstance(body, MakeStruct) or below is None or below.computed or id(below) in self._objects:
            return None
        if not isinstance(plain(below.type), Struct) or not below.below:
            return None
        missing = part is body and self._may_be_missing(need, name)
        takes_over = any(
            isinstance(each, Read) and self._is_at(each, below.below.get(step)) for step, each in body.fields
        )
        return (body, below) if takes_over and not missing else None

    def _is_at(self, node: Node, need: PlaceUse | None) -> bool:
        return isinstance(node, Read) and need is not None and self.need(node) is need

    def _may_be_missing(self, need: PlaceUse, name: str) -> bool:
        struct = plain(need.type)
        attribute = struct.attribute(name) if isinstance(struct, Struct) else None
        return attribute is None or attribute.nullable

    # ── the lines ──

    def _record(self, made: MakeStruct, need: PlaceUse, at: Read, scope: _Scope) -> None:
        text = self._emitter.path(at)
        for name, part in made.fields:
            below = need.below.get(name)
            if isinstance(part, Literal) and part.value is None:
                continue
            if below is not None and not below.computed and self._is_at(part, below):
                continue  # stays where it is
            if below is not None and (claimed := self._claimed(part, below)) is not None:
                self._part(claimed, part, name, below, at, scope)
                continue
            self._held += 1
            held = f"h{self._held}"
            self._note_reads(part, scope)
            scope.first.append(f"{held} = {self._emitter.finite(self.written(part))}")
            scope.last.append(f"{text}.{self._field(need, name)} = {held}")
            if below is not None:
                self._changed.append((scope, below))
        written = {name for name, part in made.fields if not (isinstance(part, Literal) and part.value is None)}
        for name, below in need.below.items():
            if name not in written:
                scope.last.append(f"{text}.{self._field(need, name)} = None")
                self._changed.append((scope, below))

    def _claimed(self, part: Node, below: PlaceUse) -> _Object | None:
        body = _unguarded(part)
        need: PlaceUse | None = below
        if isinstance(body, ForEach):
            body, need = _unguarded(body.body), below.elements
        found = self._objects.get(id(need)) if need is not None else None
        return found if found is not None and found.made is body else None

    def _part(self, claimed: _Object, part: Node, name: str, below: PlaceUse, at: Read, scope: _Scope) -> None:
        assert claimed.made is not None
        path = (*at.path, name)
        here = Read(at.variable, path, below.type, optional=(False,) * (len(path) + 1))
        text = self._emitter.path(here)
        body = _unguarded(part)
        if isinstance(body, ForEach):
            inner = self._inner(scope, f"for {self._emitter.enter(body.variable)} in {text} or ():")
            item = Read(body.variable, (), claimed.need.type)
            each = self._inner(inner, f"if {self._emitter.path(item)} is not None:")
            self._record(claimed.made, claimed.need, item, each)
            self._emitter.leave()
        elif body is part:
            self._record(claimed.made, claimed.need, here, scope)
        else:
            inner = self._inner(scope, f"if {text} is not None:")
            self._record(claimed.made, claimed.need, here, inner)

    def _inner(self, scope: _Scope, opening: str) -> _Scope:
        made = _Scope(scope)
        scope.inner.append((opening, made))
        return made

    # ── order ──

    def _note_reads(self, node: Node, scope: _Scope) -> None:
        for read in walk(node):
            if isinstance(read, Read) and read.variable in self.needs:
                need = self.needs[read.variable]
                for step in read.path:
                    need = need.below[step]
                    self._read.append((scope, need))

    def _check_order(self) -> None:
        """What is read in a scope may be changed there or around it: that comes later. Elsewhere it could be before."""
        changed: dict[int, list[_Scope]] = {}
        for scope, need in self._changed:
            changed.setdefault(id(need), []).append(scope)
        for scope, need in self._read:
            if not all(other.is_around(scope) for other in changed.get(id(need), ())):
                raise NoTextPlan

    # ── the reader ──

    def _field(self, need: PlaceUse, name: str) -> str:
        return self.names(need)[name]

    def names(self, need: PlaceUse) -> dict[str, str]:
        """Attributes may have any name, also one that Python reserves: fields are numbered."""
        found = self._objects.setdefault(id(need), _Object(need))
        if not found.names:
            fields = found.made.fields if found.made is not None else ()
            kept = [name for name, part in fields if not (isinstance(part, Literal) and part.value is None)]
            order = dict.fromkeys((*kept, *need.below))
            found.names = {name: f"f{number}" for number, name in enumerate(order)}
        return found.names

    def is_struct(self, need: PlaceUse) -> bool:
        return not need.computed and bool(need.below or id(need) in self._objects)

    def _shape(self, need: PlaceUse) -> Any:
        if need.computed:
            return self.whole(need.type)
        if need.elements is not None:
            return list[self._shape(need.elements) | None]  # type: ignore[misc]  # made at run time
        if not self.is_struct(need):
            return msgspec.Raw
        names = self.names(need)
        made = self._objects[id(need)].made
        # What was there and is null now is left out: a field without a default would be written as null.
        kept = {name for name, part in made.fields if not part.nullable} if made is not None else set(names)
        fields: list[tuple[str, Any, Any]] = []
        for name, field_name in names.items():
            below = need.below.get(name)
            shape = str if name == TYPE_KEY else msgspec.Raw if below is None else self._shape(below)
            required = below is not None and name in kept and not self._may_be_missing(need, name)
            fields.append((field_name, shape, msgspec.NODEFAULT if required else None))
        renamed = {field_name: name for name, field_name in names.items()}
        return msgspec.defstruct("Data", fields, rename=renamed, kw_only=True, omit_defaults=True, gc=False)


class _PatchEmitter(Emitter):
    """Reads from the generated structs where there are some, and from dicts where values were read whole."""

    def __init__(self, parameters: Sequence[str], plan: PatchPlan) -> None:
        super().__init__(parameters)
        self._plan = plan

    def attribute(self, of: str, node: Read, place: int) -> str:
        need = self._plan.needs.get(node.variable)
        for step in node.path[:place]:
            need = need.below[step] if need is not None else None
        if need is None or not self._plan.is_struct(need):
            return super().attribute(of, node, place)
        return f"{of}.{self._plan.names(need)[node.path[place]]}"

    def path(self, node: Read) -> str:
        return self._read(node)

    def bind(self, value: Any) -> str:
        """A name for a constant."""
        return self._bind(value)

    def enter(self, variable: str) -> str:
        """The name of a variable of a loop, which all that is written until :meth:`leave` sees."""
        name = f"v{len(self.lambdas) + 1}"
        self.names[variable] = name
        self.lambdas.append(name)
        return name

    def leave(self) -> None:
        self.lambdas.pop()


def _unguarded(node: Node) -> Node:
    """What is made of a value if it is there."""
    match node:
        case Case(arms=((IsNull(arg=Read()), Literal(value=None)),), otherwise=otherwise):
            return otherwise
        case _:
            return node
