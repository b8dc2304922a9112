"""The functions of a project: what the files of ``functions/`` declare, each checked against its signature."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from situ.lang.catalogue import BAD_NAME, DECLARED_TWICE, FUNCTION_CYCLE, FUNCTION_INVALID
from situ.lang.documents import Document, MappingNode, Node, Reader, ScalarNode, is_nothing, parse_json
from situ.lang.expr.checker.check import check_result
from situ.lang.expr.faults import NO_FAULTS, Faults
from situ.lang.expr.functions.table import FORMS, FUNCTIONS, SYNONYMS
from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.expr.scope import (
    Definition,
    NameScope,
    SignatureText,
    Variable,
    envelope,
    parse_signature,
    print_signature,
    split_definition,
)
from situ.lang.expr.syntax import KEYWORDS, Locate, Syntax, parse_syntax, spell
from situ.lang.expr.tree import Node as ExpressionNode
from situ.lang.problems import Location, Problem, Problems, SituError
from situ.lang.types.dependency_order import dependency_order
from situ.lang.types.lookup import Lookup
from situ.lang.types.model import LONGEST_NAME, AttributeText, Struct
from situ.lang.types.table import Types

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What the files say, before anything is looked up or checked: names that can be used, signatures taken apart,
# expressions as text, each with its place.

FUNCTION_KEYS = ("signature", "expr")
"""The keys of a function's long form, all required."""

CALL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)[`\"]?\s*\(")
"""What may be a call, if it does not stand in a text."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FORM_NAMES = {name for form, _, _ in FORMS for name in CALL.findall(form)}
_RESERVED = {*FUNCTIONS, *SYNONYMS, *_FORM_NAMES, "if", "identity", *(word.lower() for word in KEYWORDS)}


class FunctionText(msgspec.Struct, frozen=True, kw_only=True):
    """A function taken apart: its signature, and its expression with its place."""

    name: str
    signature: SignatureText
    expression: str
    locate: Locate


def declare_functions(documents: Iterable[Document], problems: Problems) -> dict[str, FunctionText | None]:
    """The functions by name, each name once; None stands for one whose text is not understood."""
    declared = _each_once(_declarations(documents, Reader(problems)), problems)
    return {name: _write_out(each, problems) for name, each in declared.items()}


class _Declaration(msgspec.Struct, frozen=True):
    key: ScalarNode
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


def has_free_name(key: ScalarNode, problems: Problems) -> bool:
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
        if isinstance(declaration.body, MappingNode):
            return _long_form(declaration, declaration.body)
        scalar = declaration.read.scalar(declaration.body)
        return None if scalar is None else _short_form(declaration.name, scalar)
    except SituError as error:
        problems.extend(error.problems)
        return None


def _short_form(name: str, scalar: ScalarNode) -> FunctionText:
    end, start = split_definition(scalar.text, scalar.locate)
    return FunctionText(
        name=name,
        signature=parse_signature(scalar.text[:end], scalar.locate),
        expression=scalar.text[start:],
        locate=lambda offset, length: scalar.locate(start + offset, length),
    )


def _long_form(declaration: _Declaration, body: MappingNode) -> FunctionText | None:
    fields = declaration.read.fields(body, required=FUNCTION_KEYS)
    signature = fields.scalar("signature") if fields is not None else None
    expression = fields.scalar("expr") if fields is not None else None
    parsed = None if signature is None else parse_signature(signature.text, signature.locate)
    if parsed is None or expression is None:
        return None
    return FunctionText(name=declaration.name, signature=parsed, expression=expression.text, locate=expression.locate)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Declarations → checked functions.
#
# Two kinds. A function of several parameters works with units, and filters can call it. A *conversion* turns one value,
# ``value``, into another; numbers in it are plain, for it is what says how one unit becomes another. Functions may call
# each other in any order, over all files, but not in a circle.


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinedFunction(Definition):
    """A function of a project, with its expression in canonical spelling."""

    text: str
    converts: bool = False

    @property
    def signature(self) -> str:
        return print_signature(self.parameters, self.result, converts=self.converts)


class Functions(msgspec.Struct, frozen=True, kw_only=True):
    """The functions that are right, and the names of those that are not."""

    defined: Mapping[str, DefinedFunction]
    faulty: frozenset[str] = frozenset()

    @property
    def callable(self) -> Mapping[str, Definition]:
        """Those that other expressions can call."""
        return callable_functions(self.defined)


def callable_functions(functions: Mapping[str, DefinedFunction]) -> Mapping[str, Definition]:
    return MappingProxyType({name: each for name, each in functions.items() if not each.converts})


def load_functions(
    documents: Iterable[Document],
    types: Types,
    problems: Problems,
    *,
    limits: ExpressionLimits = DEFAULT_LIMITS,
    faults: Faults = NO_FAULTS,
) -> Functions:
    """Read and check what all these documents declare together; what is wrong is reported and left out."""
    looked_up = Problems()
    lookup = Lookup(types.types, types.units, looked_up)
    declared = declare_functions(documents, problems)
    whole = {name: each for name, each in declared.items() if each is not None}
    order, circular = _in_order(whole, limits, problems)
    defined: dict[str, DefinedFunction] = {}
    available: dict[str, Definition] = {}
    for name in order:
        variables = _variables(whole[name].signature, lookup, problems)
        if variables is None or name in circular:
            continue
        scope = _scope(variables[0], types, available, limits, converts=whole[name].signature.converts)
        checked = check_result(whole[name].expression, scope, variables[1], whole[name].locate)
        if checked.problems:
            follows = faults.with_functions(declared.keys() - defined.keys())
            problems.extend(_reported(name, checked.problems, variables[0], follows))
        if checked.node is not None:
            function = _function(whole[name], *variables, checked.node)
            defined[name] = function
            if not function.converts:
                available[name] = function
    problems.extend(problem for problem in looked_up if not faults.explain(problem))
    return Functions(
        defined=MappingProxyType({name: defined[name] for name in sorted(defined)}),
        faulty=frozenset(declared.keys() - defined.keys()),
    )


def functions_as_json(functions: Mapping[str, DefinedFunction]) -> dict[str, Any]:
    """The functions in their long form; equal functions give equal values."""
    return {name: {"signature": each.signature, "expr": each.text} for name, each in sorted(functions.items())}


def functions_from_json(value: Any, types: Types, limits: ExpressionLimits) -> Mapping[str, DefinedFunction]:
    """The functions that :func:`functions_as_json` gave; ValueError for what it cannot have given."""
    if not isinstance(value, dict):
        raise ValueError(f"these are no functions: {value!r}")
    problems = Problems()
    document = parse_json(json.dumps({"functions": value}), "functions")
    functions = load_functions([document], types, problems, limits=limits)
    if problems.errors:
        raise ValueError("; ".join(map(str, problems.errors)))
    return functions.defined


# ── in which order ────────────────────────────────────────────────────────────────────────────────


def _in_order(
    whole: Mapping[str, FunctionText], limits: ExpressionLimits, problems: Problems
) -> tuple[list[str], set[str]]:
    """The functions, those that are called first; and the names of those that call themselves."""
    by_fold = {name.lower(): name for name in whole}
    calls = {name: _calls(each, by_fold, limits) for name, each in whole.items()}
    order, circles = dependency_order(calls)
    circular: set[str] = set()
    for circle in circles:
        name, called = circle.closing
        circular.update(circle.names)
        place = calls[name][called]
        problems.add(FUNCTION_CYCLE(place, name=called, cycle=str(circle)))
    return order, circular


def _calls(each: FunctionText, by_fold: Mapping[str, str], limits: ExpressionLimits) -> dict[str, Location]:
    """Which functions of the project are called, and where. Most call none, and are not parsed for it."""
    if not any(found.lower() in by_fold for found in CALL.findall(each.expression)):
        return {}
    try:
        syntax = parse_syntax(each.expression, each.locate, limits)
    except SituError:
        return {}  # reported when the function is checked
    found: dict[str, Location] = {}
    waiting: list[Syntax] = [syntax]
    while waiting:
        part = waiting.pop()
        waiting.extend(part.parts)
        if part.kind == "call" and part.text.lower() in by_fold:
            found[by_fold[part.text.lower()]] = each.locate(part.start, part.end - part.start)
    return found


# ── what it means ─────────────────────────────────────────────────────────────────────────────────


def _variables(
    signature: SignatureText, lookup: Lookup, problems: Problems
) -> tuple[tuple[tuple[str, Variable], ...], Variable] | None:
    """Parameters and result, looked up; None if one has no type. All of them are looked at."""
    parameters: dict[str, Variable | None] = {}
    for parameter in signature.parameters:
        if parameter.name in parameters:
            first = "an earlier place of the same signature"
            problem = DECLARED_TWICE(parameter.place(), what="The parameter", name=parameter.name, first=first)
            problems.add(problem)
        parameters[parameter.name] = _variable(parameter.text, lookup)
    result = _variable(signature.result, lookup)
    known = tuple((name, variable) for name, variable in parameters.items() if variable is not None)
    complete = result is not None and len(known) == len(signature.parameters)
    return (known, result) if complete and result is not None else None


def _variable(text: AttributeText, lookup: Lookup) -> Variable | None:
    typed = lookup.typed(text)
    return None if typed is None else Variable(type=typed[0], unit=typed[1], optional=text.optional)


def _reported(
    name: str, found: Iterable[Problem], parameters: tuple[tuple[str, Variable], ...], faults: Faults
) -> Iterator[Problem]:
    """The problems of an expression as those of its function; what follows from known faults is left out."""
    used = [variable.type for _, variable in parameters]
    for problem in found:
        if not faults.explain(problem, *used):
            yield FUNCTION_INVALID(problem.location, cause=problem, name=name) if problem.is_error else problem


def _function(
    written: FunctionText, parameters: tuple[tuple[str, Variable], ...], result: Variable, body: ExpressionNode
) -> DefinedFunction:
    return DefinedFunction(
        name=written.name,
        parameters=parameters,
        result=result,
        body=body,
        text=spell(written.expression),
        converts=written.signature.converts,
    )


def _scope(
    parameters: tuple[tuple[str, Variable], ...],
    types: Types,
    functions: Mapping[str, Definition],
    limits: ExpressionLimits,
    *,
    converts: bool,
) -> NameScope:
    """Parameters by their names; a conversion also sees the envelope, but not what may be absent from it."""
    variables = dict(parameters)
    if converts:
        known = envelope(types.units).attributes
        variables["event"] = Variable(type=Struct("", tuple(each for each in known if not each.optional)))
    return NameScope(
        variables=variables,
        types=types,
        units=types.units,
        functions=functions,
        with_units=not converts,
        limits=limits,
    )
