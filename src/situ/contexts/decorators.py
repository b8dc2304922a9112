"""Contexts in Python: decorators on dataclasses and functions that declare what a file of ``contexts/`` would.

`head_of` and `struct_of` make a type of a dataclass; `context`, `maps_to`, `transform_with` and `conv_function` collect
declarations; `declared_contexts` gives them as data. Nothing is looked up and nothing runs: whoever loads the data
finds what is wrong with it.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, is_dataclass
from types import FunctionType, MappingProxyType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from situ.contexts.model import ROOT
from situ.lang.catalogue import CODE_FROM_CLIENT, DIRECTION_MISSING, UNKNOWN_FUNCTION
from situ.lang.problems import SituError, nearest
from situ.lang.records import replace
from situ.lang.types.model import format_head

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Dataclasses → types, in the words of the files: ``price: Annotated[Money, Unit("USD")]`` is ``price: Money USD``.
# Another dataclass is a type by its name. Whether that is declared, and where, is not known here.


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of an attribute.

    >>> speed = Annotated[float, situ.Unit("km/h")]
    """

    name: str


@dataclass(frozen=True, slots=True)
class Typed:
    """The type of an attribute where Python has no word for it.

    >>> price = Annotated[Decimal, situ.Typed("decimal(18,2)")]
    """

    name: str


PRIMITIVES: Mapping[Any, str] = MappingProxyType(
    {
        bool: "boolean",
        int: "long",
        float: "double",
        str: "string",
        bytes: "bytes",
        dt.date: "date",
        dt.datetime: "timestamp",
        dt.timedelta: "duration",
    }
)


def head_of(cls: type[Any]) -> str:
    """The name of a class, with the dataclasses that it extends."""
    return format_head(cls.__name__, tuple(each.__name__ for each in cls.__bases__ if is_dataclass(each)))


def struct_of(cls: type[Any]) -> dict[str, Any]:
    """The attributes that a dataclass adds to those of the classes above it."""
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise TypeError(f"{cls.__name__}: {error.name!r} is not known where the class stands") from error
    own = inspect.get_annotations(cls)
    return {each.name: _attribute(cls, each, hints[each.name]) for each in dataclasses.fields(cls) if each.name in own}


def _attribute(cls: type[Any], field: dataclasses.Field[Any], hint: Any) -> Any:
    try:
        type, unit, optional = _type(hint)
        default = _default(field)
    except TypeError as error:
        raise TypeError(f"{cls.__name__}.{field.name}: {error}") from None
    if default is None:
        return " ".join([*(["optional"] if optional else []), type, *([unit] if unit else [])])
    form = {"type": type, "unit": unit, "optional": optional, "default": default}
    return {key: value for key, value in form.items() if value or key == "default"}


def _type(hint: Any) -> tuple[str, str, bool]:
    """Type, unit, and whether it may be missing."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        typed = [each.name for each in arguments[1:] if isinstance(each, Typed)]
        type, unit, optional = _type_in(arguments[0], typed)
        return type, next((each.name for each in arguments[1:] if isinstance(each, Unit)), unit), optional
    if origin in (Union, types.UnionType):
        others = [each for each in arguments if each is not types.NoneType]
        if len(others) == 1 and len(arguments) == 2:
            type, unit, _ = _type(others[0])
            return type, unit, True
    if origin is list and len(arguments) == 1:
        type, unit, optional = _type(arguments[0])
        if not optional:
            return f"[{type}]", unit, False
    if isinstance(hint, str | typing.ForwardRef) or hint is decimal.Decimal:
        raise TypeError('say which type it is: Annotated[…, Typed("decimal(18,2)")]')
    if hint in PRIMITIVES:
        return PRIMITIVES[hint], "", False
    if inspect.isclass(hint) and is_dataclass(hint):
        return hint.__name__, "", False
    raise TypeError(f"{hint!r} is no type of events; there are primitives, dataclasses, list[…] and … | None")


def _type_in(hint: Any, typed: list[str]) -> tuple[str, str, bool]:
    """What is said in words counts; that it may be missing is still Python's to say."""
    if not typed:
        return _type(hint)
    optional = get_origin(hint) in (Union, types.UnionType) and types.NoneType in get_args(hint)
    return typed[0], "", optional


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not MISSING:
        return _in_json(field.default)
    return None if field.default_factory is MISSING else _in_json(field.default_factory())


def _in_json(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case decimal.Decimal():
            return str(value)
        case list():
            return [_in_json(each) for each in value]
        case _ if is_dataclass(value) and not inspect.isclass(value):
            return {each.name: _in_json(getattr(value, each.name)) for each in dataclasses.fields(value)}
        case _:
            raise TypeError(f"{value!r} cannot be the default of an attribute")


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Decorators, and what they collected as data.

Way = Literal["in", "out", "both"]
T = TypeVar("T")

_MARK = "__situ_declared__"
_WAYS = ("in", "out", "both")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Map:
    name: str
    direction: Way
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    function: str
    pattern: str
    direction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionDeclaration:
    """A function between units: put on a class, it belongs to the context of that class."""

    name: str
    parameter: str
    signature: str
    body: Mapping[str, Any]
    context: str = ""

    def __call__(self, decorated: T) -> T:
        if not isinstance(decorated, FunctionType):
            return _mark(decorated, functions=(self,))
        if self.context:
            place = (self.context, _key(self))
            _members[place] = replace(_members[place], what=decorated)
        return decorated


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """What the decorators of one class say, in the order written."""

    maps: tuple[_Map, ...] = ()
    rules: tuple[_Rule, ...] = ()
    functions: tuple[ConversionDeclaration, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """Something that belongs to a context: a class, a declaration of a function, or a function of Python."""

    context: str
    extends: str
    event: bool
    units: Mapping[str, str]
    what: Any

    @property
    def declared(self) -> _Declared:
        """Read when it is asked for: decorators may stand in any order."""
        if isinstance(self.what, ConversionDeclaration):
            return _Declared(functions=(self.what,))
        return _marked(self.what)


_members: dict[tuple[str, str], _Member] = {}
"""By context and by what it is called in which module: what is declared anew, in a notebook, replaces what was."""


# ── decorators ────────────────────────────────────────────────────────────────────────────────────


def context(
    id: str, *, extends: str = ROOT, event: bool = False, units: Mapping[str, str] = MappingProxyType({})
) -> Callable[[T], T]:
    """The dataclass, or the function of :func:`conv_function`, belongs to this context.

    A class with a mapping is an event type, one without is a part of others unless ``event`` says so. ``units`` are
    those that the context adds and that are not physical: ``{"USD": "currency"}``.

    >>> @situ.context("toll", event=True, units={"USD": "currency"})
    ... @dataclass
    ... class Charged:
    ...     truck: str
    ...     fee: Annotated[float, situ.Unit("USD")]
    >>> situ.declared_contexts(Charged)[0]["events"]
    {'Charged': {'truck': 'string', 'fee': 'double USD'}}
    """

    def decorate(decorated: T) -> T:
        known = isinstance(decorated, ConversionDeclaration | FunctionType)
        if not known and not (isinstance(decorated, type) and is_dataclass(decorated)):
            raise TypeError(f"@context is for dataclasses and conv_function(…), not for {decorated!r}")
        member = _Member(context=id, extends=extends, event=event, units=units, what=decorated)
        _members[id, _key(decorated)] = member
        return decorated

    return decorate


def maps_to(name: str, /, *, direction: Way = "out", **attributes: Any) -> Callable[[T], T]:
    """Events of root's type of this name become events of the class (``out``), or the other way round (``in``).

    Keywords are what does not go by name: target attribute → path of the source, ``{"expr": …}`` or ``{"default": …}``.

    >>> @situ.context("imperial")
    ... @situ.maps_to("TruckSeen", plate="truck")
    ... @dataclass
    ... class Passed:
    ...     plate: str
    ...     speed: Annotated[float, situ.Unit("mi/h")]
    >>> situ.declared_contexts(Passed)[0]["maps"]
    [{'out': 'TruckSeen -> Passed', 'attributes': {'plate': 'truck'}}]
    """
    if direction not in _WAYS:
        raise ValueError(f"direction is 'in', 'out' or 'both', not {direction!r}")
    mapping = _Map(name=name, direction=direction, attributes=MappingProxyType(attributes))
    return lambda decorated: _mark(decorated, maps=(mapping,))


def transform_with(function: str, /, *, pattern: str = "", direction: str = "") -> Callable[[T], T]:
    """What the function converts is converted by it: the rule *type of its parameter* ``-> function``.

    ``pattern`` narrows it, and is needed for a function that is not declared in Python. The direction is that of the
    mappings of the class, else of its context.

    >>> shout = situ.conv_function(type="string", expr="upper(x)", name="shout", context="loud")
    >>> @situ.context("loud")
    ... @situ.transform_with("shout")
    ... @situ.maps_to("TruckSeen")
    ... @dataclass
    ... class TruckSeen:
    ...     truck: str
    >>> situ.declared_contexts(shout, TruckSeen)[0]["rules"]
    {'out': ['string -> shout']}
    """
    rule = _Rule(function=function, pattern=pattern, direction=direction)
    return lambda decorated: _mark(decorated, rules=(rule,))


def conv_function(
    source: str = "",
    target: str = "",
    *,
    expr: str = "",
    name: str = "",
    type: str = "double",
    result: str = "",
    context: str = "",
    extends: str = ROOT,
    **more: Any,
) -> ConversionDeclaration:
    """A function from one unit to another, found by them, or by its ``name``.

    It converts values of ``type`` to values of ``result``, which is the same type if nothing is said. ``more`` is what
    the long form of a function knows, such as ``time="event"`` or ``lookup={…}``. With ``context`` it is declared
    there; otherwise by the class that it decorates, or by ``context("us")(conv_function(…))``.

    >>> knots = situ.conv_function("m/s", "kn", expr="x * 1.94384", context="harbour")
    >>> situ.declared_contexts(knots)[0]["functions"]
    {'m_s_to_kn': {'signature': 'double m/s -> double kn', 'expr': 'x * 1.94384'}}
    """
    signature = f"{f'{type} {source}'.strip()} -> {f'{result or type} {target}'.strip()}"
    body = {**more, "expr": expr} if expr else dict(more)
    declaration = ConversionDeclaration(
        name=name or f"{_word(source or type)}_to_{_word(target or result or type)}",
        parameter=type,
        signature=signature,
        body=MappingProxyType(body),
        context=context,
    )
    if context:
        _declare(context, extends, declaration)
    return declaration


def _declare(id: str, extends: str, declaration: ConversionDeclaration) -> None:
    context(id, extends=extends)(declaration)


def _mark(decorated: T, **more: tuple[Any, ...]) -> T:
    declared = _marked(decorated)
    added: dict[str, Any] = {name: (*value, *getattr(declared, name)) for name, value in more.items()}
    setattr(decorated, _MARK, replace(declared, **added))
    return decorated


def _marked(decorated: Any) -> _Declared:
    """What decorators say of this class itself; what they say of classes above it is theirs."""
    declared: _Declared = vars(decorated).get(_MARK, _Declared())
    return declared


def _key(decorated: Any) -> str:
    if isinstance(decorated, ConversionDeclaration):
        return f"function {decorated.name}"
    return f"{decorated.__module__}.{decorated.__qualname__}"


def _word(text: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in text).strip("_").lower()


# ── as data ───────────────────────────────────────────────────────────────────────────────────────


def declared_contexts(*members: Any) -> tuple[dict[str, Any], ...]:
    """What was declared, or only what these classes and functions declare: for each context what its file would say.

    :class:`SituError` with INT411 for Python functions: only expressions are sent.

    >>> @situ.context("tally", event=True)
    ... @dataclass
    ... class Counted:
    ...     trucks: int
    >>> situ.declared_contexts(Counted)
    ({'context': 'tally', 'extends': 'root', 'events': {'Counted': {'trucks': 'long'}}},)
    """
    chosen = [each for each in _members.values() if not members or any(each.what is member for member in members)]
    code = [
        CODE_FROM_CLIENT(None, name=each.what.__qualname__) for each in chosen if isinstance(each.what, FunctionType)
    ]
    if code:
        raise SituError(*code)
    ids = dict.fromkeys(each.context for each in chosen)
    return tuple(_file(id, [each for each in chosen if each.context == id]) for id in ids)


def _file(id: str, members: list[_Member]) -> dict[str, Any]:
    result: dict[str, Any] = {"context": id}
    if id != ROOT:
        result["extends"] = _parent(id, members)
    units = {name: kind for each in members for name, kind in each.units.items()}
    classes = [each for each in members if isinstance(each.what, type)]
    events = [each for each in classes if each.event or each.declared.maps]
    names = [each.what.__name__ for each in classes]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"the context {id!r} has two classes of the name {', '.join(sorted(twice))}")
    sections: dict[str, Any] = {
        "units": units,
        "types": {head_of(each.what): struct_of(each.what) for each in classes if each not in events},
        "events": {head_of(each.what): struct_of(each.what) for each in events},
        "maps": [_mapped(each.what.__name__, mapping) for each in classes for mapping in each.declared.maps],
        "rules": _rules(id, members),
        "functions": {
            each.name: {"signature": each.signature, **each.body}
            for member in members
            for each in member.declared.functions
        },
    }
    return {**result, **{name: section for name, section in sections.items() if section}}


def _parent(id: str, members: Iterable[_Member]) -> str:
    """Whoever says nothing says root; somebody has to say otherwise only once."""
    said = {each.extends for each in members} - {ROOT}
    if len(said) > 1:
        raise ValueError(f"the context {id!r} extends one other, not {' and '.join(sorted(said))}")
    return said.pop() if said else ROOT


def _mapped(own: str, mapping: _Map) -> dict[str, Any]:
    texts = {"in": f"{own} -> {mapping.name}", "out": f"{mapping.name} -> {own}", "both": f"{mapping.name} <-> {own}"}
    result: dict[str, Any] = {mapping.direction: texts[mapping.direction]}
    return {**result, "attributes": dict(mapping.attributes)} if mapping.attributes else result


def _rules(id: str, members: list[_Member]) -> Any:
    """Rules grouped by direction; a flat list where nothing says which, for the loader to find out."""
    others = [each for each in _members.values() if each.context != id]
    parameters = {each.name: each.parameter for member in (*others, *members) for each in member.declared.functions}
    found: list[tuple[str, str]] = []
    for member in members:
        for rule in member.declared.rules:
            pattern = rule.pattern or parameters.get(rule.function, "")
            if not pattern:
                near = nearest(rule.function, parameters)
                raise SituError(UNKNOWN_FUNCTION(None, name=rule.function, context=id, nearest=near))
            own = {way for each in member.declared.maps for way in _ways(each.direction)}
            ways = (rule.direction,) if rule.direction else sorted(own, reverse=True) or ("",)
            found += [(way, f"{pattern} -> {rule.function}") for way in ways]
    if all(not way for way, _ in found):
        return [rule for _, rule in found]
    if any(not way for way, _ in found):
        every = {way for each in members for mapping in each.declared.maps for way in _ways(mapping.direction)}
        if len(every) != 1:
            raise SituError(DIRECTION_MISSING(None, context=id, reason="its mappings go both ways"))
        found = [(way or next(iter(every)), rule) for way, rule in found]
    grouped = {way: list(dict.fromkeys(rule for other, rule in found if other == way)) for way in ("out", "in")}
    return {way: rules for way, rules in grouped.items() if rules}


def _ways(direction: str) -> tuple[str, ...]:
    return ("out", "in") if direction == "both" else (direction,)
