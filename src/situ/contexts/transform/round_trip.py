"""Whether an event may reach those of its own context as it was sent, past both transformations.

It may if what they would get otherwise is the same: the type comes back to itself, and so does every attribute,
untouched or by functions of which one undoes the other. Else they would see other values than somebody who is told
later, out of the root log. Numbers that go to another unit and back are the same but for their last digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from fractions import Fraction
from typing import assert_never

import msgspec

from situ.contexts.function_bodies import DATA
from situ.contexts.model import TableLookup
from situ.contexts.transform.function_calls import ExternalValue
from situ.contexts.transform.steps import (
    ChoiceStep,
    DefaultStep,
    ListStep,
    Step,
    StructStep,
    ValueStep,
    below,
    is_nothing,
)
from situ.contexts.transform.transformation import Transformation
from situ.lang.expr.checker.coerce import LINEAR_DECIMAL, LINEAR_WHOLE
from situ.lang.expr.tree import Apply, Case, Coerce, IsNull, Literal, Node, Read, walk
from situ.lang.types.model import DOUBLE, ListOf, Struct, Type, plain

_NEARLY = Fraction(1, 10**12)


class ShortcutPolicy(StrEnum):
    """When events reach those of their own context as they were sent."""

    SAFE = "safe"
    ORIGINAL = "original"
    NEVER = "never"


class Shortcut(msgspec.Struct, frozen=True, kw_only=True):
    """``comes_back``: the type does. ``reason`` is why the values do not, or the type; empty if it is safe."""

    comes_back: bool
    reason: str = ""

    @property
    def safe(self) -> bool:
        return not self.reason

    def taken(self, policy: str) -> bool:
        """Whether originals are delivered under this setting."""
        return policy != ShortcutPolicy.NEVER and (self.safe or (self.comes_back and policy == ShortcutPolicy.ORIGINAL))


def check_shortcut(
    inbound: Transformation | None, outbound: Mapping[str, Transformation], *, keeps_extra: bool = False
) -> Shortcut:
    """For events that come in by this way, and those who get them by the ways out of root into the same context.

    ``keeps_extra``: events keep attributes that nobody declared, which transformations do not hand on.
    """
    if inbound is None:
        return Shortcut(comes_back=False, reason="no way in")
    back = outbound.get(inbound.target.name)
    if back is None:
        return Shortcut(comes_back=False, reason="no way out")
    if back.target != inbound.source:
        return Shortcut(comes_back=False, reason=f"comes back as {back.target.name}")
    if inbound.is_identity and back.is_identity:
        return Shortcut(comes_back=True)
    reason = next(_differences(inbound, back), "")
    if not reason and keeps_extra:
        reason = "undeclared attributes are kept, and do not come back"
    return Shortcut(comes_back=True, reason=reason)


def _differences(inbound: Transformation, back: Transformation) -> Iterator[str]:
    for way in (inbound, back):
        for external in way.externals.values():
            yield f"`{external.function.name}` {_does(external)}"
    for way, where in ((inbound, "in"), (back, "out")):
        if way.lossy:
            yield f"the way {where} loses something"
    yield from _Round(inbound).differences(back.step, "")


def _does(external: ExternalValue) -> str:
    if external.of is None:
        return "runs Python"
    return "looks up" if isinstance(external.of, TableLookup) else "remembers"


class _Round:
    """Follows every value from where it is delivered back to where it came from."""

    def __init__(self, inbound: Transformation) -> None:
        self._in, self._event = inbound.step, inbound.source
        self._types = inbound.types

    def differences(self, step: Step, path: str) -> Iterator[str]:
        """Why what is delivered at a place of the event is not what was sent there."""
        match step:
            case ValueStep():
                yield from self._value(step, path)
            case StructStep(fields=fields):
                yield from self._subtypes(path)
                for name, part in fields:
                    yield from self.differences(part, below(path, name))
            case ListStep(element=element):
                yield from self.differences(element, f"{path}[]")
            case ChoiceStep():
                if not _only_for_null(step):
                    yield f"{_shown(path)} depends on more than its value"
                yield from self.differences(step.otherwise, path)
            case DefaultStep(of=of):
                # The default is that of the event as it was sent, which has it already: nothing is filled in here.
                yield from self.differences(of, path)
            case _:
                assert_never(step)

    def _subtypes(self, path: str) -> Iterator[str]:
        """A struct that is rebuilt comes back as what is declared."""
        type = _type_at(self._event, path)
        if isinstance(type, Struct) and len(self._types.subtypes(type)) > 1:
            yield f"{_shown(path)} may be of a subtype of {type}, and is rebuilt"

    def _value(self, out: ValueStep, path: str) -> Iterator[str]:
        if is_nothing(out):
            yield f"{_shown(path)} is dropped"
        elif not (out.source or out.copied or out.conversion):
            yield f"{_shown(path)} is made anew"
        else:
            yield from self._from(self._in, _tokens(out.source), out, path)

    def _from(self, step: Step, rest: tuple[str, ...], out: ValueStep, path: str) -> Iterator[str]:
        """What is read at ``rest`` below what the way in makes here, and becomes ``out`` at ``path``."""
        match step:
            case ValueStep(copied=True):
                yield from self._undone(out, step, "".join(_joined(step.source, rest)), path)
            case ValueStep() if rest:
                yield f"{_shown(path)} is part of what `{step.function}` makes"
            case ValueStep():
                yield from self._undone(out, step, step.source, path)
            case DefaultStep(of=of, default=default):
                if default is not None:
                    yield f"a default stands in for {_shown(path)}"
                yield from self._from(of, rest, out, path)
            case ChoiceStep():
                if not _only_for_null(step):
                    yield f"{_shown(path)} depends on more than its value"
                yield from self._from(step.otherwise, rest, out, path)
            case StructStep(fields=fields) if rest:
                yield from self._from(dict(fields)[rest[0]], rest[1:], out, path)
            case ListStep(element=element) if rest:
                yield from self._from(element, rest[1:], out, path)
            case StructStep() | ListStep():
                yield from self._rebuilt(step, out, path)
            case _:
                assert_never(step)

    def _rebuilt(self, step: StructStep | ListStep, out: ValueStep, path: str) -> Iterator[str]:
        """The way in makes a value of its parts, and the way out takes it as a whole."""
        if not out.copied:
            yield f"`{out.function}` makes {_shown(path)} of what was rebuilt"
        elif isinstance(step, ListStep):
            yield from self._from(step.element, (), out, f"{path}[]")
        else:
            yield from self._subtypes(path)
            for name, part in step.fields:
                yield from self._from(part, (), out, below(path, name))

    def _undone(self, out: ValueStep, into: ValueStep, source: str, path: str) -> Iterator[str]:
        if is_nothing(into):
            yield f"{_shown(path)} is dropped"
        elif source != path:
            yield f"{_shown(path)} comes back from {_shown(source)}" if source else f"{_shown(path)} is made anew"
        elif not (_is_declared_inverse(out, into) or _is_linear_inverse(out, into)):
            yield f"{_shown(path)}: {_named(out)} does not undo {_named(into)}"


def _only_for_null(step: ChoiceStep) -> bool:
    """What is not there stays away, and nothing else matters."""
    return all(not dynamic and is_nothing(part) for _, dynamic, part in step.arms)


# ── inverse pairs ─────────────────────────────────────────────────────────────────────────────────


def _is_declared_inverse(out: ValueStep, into: ValueStep) -> bool:
    one, other = out.conversion, into.conversion
    return one is not None and other is not None and (one.inverse == other.name or other.inverse == one.name)


def _is_linear_inverse(out: ValueStep, into: ValueStep) -> bool:
    back, there = linear(out), linear(into)
    if back is None or there is None:
        return False
    shift = back[0] * there[1]
    size = max(abs(shift), abs(back[1]))
    return abs(back[0] * there[0] - 1) <= _NEARLY and abs(shift + back[1]) <= size * _NEARLY


_Linear = tuple[Fraction, Fraction] | None


def linear(value: ValueStep) -> _Linear:
    """Factor and offset by which a value becomes another; None if it is more than that, or reads anything else."""
    path = value.source.rpartition("[]")[2].lstrip(".")
    own = tuple(path.split(".")) if path else ()
    reads = [part for part in walk(value.node) if isinstance(part, Read)]
    if any(read.path != own or (read.variable == DATA) != ("[]" not in value.source) for read in reads):
        return None
    return _linear(value.node)


def _linear(node: Node) -> _Linear:
    match node:
        case Read():
            return Fraction(1), Fraction(0)
        case Coerce(arg=arg):
            return _then(_linear(arg), node.scale, node.offset)
        case Case(arms=((IsNull(arg=Read()), Literal(value=None)),), otherwise=otherwise):
            return _linear(otherwise)
        case Apply(overload=overload, args=(arg, *_)) if overload in (LINEAR_DECIMAL, LINEAR_WHOLE):
            factor, offset = (Fraction(each) for each in node.constants[:2])
            return _then(_linear(arg), factor, offset)
        case Apply(overload=overload, args=args) if plain(node.type) == DOUBLE:
            return _operated(overload.name, args)
    return None


def _operated(name: str, args: tuple[Node, ...]) -> _Linear:
    one = Fraction(1)
    match name, args:
        case "negate", (arg,):
            return _then(_linear(arg), -one)
        case "+", (arg, Literal(value=constant)) | (Literal(value=constant), arg) if constant is not None:
            return _then(_linear(arg), one, Fraction(constant))
        case "-", (arg, Literal(value=constant)) if constant is not None:
            return _then(_linear(arg), one, -Fraction(constant))
        case "-", (Literal(value=constant), arg) if constant is not None:
            return _then(_linear(arg), -one, Fraction(constant))
        case "*", (arg, Literal(value=constant)) | (Literal(value=constant), arg) if constant is not None:
            return _then(_linear(arg), Fraction(constant))
        case "/", (arg, Literal(value=constant)) if constant:
            return _then(_linear(arg), 1 / Fraction(constant))
    return None


def _then(inner: _Linear, factor: Fraction, offset: Fraction = Fraction(0)) -> _Linear:
    return None if inner is None else (inner[0] * factor, inner[1] * factor + offset)


# ── places ────────────────────────────────────────────────────────────────────────────────────────


def _tokens(path: str) -> tuple[str, ...]:
    """``crates[].spare`` step by step; the elements of a list are a step of their own."""
    return tuple(token for part in path.replace("[]", ".[]").split(".") if (token := part))


def _joined(path: str, rest: tuple[str, ...]) -> Iterator[str]:
    yield path
    for token in rest:
        yield token if token == "[]" or not path else f".{token}"
        path = path or token


def _type_at(event: Struct, path: str) -> Type:
    found: Type = event
    for token in _tokens(path):
        bare = plain(found)
        if isinstance(bare, ListOf):
            found = bare.element
        elif isinstance(bare, Struct) and (attribute := bare.attribute(token)) is not None:
            found = attribute.type
    return plain(found)


def _shown(path: str) -> str:
    return f"`{path}`" if path else "the event"


def _named(value: ValueStep) -> str:
    return f"`{value.function}`" if not value.copied else "copying"
