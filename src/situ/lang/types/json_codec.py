"""Values of a declared type ↔ JSON values: encoders to the canonical form, strict decoders that find every fault.

Both are made once per type, of closures, and then run for every event. What was encoded decodes to the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from situ.lang.catalogue import EXTRA_ATTRIBUTE, NOT_A_SUBTYPE, REQUIRED_MISSING, VALUE_UNFIT
from situ.lang.problems import Problem, SituError, nearest
from situ.lang.types import Extra as Extra
from situ.lang.types.model import Attribute, Decimal, ListOf, Primitive, Struct, Type, plain
from situ.lang.types.scalars import PRINTERS, READERS, Reader, Unfit, decimal_reader, describe, print_decimal

if TYPE_CHECKING:
    from situ.lang.types.table import Types


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Values of a declared type → canonical JSON values.
#
# An encoder trusts its input: whoever makes values makes them fit.

TYPE_KEY = "$type"
"""Names the dynamic type of a struct where that is a strict subtype of the declared one."""
EXTRA_KEY = "$extra"
"""Holds the attributes of a struct that its type does not declare, where a project keeps them."""

Encoder = Callable[[Any], Any]


def encode(type: Type, value: Any, types: Types | None = None) -> Any:
    """The canonical JSON form of one value; for many use :func:`encoder`."""
    return encoder(type, types)(value)


def encoder(type: Type, types: Types | None = None) -> Encoder:
    """A function from values of this type to JSON values. Without ``types`` no subtypes are known."""
    return _EncoderCompiler(types).encoder(type)


class _EncoderCompiler:
    """Makes the closures; each struct once, whichever way it is reached."""

    def __init__(self, types: Types | None) -> None:
        self._types = types
        self._structs: dict[str, Encoder] = {}

    def encoder(self, type: Type) -> Encoder:
        bare = plain(type)
        match bare:
            case Primitive():
                return PRINTERS[bare]
            case Decimal():
                return print_decimal
            case ListOf():
                return _list_encoder(self.encoder(bare.element))
            case Struct():
                return self.struct(bare)
            case _:
                assert_never(bare)

    def struct(self, struct: Struct) -> Encoder:
        if struct.name and struct.name in self._structs:
            return self._structs[struct.name]
        below = self._types.subtypes(struct)[1:] if self._types and struct.name else ()
        others = {each.name: self.exactly(each) for each in below if isinstance(each, Struct)}
        result = _dynamic_encoder(self.exactly(struct), others)
        if struct.name:
            self._structs[struct.name] = result
        return result

    def exactly(self, struct: Struct) -> Encoder:
        return _struct_encoder(tuple((each.name, self.encoder(each.type)) for each in struct.attributes))


def _list_encoder(element: Encoder) -> Encoder:
    def run(value: Any) -> Any:
        return [None if item is None else element(item) for item in value]

    return run


def _dynamic_encoder(own: Encoder, others: Mapping[str, Encoder]) -> Encoder:
    if not others:
        return own

    def run(value: Any) -> Any:
        named = value.get(TYPE_KEY)
        return own(value) if named is None else {TYPE_KEY: named, **others[named](value)}

    return run


def _struct_encoder(steps: tuple[tuple[str, Encoder], ...]) -> Encoder:
    def run(value: Any) -> Any:
        result: dict[str, Any] = {}
        for name, step in steps:
            item = value.get(name)
            if item is not None:
                result[name] = step(item)
        if EXTRA_KEY in value:
            result[EXTRA_KEY] = value[EXTRA_KEY]
        return result

    return run


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# JSON values → values of a declared type, with every fault found at once.
#
# Values are plain: structs are dicts with the declared attributes only, lists are lists, single values as in
# :mod:`situ.lang.types.scalars`. An absent optional attribute stays absent, a missing one with a default gets it, null
# and missing are the same. ``"$type"`` is kept where it names a strict subtype, ``"$extra"`` holds undeclared
# attributes where those are kept.

MOST_PROBLEMS = 100
_MOST_COMPARED = 64


class Decoded(msgspec.Struct, frozen=True):
    """A value with what was wrong with it; without problems the value fits its type.

    ``dropped`` names the attributes that were left out because nobody declared them, as (type, attribute).
    """

    value: Any
    problems: tuple[Problem, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()


Decoder = Callable[[Any], Decoded]

# A place in a value: the place above and the step from it. Made only where a struct or list is entered; text is made of
# it only when something is wrong.
_Place = tuple[Any, str | int] | None
_Walk = Callable[[Any, _Place, "_Findings"], Any]


class _Enough(Exception):
    """So many faults that looking for more helps nobody."""


class _Findings:
    """What one run of a decoder noticed."""

    __slots__ = ("dropped", "problems")

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.dropped: list[tuple[str, str]] = []

    def add(self, problem: Problem) -> None:
        self.problems.append(problem)
        if len(self.problems) >= MOST_PROBLEMS:
            raise _Enough


def decoder(type: Type, types: Types | None = None, extra: Extra = "drop") -> Decoder:
    """A function from JSON values to values of this type. Without ``types`` no subtypes are known."""
    walk = _DecoderCompiler(types, extra).walk(type)

    def run(value: Any) -> Decoded:
        findings = _Findings()
        try:
            result = walk(value, None, findings)
        except _Enough:
            result = None
        if findings.problems:
            return Decoded(None, tuple(findings.problems), tuple(findings.dropped))
        return Decoded(result, (), tuple(findings.dropped)) if findings.dropped else Decoded(result)

    return run


def decode(type: Type, value: Any, types: Types | None = None, extra: Extra = "drop") -> Any:
    """The value of this type that a JSON value stands for; :class:`SituError` with all problems if it is none."""
    decoded = decoder(type, types, extra)(value)
    if decoded.problems:
        raise SituError(*decoded.problems)
    return decoded.value


def check_value(type: Type, value: Any, types: Types | None = None, extra: Extra = "drop") -> tuple[Problem, ...]:
    """All that is wrong with a JSON value as a value of this type, at most 100 problems."""
    return decoder(type, types, extra)(value).problems


class _DecoderCompiler:
    """Makes the closures; each struct once, whichever way it is reached."""

    def __init__(self, types: Types | None, extra: Extra) -> None:
        self._types = types
        self._extra = extra
        self._structs: dict[str, _Walk] = {}

    def walk(self, type: Type) -> _Walk:
        bare = plain(type)
        match bare:
            case Primitive() | Decimal():
                return _scalar_walk(_reader(bare), str(type))
            case ListOf():
                return _list_walk(self.any_of(bare.element), str(type))
            case Struct():
                return self.any_of(bare)
            case _:
                assert_never(bare)

    def any_of(self, type: Type) -> _Walk:
        """Like :meth:`walk`, a value of a subtype allowed where it says so."""
        if not isinstance(type, Struct):
            return self.walk(type)
        if type.name and type.name in self._structs:
            return self._structs[type.name]
        below = self._types.subtypes(type)[1:] if self._types and type.name else ()
        own = self.exactly(type)
        others = {each.name: self.exactly(each) for each in below if isinstance(each, Struct)}
        walk = _dynamic_walk(type, own, others)
        if type.name:
            self._structs[type.name] = walk
        return walk

    def exactly(self, struct: Struct) -> _Walk:
        steps = tuple(self.step(attribute) for attribute in struct.attributes)
        return _struct_walk(struct, steps, self._extra)

    def step(self, attribute: Attribute) -> _Step:
        bare = plain(attribute.type)
        default: Callable[[], Any] | None = None
        if attribute.default is not None:
            default = _default_maker(attribute)
        if isinstance(bare, Primitive | Decimal):
            return (attribute.name, _reader(bare), None, str(attribute.type), attribute.optional, default)
        return (attribute.name, None, self.walk(attribute.type), str(attribute.type), attribute.optional, default)


# name, reader of a single value or else walk of a deeper one, type as text, optional, maker of the default
_Step = tuple[str, Reader | None, _Walk | None, str, bool, Callable[[], Any] | None]


def _reader(type: Primitive | Decimal) -> Reader:
    return decimal_reader(type) if isinstance(type, Decimal) else READERS[type]


def _default_maker(attribute: Attribute) -> Callable[[], Any]:
    """Defaults that are structs or lists are made anew each time: whoever gets one may change it."""
    value = attribute.default
    if not isinstance(value, dict | list):
        return lambda: value
    written = encode(attribute.type, value)
    again = decoder(attribute.type, extra="keep")
    return lambda: again(written).value


def _scalar_walk(read: Reader, expected: str) -> _Walk:
    def walk(value: Any, place: _Place, findings: _Findings) -> Any:
        try:
            return read(value)
        except Unfit as error:
            findings.add(_unfit(place, value, expected, error.remedy))

    return walk


def _list_walk(element: _Walk, expected: str) -> _Walk:
    def walk(value: Any, place: _Place, findings: _Findings) -> Any:
        if type(value) is not list:
            findings.add(_unfit(place, value, expected, "Lists stand in square brackets."))
            return None
        return [None if item is None else element(item, (place, index), findings) for index, item in enumerate(value)]

    return walk


def _dynamic_walk(struct: Struct, own: _Walk, others: Mapping[str, _Walk]) -> _Walk:
    name = str(struct)

    def walk(value: Any, place: _Place, findings: _Findings) -> Any:
        if type(value) is not dict:
            findings.add(_unfit(place, value, name, "Structs are written as objects, {…}."))
            return None
        named = value.get(TYPE_KEY)
        if named is None or named == struct.name:
            return own(value, place, findings)
        other = others.get(named) if type(named) is str else None
        if other is None:
            found = describe(named)
            close = _close(named, others) if type(named) is str else ()
            findings.add(NOT_A_SUBTYPE(path=_path((place, TYPE_KEY)), found=found, type=name, nearest=close))
            return None
        result = other(value, place, findings)
        result[TYPE_KEY] = named
        return result

    return walk


def _struct_walk(struct: Struct, steps: tuple[_Step, ...], extra: Extra) -> _Walk:
    known = frozenset(step[0] for step in steps) | {TYPE_KEY}
    name = str(struct)

    def walk(value: Any, place: _Place, findings: _Findings) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for attribute, read, deeper, expected, optional, default in steps:
            item = value.get(attribute)
            if item is not None:
                if read is not None:
                    try:
                        result[attribute] = read(item)
                    except Unfit as error:
                        findings.add(_unfit((place, attribute), item, expected, error.remedy))
                elif deeper is not None:
                    result[attribute] = deeper(item, (place, attribute), findings)
            elif default is not None:
                result[attribute] = default()
            elif not optional:
                findings.add(REQUIRED_MISSING(path=_path((place, attribute)), type=expected))
        if not known.issuperset(value):
            _handle_extra(value, place, findings, result)
        return result

    def _handle_extra(value: Any, place: _Place, findings: _Findings, result: dict[str, Any]) -> None:
        undeclared = [key for key in value if key not in known]
        if extra == "drop":
            findings.dropped.extend((name, key) for key in undeclared)
        elif extra == "keep":
            result[EXTRA_KEY] = _kept(value, undeclared, place, findings)
        else:
            for key in undeclared:
                close = _close(key, known - {TYPE_KEY})
                findings.add(EXTRA_ATTRIBUTE(path=_path((place, key)), type=name, nearest=close))

    return walk


def _kept(value: Any, undeclared: list[str], place: _Place, findings: _Findings) -> dict[str, Any]:
    """What was kept before travels on; an attribute of that name that stands in the value itself is newer."""
    before = value.get(EXTRA_KEY)
    if before is not None and type(before) is not dict:
        findings.add(_unfit((place, EXTRA_KEY), before, "an object", ""))
        before = None
    return {**(before or {}), **{key: value[key] for key in undeclared if key != EXTRA_KEY}}


def _unfit(place: _Place, found: Any, expected: str, remedy: str) -> Problem:
    return VALUE_UNFIT(path=_path(place), found=describe(found), expected=expected, remedy=remedy)


def _path(place: _Place) -> str:
    """``lines[1].qty``; ``$`` is the value itself."""
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(f"[{step}]" if isinstance(step, int) else f".{_shown(step)}")
    return "".join(reversed(steps)).removeprefix(".") or "$"


def _shown(name: str) -> str:
    return name if name.isprintable() and len(name) <= 100 else describe(name[:100])


def _close(name: str, known: Collection[str]) -> tuple[str, ...]:
    """Similar names are looked for per event, so only where that is cheap."""
    return nearest(name, known) if max(len(known), len(name)) <= _MOST_COMPARED else ()
