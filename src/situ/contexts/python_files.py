"""Files of Python functions, read as text and never executed here, and the contexts that declare or name them.

`read_code` finds the functions of a file and what their decorators declare, `with_code` puts them into declarations of
contexts. :mod:`situ.stages.conversion_state` runs what an engine needs.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import msgspec

from situ.contexts.declarations import ContextText, PlacedWords, RuleText
from situ.contexts.model import ROOT, Direction
from situ.lang.catalogue import BAD_PYTHON
from situ.lang.documents import MappingNode, Node, Reader, ScalarNode
from situ.lang.documents.nodes import DocumentLimits, SourceText, placed, read_source
from situ.lang.problems import Location, Problems
from situ.lang.records import replace

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Reading. As nothing is executed, arguments of decorators are literals. A file stands alone: it imports what is
# installed, no other file of the project.

_LIMITS = DocumentLimits()
CONV_FUNCTION, CONTEXT, TRANSFORM_WITH = "conv_function", "context", "transform_with"
_DECORATORS = (CONV_FUNCTION, CONTEXT, TRANSFORM_WITH)
_PARAMETERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {CONV_FUNCTION: ("source", "target"), CONTEXT: ("id",), TRANSFORM_WITH: ("function",)}
)
_KNOWN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        CONV_FUNCTION: frozenset(
            ("source", "target", "name", "type", "result", "context", "time", "nulls", "lossy", "inverse")
        ),
        CONTEXT: frozenset(("id", "extends")),
        TRANSFORM_WITH: frozenset(("function", "pattern", "direction")),
    }
)


class DecoratedRule(msgspec.Struct, frozen=True, kw_only=True):
    """``@transform_with(…)`` on a function."""

    function: str = ""
    """Which function; nothing said, the one it stands on."""
    pattern: str = ""
    direction: str = ""


class DecoratedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function that decorators declare: in which context, with which signature, by which rules it is used."""

    name: str
    function: str
    """Its name in the file."""
    parameter: str
    signature: str
    context: str = ROOT
    extends: str = ""
    more: Mapping[str, Any] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    rules: tuple[DecoratedRule, ...] = ()
    start: int = 0
    """Where its name stands in the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFile:
    """One file. ``functions`` are the names of all that it defines, ``declared`` those with decorators."""

    name: str
    source: SourceText = field(compare=False)
    functions: frozenset[str] = frozenset()
    declared: tuple[DecoratedFunction, ...] = ()

    @property
    def text(self) -> str:
        return self.source.text


def read_code(data: bytes, file: str, problems: Problems, limits: DocumentLimits = _LIMITS) -> PythonFile | None:
    """The functions of a file; None, with the reason noted, if it is no Python."""
    source = read_source(data, file, limits)
    if not isinstance(source, SourceText):
        problems.add(source)
        return None
    try:
        tree = ast.parse(source.text, file)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        place = Location(file=file, line=line) if line else Location(file=file)
        reason = f"Python does not read it, {getattr(error, 'msg', None) or error}"
        problems.add(BAD_PYTHON(place, name=file, reason=reason, remedy="Run it through Python itself."))
        return None
    reading = _PythonFileReader(source, problems)
    defined = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    return PythonFile(
        name=file.rpartition("/")[2].removesuffix(".py"),
        source=source,
        functions=frozenset(each.name for each in defined),
        declared=tuple(found for each in defined if (found := reading.function(each)) is not None),
    )


def fault_in(code: str, function: str) -> str:
    """Why a text has no such function to call; empty if it has."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError) as error:
        return f"its file is no Python, {getattr(error, 'msg', None) or error}"
    found = next((each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == function), None)
    if found is None:
        return f"its file defines no function `{function}`"
    return "" if takes_one(found) else f"`{function}` does not take one argument, the array"


def takes_one(function: ast.FunctionDef) -> bool:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    needed = len(positional) - len(given.defaults)
    needed_by_name = [each for each in given.kw_defaults if each is None]
    return needed <= 1 and (bool(positional) or given.vararg is not None) and not needed_by_name


def without_declarations(code: str) -> ast.Module:
    """The file without the decorators that only declare: what is left is what runs."""
    tree = ast.parse(code)
    for each in tree.body:
        if isinstance(each, ast.FunctionDef):
            each.decorator_list = [one for one in each.decorator_list if _decorator(one) is None]
    return tree


def code_digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


class _PythonFileReader:
    def __init__(self, source: SourceText, problems: Problems) -> None:
        self._source, self._problems = source, problems
        starts, at = [], 0
        for line in source.text.splitlines(keepends=True):
            starts.append(at)
            at += len(line)
        self._starts = (*starts, at)

    def function(self, defined: ast.FunctionDef) -> DecoratedFunction | None:
        called = dict(_decorators(defined))
        if not called:
            return None
        name = defined.name
        if CONV_FUNCTION not in called:
            self._bad(defined, name, "it has no `@conv_function`", "Say what it converts: `@conv_function('m', 'ft')`.")
            return None
        if not takes_one(defined):
            self._bad(defined, name, "it does not take one argument", "It is called with one array of values.")
            return None
        given = {each: self._arguments(each, call, name) for each, call in called.items()}
        if any(each is None for each in given.values()):
            return None
        conversion = given[CONV_FUNCTION] or {}
        context = given.get(CONTEXT) or {}
        rules = [
            self._arguments(TRANSFORM_WITH, call, name) for at, call in _decorators(defined) if at == TRANSFORM_WITH
        ]
        type = conversion.pop("type", "double")
        result = conversion.pop("result", "") or type
        source, target = conversion.pop("source", ""), conversion.pop("target", "")
        return DecoratedFunction(
            name=conversion.pop("name", "") or name,
            function=name,
            parameter=type,
            signature=f"{f'{type} {source}'.strip()} -> {f'{result} {target}'.strip()}",
            context=conversion.pop("context", "") or context.get("id", ROOT),
            extends=context.get("extends", ""),
            more=MappingProxyType(conversion),
            rules=tuple(DecoratedRule(**each) for each in rules if each is not None),
            start=self._start(defined),
        )

    def _arguments(self, decorator: str, call: ast.expr, name: str) -> dict[str, Any] | None:
        if not isinstance(call, ast.Call):
            self._bad(call, name, f"`@{decorator}` says nothing", f"Give it arguments: `@{decorator}(…)`.")
            return None
        pairs = [*zip(_PARAMETERS[decorator], call.args, strict=False)]
        pairs += [(each.arg or "**", each.value) for each in call.keywords]
        found: dict[str, Any] = {}
        wrong = len(call.args) > len(_PARAMETERS[decorator])
        for key, value in pairs:
            if key not in _KNOWN[decorator] or key in found:
                wrong = True
                continue
            try:
                found[key] = ast.literal_eval(value)
            except (ValueError, TypeError, SyntaxError, RecursionError):
                remedy = "The file is not executed to find out what it declares: write the value itself."
                self._bad(value, name, f"`{key}` of `@{decorator}` is no literal", remedy)
                return None
            if not isinstance(found[key], str | bool):
                wrong = True
        if wrong:
            known = ", ".join(f"`{each}`" for each in sorted(_KNOWN[decorator]))
            self._bad(call, name, f"`@{decorator}` has arguments that it does not know", f"It takes {known}, as text.")
            return None
        return found

    def _start(self, node: ast.FunctionDef) -> int:
        return self._offset(node.lineno, node.col_offset) + len("def ")

    def _offset(self, line: int, column: int) -> int:
        start = self._starts[min(line - 1, len(self._starts) - 1)]
        # Python counts bytes in a line.
        text = self._source.text[start : self._starts[min(line, len(self._starts) - 1)]]
        return start + len(text.encode()[:column].decode(errors="ignore"))

    def _bad(self, at: ast.expr | ast.FunctionDef, name: str, reason: str, remedy: str) -> None:
        start = self._start(at) if isinstance(at, ast.FunctionDef) else self._offset(at.lineno, at.col_offset)
        place = self._source.location(start, start + (len(name) if isinstance(at, ast.FunctionDef) else 1))
        self._problems.add(BAD_PYTHON(place, name=name, reason=reason, remedy=remedy))


def _decorators(defined: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    for each in defined.decorator_list:
        name = _decorator(each)
        if name is not None:
            yield name, each


def _decorator(node: ast.expr) -> str | None:
    """``conv_function(…)`` or ``situ.conv_function(…)``."""
    called = node.func if isinstance(node, ast.Call) else node
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    return name if name in _DECORATORS else None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Functions put into contexts. The text of the file becomes part of the function, as an expression is: whoever has the
# context has the code, of just this version. :mod:`situ.contexts.load` reads these declarations like all others.


def with_code(
    declared: Mapping[str, ContextText], files: Iterable[PythonFile], problems: Problems
) -> dict[str, ContextText]:
    """The contexts with what the decorators of these files declare, and with the code of all they name."""
    codes = {each.name: each for each in files}
    result = {
        id: replace(text, functions=tuple((key, _with_text(node, codes)) for key, node in text.functions))
        for id, text in declared.items()
    }
    for code in codes.values():
        for function in code.declared:
            key = _at(code, function, function.name)
            context = result.get(function.context) or _context(code, function, problems)
            result[context.id] = replace(
                context,
                functions=(*context.functions, (key, _node(code, function))),
                rules=(*context.rules, *(_rule(code, function, each) for each in function.rules)),
            )
    return result


def _with_text(node: Node, codes: Mapping[str, PythonFile]) -> Node:
    """A function in its long form that names a Python function gets the file; if that is there."""
    named = node.get("python") if isinstance(node, MappingNode) else None
    if not isinstance(node, MappingNode) or not isinstance(named, ScalarNode) or "code" in node:
        return node
    code = codes.get(named.text.rpartition(".")[0])
    if code is None:
        return node
    return replace(node, entries=(*node.entries, (_word(named, "code"), _word(named, code.text))))


def _context(code: PythonFile, function: DecoratedFunction, problems: Problems) -> ContextText:
    """A context that only Python declares so far."""
    above = _at(code, function, function.extends or ROOT)
    return ContextText(
        id=function.context,
        location=above.location,
        read=Reader(problems),
        extends=None if function.context == ROOT else PlacedWords(text=above.text, locate=above.locate),
    )


def _node(code: PythonFile, function: DecoratedFunction) -> Node:
    body = {
        "signature": function.signature,
        "python": f"{code.name}.{function.function}",
        "code": code.text,
        **function.more,
    }
    return placed(body, _at(code, function, function.name))


def _rule(code: PythonFile, function: DecoratedFunction, rule: DecoratedRule) -> RuleText:
    pattern = _at(code, function, rule.pattern or function.parameter)
    named = _at(code, function, rule.function or function.name)
    return RuleText(
        direction=Direction(rule.direction) if rule.direction in ("in", "out") else None,
        pattern=PlacedWords(text=pattern.text, locate=pattern.locate),
        function=PlacedWords(text=named.text, locate=named.locate),
        location=pattern.location,
    )


def _at(code: PythonFile, function: DecoratedFunction, text: str) -> ScalarNode:
    """A word that the function says of itself, at its name."""
    return ScalarNode(text, text, "", code.source, function.start, function.start + len(function.function))


def _word(at: ScalarNode, text: str) -> ScalarNode:
    return replace(at, text=text, value=text)
