"""Functions of Python put into the contexts that declare or name them, with the text of their file.

The text becomes part of the function itself, as an expression is: whoever has the context has the code, of just this
version. What stands here works on declarations; :mod:`situ.interpretation.load` reads them like all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from situ.documents import Mapping as MappingNode
from situ.documents import Node, Reader, Scalar
from situ.documents.nodes import placed
from situ.errors import Problems
from situ.interpretation.code import Code, FunctionCode, RuleCode
from situ.interpretation.declare import ContextText, RuleText, Words
from situ.interpretation.model import ROOT, Direction


def with_code(declared: Mapping[str, ContextText], files: Iterable[Code], problems: Problems) -> dict[str, ContextText]:
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


def _with_text(node: Node, codes: Mapping[str, Code]) -> Node:
    """A function in its long form that names a Python function gets the file; if that is there."""
    named = node.get("python") if isinstance(node, MappingNode) else None
    if not isinstance(node, MappingNode) or not isinstance(named, Scalar) or "code" in node:
        return node
    code = codes.get(named.text.rpartition(".")[0])
    if code is None:
        return node
    return replace(node, entries=(*node.entries, (_word(named, "code"), _word(named, code.text))))


def _context(code: Code, function: FunctionCode, problems: Problems) -> ContextText:
    """A context that only Python declares so far."""
    above = _at(code, function, function.extends or ROOT)
    return ContextText(
        id=function.context,
        location=above.location,
        read=Reader(problems),
        extends=None if function.context == ROOT else Words(text=above.text, locate=above.locate),
    )


def _node(code: Code, function: FunctionCode) -> Node:
    body = {
        "signature": function.signature,
        "python": f"{code.name}.{function.function}",
        "code": code.text,
        **function.more,
    }
    return placed(body, _at(code, function, function.name))


def _rule(code: Code, function: FunctionCode, rule: RuleCode) -> RuleText:
    pattern = _at(code, function, rule.pattern or function.parameter)
    named = _at(code, function, rule.function or function.name)
    return RuleText(
        direction=Direction(rule.direction) if rule.direction in ("in", "out") else None,
        pattern=Words(text=pattern.text, locate=pattern.locate),
        function=Words(text=named.text, locate=named.locate),
        location=pattern.location,
    )


def _at(code: Code, function: FunctionCode, text: str) -> Scalar:
    """A word that the function says of itself, at its name."""
    return Scalar(text, text, "", code.source, function.start, function.start + len(function.function))


def _word(at: Scalar, text: str) -> Scalar:
    return replace(at, text=text, value=text)
