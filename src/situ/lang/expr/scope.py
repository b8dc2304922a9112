"""How functions of a project are written: ``(a: Point m) -> boolean = …``, conversions ``double m -> double yd = …``.

Turns the text of a signature into names and types that nobody has looked up yet, and prints looked-up ones back. The
notation of types is :mod:`situ.types.syntax`'s; what the expression means is :mod:`situ.expr.definitions`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn

from situ.catalogue import SIGNATURE_SYNTAX
from situ.errors import SituError
from situ.expr.scope import Variable
from situ.types.syntax import (
    ATTRIBUTE_NAME,
    LONGEST_NAME,
    ROOT_PREFIX,
    AttributeText,
    Locate,
    Place,
    format_type,
    nowhere,
    parse_attribute,
)
from situ.units import NO_UNIT

_ARROW = "->"
_MOST_PARAMETERS = 64
_NAMED = re.compile(rf"(?!{ROOT_PREFIX}\w)\w+\s*:")
_WORD = re.compile(r"\s*(\S{1,40})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterText:
    """``name: TYPE [UNIT]`` as written."""

    name: str
    text: AttributeText
    place: Place = field(default=nowhere, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureText:
    """A signature as written. A conversion has one parameter, called ``value``, and no brackets."""

    parameters: tuple[ParameterText, ...]
    result: AttributeText
    converts: bool


def split_definition(text: str, locate: Locate = nowhere) -> tuple[int, int]:
    """Where in ``SIGNATURE = EXPRESSION`` the signature ends and the expression begins.

    Types and units have no ``=``, so the first one behind the arrow is it.
    """
    arrow = text.find(_ARROW)
    equals = text.find("=", arrow + len(_ARROW)) if arrow >= 0 else -1
    if arrow < 0:
        _fail(text, len(text), locate, "`->` and the type of the result")
    if equals < 0:
        _fail(text, len(text), locate, "`=` and an expression")
    start = equals + 1
    while start < len(text) and text[start].isspace():
        start += 1
    if start == len(text):
        _fail(text, start, locate, "an expression")
    return equals, start


def parse_signature(text: str, locate: Locate = nowhere) -> SignatureText:
    """Read a signature; :class:`SituError` with INT416 or INT109 where it cannot be read."""
    arrow = text.find(_ARROW)
    if arrow < 0:
        _fail(text, len(text), locate, "`->` and the type of the result")
    opening = len(text) - len(text.lstrip())
    converts = text[opening : opening + 1] != "("
    if converts and (named := _NAMED.match(text, opening)):
        _fail(text, named.start(), locate, "`(` before parameters with names, or the type of `value`")
    if converts:
        only = _attribute(text, opening, arrow, locate, "the type of `value`")
        parameters: tuple[ParameterText, ...] = (ParameterText(name="value", text=only),)
    else:
        parameters = tuple(_parameters(text, opening, arrow, locate))
    result = _attribute(text, arrow + len(_ARROW), len(text), locate, "the type of the result")
    return SignatureText(parameters=parameters, result=result, converts=converts)


def print_signature(parameters: tuple[tuple[str, Variable], ...], result: Variable, *, converts: bool) -> str:
    """The canonical spelling of a signature: what :func:`parse_signature` reads back."""
    if converts:
        return f"{_typed(parameters[0][1])} {_ARROW} {_typed(result)}"
    listed = ", ".join(f"{name}: {_typed(variable)}" for name, variable in parameters)
    return f"({listed}) {_ARROW} {_typed(result)}"


def _typed(variable: Variable) -> str:
    words = ["optional"] if variable.optional else []
    words.append(format_type(variable.type))
    if variable.unit != NO_UNIT:
        words.append(str(variable.unit))
    return " ".join(words)


def _parameters(text: str, opening: int, arrow: int, locate: Locate) -> Iterator[ParameterText]:
    closing = len(text[:arrow].rstrip()) - 1
    if closing <= opening or text[closing] != ")":
        _fail(text, closing + 1, locate, "`)` before the arrow")
    pieces = list(_pieces(text, opening + 1, closing)) if text[opening + 1 : closing].strip() else []
    if len(pieces) > _MOST_PARAMETERS:
        _fail(text, pieces[_MOST_PARAMETERS][0], locate, f"at most {_MOST_PARAMETERS} parameters")
    for start, end in pieces:
        if not text[start:end].strip():
            _fail(text, start, locate, "a parameter: `name: TYPE [UNIT]`")
        yield _parameter(text, start, end, locate)


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The stretches between commas; those inside of ``decimal(18,2)`` do not count."""
    depth = 0
    for index in range(start, end):
        character = text[index]
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "," and depth == 0:
            yield start, index
            start = index + 1
    yield start, end


def _parameter(text: str, start: int, end: int, locate: Locate) -> ParameterText:
    colon = text.find(":", start, end)
    name = text[start : colon if colon >= 0 else end].strip()
    begin = start + len(text[start:end]) - len(text[start:end].lstrip())
    if not ATTRIBUTE_NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        _fail(text, begin, locate, "the name of a parameter: `name: TYPE [UNIT]`")
    if colon < 0:
        _fail(text, begin + len(name), locate, "`:` and a type")
    written = _attribute(text, colon + 1, end, locate, f"the type of `{name}`")
    return ParameterText(name=name, text=written, place=partial(locate, begin, len(name)))


def _attribute(text: str, start: int, end: int, locate: Locate, expected: str) -> AttributeText:
    if not text[start:end].strip():
        _fail(text, start, locate, expected)
    return parse_attribute(text[start:end], lambda offset, length: locate(start + offset, length))


def _fail(text: str, at: int, locate: Locate, expected: str) -> NoReturn:
    word = _WORD.match(text, at)
    found = word[1] if word else ""
    place = locate(word.start(1) if word else len(text), max(1, len(found)))
    raise SituError(SIGNATURE_SYNTAX(place, found=f"`{found}`" if found else "the end", expected=expected))
