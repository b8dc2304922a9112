"""What the files of ``functions/`` say, before anything is looked up or checked.

From the nodes of ``functions:`` this module makes declarations: names that can be used, signatures taken apart,
expressions as text, each with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from situ.catalogue import BAD_NAME, DECLARED_TWICE
from situ.documents import Document, Mapping, Node, Reader, Scalar
from situ.errors import Problems, SituError
from situ.expr.functions.lists import FORMS
from situ.expr.functions.table import FUNCTIONS, SYNONYMS
from situ.expr.signature import SignatureText, parse_signature, split_definition
from situ.expr.syntax import KEYWORDS, Locate
from situ.types.declare import is_nothing
from situ.types.syntax import LONGEST_NAME

FUNCTION_KEYS = ("signature", "expr")
"""The keys of a function's long form, all required."""

CALL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)[`\"]?\s*\(")
"""What may be a call, if it does not stand in a text."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FORM_NAMES = {name for form, _, _ in FORMS for name in CALL.findall(form)}
_RESERVED = {*FUNCTIONS, *SYNONYMS, *_FORM_NAMES, "if", "identity", *(word.lower() for word in KEYWORDS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionText:
    """A function taken apart: its signature, and its expression with its place."""

    name: str
    signature: SignatureText
    expression: str
    locate: Locate


def declare_functions(documents: Iterable[Document], problems: Problems) -> dict[str, FunctionText | None]:
    """The functions by name, each name once; None stands for one whose text is not understood."""
    declared = _each_once(_declarations(documents, Reader(problems)), problems)
    return {name: _write_out(each, problems) for name, each in declared.items()}


@dataclass(frozen=True, slots=True)
class _Declaration:
    key: Scalar
    body: Node
    read: Reader

    @property
    def name(self) -> str:
        return self.key.text


def _declarations(documents: Iterable[Document], read: Reader) -> Iterator[_Declaration]:
    for document in documents:
        if document.root is not None and is_nothing(document.root):
            read.problems.extend(document.problems)
            continue
        fields = read.document(document, optional=("functions",))
        node = fields.node("functions") if fields is not None else None
        if fields is None or node is None or is_nothing(node):
            continue
        for key, body in fields.entries("functions"):
            if has_free_name(key, read.problems):
                yield _Declaration(key, body, read)


def has_free_name(key: Scalar, problems: Problems) -> bool:
    """Whether a function can be called like this; if not, that is a problem."""
    if not _NAME.fullmatch(key.text) or len(key.text) > LONGEST_NAME:
        reason = "it is not made of letters, digits and `_`, or begins with a digit"
    elif key.text.lower() in _RESERVED:
        reason = "the expression language has that word already"
    else:
        return True
    remedy = "Choose another name."
    problems.add(BAD_NAME(key.location, name=key.text, what="a function", reason=reason, remedy=remedy))
    return False


def _each_once(declarations: Iterable[_Declaration], problems: Problems) -> dict[str, _Declaration]:
    """By name. Calls do not tell capitals from small letters, so names must differ in more."""
    result: dict[str, _Declaration] = {}
    firsts: dict[str, _Declaration] = {}
    for each in declarations:
        first = firsts.setdefault(each.name.lower(), each)
        if first is each:
            result[each.name] = each
        else:
            where = str(first.key.location)
            problems.add(DECLARED_TWICE(each.key.location, what="The function", name=each.name, first=where))
    return result


def _write_out(declaration: _Declaration, problems: Problems) -> FunctionText | None:
    try:
        if isinstance(declaration.body, Mapping):
            return _long_form(declaration, declaration.body)
        scalar = declaration.read.scalar(declaration.body)
        return None if scalar is None else _short_form(declaration.name, scalar)
    except SituError as error:
        problems.extend(error.problems)
        return None


def _short_form(name: str, scalar: Scalar) -> FunctionText:
    end, start = split_definition(scalar.text, scalar.locate)
    return FunctionText(
        name=name,
        signature=parse_signature(scalar.text[:end], scalar.locate),
        expression=scalar.text[start:],
        locate=lambda offset, length: scalar.locate(start + offset, length),
    )


def _long_form(declaration: _Declaration, body: Mapping) -> FunctionText | None:
    fields = declaration.read.fields(body, required=FUNCTION_KEYS)
    signature = fields.scalar("signature") if fields is not None else None
    expression = fields.scalar("expr") if fields is not None else None
    parsed = None if signature is None else parse_signature(signature.text, signature.locate)
    if parsed is None or expression is None:
        return None
    return FunctionText(name=declaration.name, signature=parsed, expression=expression.text, locate=expression.locate)
