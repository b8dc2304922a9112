"""From text to text by changing what was read, where the target looks much like the source.

Data is read into generated structs that have the fields of the target, in its order. What the target takes over stays
where it is, unread; what is computed is put in its place; what the target does not have is taken out. So an event costs
what changes in it, not what it has. Transformations of which this makes no plan take the way of
:class:`~situ.interpretation.json_texts.TextPlan`.

Nothing may be changed before the last that reads it has done so. In each *scope*, the event or a part that may be
missing or repeated, all values are computed first, then the scopes inside are done, then the values put in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from situ.expr.emit_python import Emitter
from situ.expr.tree import Case, Each, ForEach, IsNull, Literal, MakeStruct, Node, Read, walk
from situ.interpretation.json_texts import Need, Needs, NotPossible
from situ.types.encode import TYPE_KEY
from situ.types.model import Struct, plain
from situ.types.table import Types


@dataclass(slots=True)
class _Scope:
    """Lines of the function, by when they are to run; ``inner`` are scopes with the line that opens them."""

    parent: _Scope | None = None
    first: list[str] = field(default_factory=list)
    inner: list[tuple[str, _Scope]] = field(default_factory=list)
    last: list[str] = field(default_factory=list)

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


@dataclass(slots=True)
class _Object:
    """A struct that is read, and if ``made`` is given becomes that of the target: its fields, in their order."""

    need: Need
    made: MakeStruct | None = None
    names: dict[str, str] = field(default_factory=dict)


class PatchPlan(Needs):
    """``call`` reads text, changes what it has read into what is to be written, and writes that: one function."""

    def __init__(self, node: Node, source: Struct, types: Types, parameters: Sequence[str]) -> None:
        super().__init__(node, source, types)
        if not isinstance(node, MakeStruct):
            raise NotPossible
        self._objects: dict[int, _Object] = {}
        self._read: list[tuple[_Scope, Need]] = []
        self._changed: list[tuple[_Scope, Need]] = []
        self._held = 0
        self._emitter = _StructEmitter(parameters, self)
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

    def _claim(self, made: MakeStruct, need: Need) -> None:
        if need.computed or id(need) in self._objects or not isinstance(plain(need.type), Struct):
            raise NotPossible
        self._objects[id(need)] = _Object(need, made)

    def _claim_parts(self, made: MakeStruct, need: Need) -> None:
        """Find the parts that are changed in place, before any text is written that reads from them."""
        for name, part in made.fields:
            inner = self._inside(part, name, need)
            if inner is not None:
                made_inner, need_inner = inner
                self._claim(made_inner, need_inner)
                self._claim_parts(made_inner, need_inner)

    def _inside(self, part: Node, name: str, need: Need) -> tuple[MakeStruct, Need] | None:
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

    def _is_at(self, node: Node, need: Need | None) -> bool:
        return isinstance(node, Read) and need is not None and self.need(node) is need

    def _may_be_missing(self, need: Need, name: str) -> bool:
        struct = plain(need.type)
        attribute = struct.attribute(name) if isinstance(struct, Struct) else None
        return attribute is None or attribute.nullable

    # ── the lines ──

    def _record(self, made: MakeStruct, need: Need, at: Read, scope: _Scope) -> None:
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

    def _claimed(self, part: Node, below: Need) -> _Object | None:
        body = _unguarded(part)
        need: Need | None = below
        if isinstance(body, ForEach):
            body, need = _unguarded(body.body), below.elements
        found = self._objects.get(id(need)) if need is not None else None
        return found if found is not None and found.made is body else None

    def _part(self, claimed: _Object, part: Node, name: str, below: Need, at: Read, scope: _Scope) -> None:
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
                raise NotPossible

    # ── the reader ──

    def _field(self, need: Need, name: str) -> str:
        return self.names(need)[name]

    def names(self, need: Need) -> dict[str, str]:
        """Attributes may have any name, also one that Python reserves: fields are numbered."""
        found = self._objects.setdefault(id(need), _Object(need))
        if not found.names:
            fields = found.made.fields if found.made is not None else ()
            kept = [name for name, part in fields if not (isinstance(part, Literal) and part.value is None)]
            order = dict.fromkeys((*kept, *need.below))
            found.names = {name: f"f{number}" for number, name in enumerate(order)}
        return found.names

    def is_struct(self, need: Need) -> bool:
        return not need.computed and bool(need.below or id(need) in self._objects)

    def _shape(self, need: Need) -> Any:
        if need.computed:
            return self.whole(need.type)
        if need.elements is not None:
            return list[self._shape(need.elements) | None]  # type: ignore[misc]  # made at run time
        if not self.is_struct(need):
            return msgspec.Raw
        names = self.names(need)
        made = self._objects[id(need)].made
        kept = {name for name, _ in made.fields} if made is not None else set(names)
        fields: list[tuple[str, Any, Any]] = []
        for name, field_name in names.items():
            below = need.below.get(name)
            shape = str if name == TYPE_KEY else msgspec.Raw if below is None else self._shape(below)
            required = below is not None and name in kept and not self._may_be_missing(need, name)
            fields.append((field_name, shape, msgspec.NODEFAULT if required else None))
        renamed = {field_name: name for name, field_name in names.items()}
        return msgspec.defstruct("Data", fields, rename=renamed, kw_only=True, omit_defaults=True, gc=False)


class _StructEmitter(Emitter):
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
