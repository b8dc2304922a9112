"""Which texts of a project's files have a canonical spelling, and what it is.

Attributes and heads in ``types/`` and ``ontology.yaml``, signatures and expressions in ``functions/``, both in
``contexts/``, filters in ``clients/``, costs in ``quality/``. Knows the notation, not what names stand for: no other
file is needed to format one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from situ.lang.documents import MappingNode, Node, ScalarNode, SequenceNode
from situ.lang.expr.scope import parse_signature, split_definition
from situ.lang.expr.syntax import Syntax, locate_in, parse_syntax, spell
from situ.lang.problems import SituError
from situ.lang.types.model import (
    AttributeText,
    DecimalRef,
    ListRef,
    NameRef,
    TypeRef,
    format_head,
    parse_attribute,
    parse_head,
    parse_type,
)

_AROUND_OPERATOR = re.compile(r"\s*([*/^·])\s*")


class Respelling(NamedTuple):
    """A value or a key of a file, and its text in canonical spelling, which differs from what stands there."""

    scalar: ScalarNode
    text: str


def respell(root: Node, kind: str) -> Iterator[Respelling]:
    """All texts of a file of this kind that are spelled otherwise than they should be."""
    for scalar, spelling in _texts(root, kind):
        try:
            text = spelling(scalar.text)
        except SituError:
            continue  # not understood, and so left to `situ check`
        if text != scalar.text:
            yield Respelling(scalar, text)


def spell_expression(text: str) -> str:
    """An expression in canonical spelling; as it was if that would not read the same."""
    spelled = spell(text)
    before, after = parse_syntax(text, locate_in(text)), parse_syntax(spelled, locate_in(spelled))
    return spelled if _same(before, after) else text


def spell_attribute(text: str) -> str:
    return _attribute(parse_attribute(text))


def spell_head(text: str) -> str:
    head = parse_head(text)
    return format_head(head.name, tuple(_type(above) for above in head.supers))


def spell_signature(text: str) -> str:
    signature = parse_signature(text)
    result = _attribute(signature.result)
    if signature.converts:
        return f"{_attribute(signature.parameters[0].text)} -> {result}"
    return f"({', '.join(f'{each.name}: {_attribute(each.text)}' for each in signature.parameters)}) -> {result}"


def spell_definition(text: str) -> str:
    end, start = split_definition(text)
    return f"{spell_signature(text[:end])} = {spell_expression(text[start:])}"


_Spelling = Callable[[str], str]


def _texts(root: Node, kind: str) -> Iterator[tuple[ScalarNode, _Spelling]]:
    if kind in ("types", "contexts"):
        for section in ("types", "events"):
            for key, body in _entries(root, section):
                yield key, spell_head
                yield from _attributes(body)
    if kind in ("functions", "contexts"):
        for _, body in _entries(root, "functions"):
            yield from _scalar(body, spell_definition)
            yield from _scalar(_get(body, "signature"), spell_signature)
            for part in ("expr", "value", "key"):
                yield from _scalar(_get(body, part), spell_expression)
    elif kind == "ontology":
        for key, body in _entries(root, "concepts"):
            yield key, spell_head
            yield from _attributes(body)
    elif kind == "sources":
        for _, body in _entries(root, "pull"):
            yield from _attributes(_get(body, "columns"))
    elif kind == "clients":
        for _, client in _entries(root, "clients"):
            for _, body in _entries(client, "subscriptions"):
                yield from _scalar(_get(body, "where"), spell_expression)
    elif kind == "quality":
        for profile in _items(root, "profiles"):
            for _, body in _entries(profile, "capabilities"):
                yield from _scalar(_get(body, "cost"), spell_expression)
        for action in _items(root, "actions"):
            yield from _scalar(_get(action, "cost"), spell_expression)


def _attributes(body: Node | None) -> Iterator[tuple[ScalarNode, _Spelling]]:
    for _, form in body.entries if isinstance(body, MappingNode) else ():
        yield from _scalar(form, spell_attribute)
        yield from _scalar(_get(form, "type"), lambda text: _type(parse_type(text)))
        yield from _scalar(_get(form, "unit"), _unit)


def _entries(node: Node | None, key: str) -> tuple[tuple[ScalarNode, Node], ...]:
    below = _get(node, key)
    return below.entries if isinstance(below, MappingNode) else ()


def _items(node: Node | None, key: str) -> tuple[Node, ...]:
    below = _get(node, key)
    return below.items if isinstance(below, SequenceNode) else ()


def _get(node: Node | None, key: str) -> Node | None:
    return node.get(key) if isinstance(node, MappingNode) else None


def _scalar(node: Node | None, spelling: _Spelling) -> Iterator[tuple[ScalarNode, _Spelling]]:
    if isinstance(node, ScalarNode) and isinstance(node.value, str):
        yield node, spelling


def _attribute(written: AttributeText) -> str:
    words = ["optional"] if written.optional else []
    words.append(_type(written.type))
    if written.unit:
        words.append(_unit(written.unit))
    return " ".join(words)


def _type(ref: TypeRef) -> str:
    match ref:
        case NameRef(name=name):
            return name
        case DecimalRef(type=type):
            return str(type)
        case ListRef(element=element):
            return f"[{_type(element)}]"


def _unit(text: str) -> str:
    return " ".join(_AROUND_OPERATOR.sub(r"\1", text).split())


def _same(one: Syntax, other: Syntax) -> bool:
    """Equal but for places."""
    waiting = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        if (left.kind, left.text, len(left.parts)) != (right.kind, right.text, len(right.parts)):
            return False
        waiting.extend(zip(left.parts, right.parts, strict=True))
    return True
