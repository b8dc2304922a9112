"""What there is to know about functions: those of the language, its forms, and those a project defines.

Decides and lays nothing out: :mod:`situ.cli.render.types` does that.
"""

from __future__ import annotations

from collections.abc import Mapping

from situ.lang.expr.definitions import DefinedFunction
from situ.lang.expr.functions.table import FORMS, FUNCTIONS, SYNONYMS
from situ.lang.expr.overload import Function, Overload, UnitRule
from situ.lang.json_form import Explanation


class Signature(Explanation, frozen=True, kw_only=True):
    """One way to call a function, and what to know when calling it so."""

    text: str
    remarks: tuple[str, ...]


class FunctionExample(Explanation, frozen=True, kw_only=True):
    """A call, and what it gives."""

    expression: str
    result: str


class FunctionExplanation(Explanation, frozen=True, kw_only=True):
    """A function or a form of the language, or a function of the project."""

    name: str
    group: str
    doc: str
    signatures: tuple[Signature, ...]
    examples: tuple[FunctionExample, ...]
    body: str | None
    """The expression that defines it, for a project's own."""


def explain_functions(definitions: Mapping[str, DefinedFunction]) -> tuple[FunctionExplanation, ...]:
    """All functions and forms, the project's own first, by group in the order of the reference."""
    own = [_defined(definition) for _, definition in sorted(definitions.items())]
    groups: dict[str, list[FunctionExplanation]] = {}
    for each in (*map(_built_in, FUNCTIONS.values()), *map(_form, FORMS)):
        groups.setdefault(each.group, []).append(each)
    return (*own, *(each for group in groups.values() for each in group))


def find_functions(name: str, definitions: Mapping[str, DefinedFunction]) -> tuple[FunctionExplanation, ...]:
    """Those of that name: functions by their name or a synonym, forms by a word of theirs, such as ``CASE``."""
    wanted = SYNONYMS.get(name, name)
    known = explain_functions(definitions)
    exact = tuple(each for each in known if wanted in (each.name, each.name.lower()))
    return exact or tuple(each for each in known if name.casefold() in _words(each))


def function_names(definitions: Mapping[str, DefinedFunction]) -> tuple[str, ...]:
    """What :func:`find_functions` finds, for suggestions."""
    words = {word for form in FORMS for word in _words(_form(form))}
    return (*definitions, *FUNCTIONS, *SYNONYMS, *sorted(words))


def _words(explained: FunctionExplanation) -> set[str]:
    """The words that name a form: its keywords and the names before a bracket."""
    if explained.signatures:
        return set()
    cut = explained.name.replace(",", " ").split()
    called = {word.partition("(")[0] for word in cut if "(" in word}
    return {
        word.casefold() for word in (*called, *(w for w in cut if w.isupper() and w.isalpha() and len(w) > 1)) if word
    }


def _built_in(function: Function) -> FunctionExplanation:
    return FunctionExplanation(
        name=function.name,
        group=function.group,
        doc=function.doc,
        signatures=tuple(Signature(text=each.signature, remarks=_remarks(each)) for each in function.overloads),
        examples=tuple(FunctionExample(expression=text, result=result) for text, result in function.examples),
        body=None,
    )


def _form(form: tuple[str, str, str]) -> FunctionExplanation:
    text, group, doc = form
    return FunctionExplanation(name=text, group=group, doc=doc, signatures=(), examples=(), body=None)


def _defined(function: DefinedFunction) -> FunctionExplanation:
    link = ": " if function.converts else ""
    return FunctionExplanation(
        name=function.name,
        group="project",
        doc="A conversion of this project." if function.converts else "Defined in this project.",
        signatures=(Signature(text=f"{function.name}{link}{function.signature}", remarks=()),),
        examples=(),
        body=function.text,
    )


def _remarks(overload: Overload) -> tuple[str, ...]:
    remarks = []
    if overload.unit is not UnitRule.NONE:
        remarks.append(overload.unit.value)
    if overload.constants:
        places = " and ".join(str(place + 1) for place in overload.constants)
        remarks.append(f"argument {places} must be a constant")
    if overload.fails:
        remarks.append("can fail")
    if overload.may_be_null:
        remarks.append("may be null")
    if overload.inexact:
        remarks.append("the last digit depends on the engine")
    return tuple(remarks)
