"""The page of all functions and forms, from the tables the checker and both engines use."""

from __future__ import annotations

import re

from reference.markdown import anchored, block, code, head, sections, table
from situ.lang.expr.functions.table import FORMS, FUNCTIONS, SYNONYMS
from situ.lang.expr.functions.time import TIME_ARITHMETIC
from situ.lang.expr.overload import Function, Overload, UnitRule

# The order of the page; a group that is not here stops the generation.
GROUPS = {
    "literals": "Values as they are written.",
    "logic": "",
    "comparison": "",
    "choice": "",
    "arithmetic": "Numbers of different types meet in the wider one; numbers of different units are converted first.",
    "numbers": "",
    "conversions": "There is no `CAST`: these say what they do.",
    "text": "Lengths and places count characters from 1.",
    "time": "An instant is the same everywhere. What a clock shows depends on a time zone, named as a constant.",
    "geometry": "Any struct with the attributes of a built-in spatial type fits.",
    "structs": "",
    "lists": "",
}

_INTRODUCTION = """\
What can stand in an expression: in filters, and in functions of a project. [Expressions](../concepts/expressions.md)
explains how they are checked and what null and failure mean. `situ explain functions` shows the same in the terminal,
with the project's own functions.

Each table says how the engines run a call: as Spark SQL and as Python, with `a`, `b`, `c` … for the arguments. Names
such as `_sqrt` are functions of the runtime that ships with Situ. Where it says *written for the call*, the
text depends on how many arguments there are, or on those that must be constants; `situ explain expression` shows it for
a call. Remarks:

- **can fail**: there are arguments that are not null for which the function has no value.
- **may be null**: even where no argument is null.
- **inexact**: the last digits depend on the engine's mathematics; results agree to about 1e-12 of their size. All
  others agree bit for bit.
- A function of which one argument is null gives null, unless it says otherwise.
"""

_DECIMALS = """\
Decimals are added, subtracted, multiplied, divided and compared exactly, as long as 38 digits hold the result; a
quotient has at least six digits after the point. Fails if the result needs more digits before the point than there are.
"""

_LETTERS = "abcdefgh"
_LONGEST = 300


def page() -> str:
    parts = [head("Functions", "src/situ/lang/expr/functions/"), _INTRODUCTION, _overview()]
    groups = {each.group for each in FUNCTIONS.values()} | {group for _, group, _ in FORMS}
    if unknown := groups - GROUPS.keys():
        raise ValueError(f"groups without a place on the page: {sorted(unknown)}")
    for group, about in GROUPS.items():
        parts += [anchored(2, group.capitalize(), group), about, _forms(group)]
        parts += [_function(each) for each in FUNCTIONS.values() if each.group == group]
        if group == "arithmetic":
            parts += ["### Decimals\n", _DECIMALS, "### Times and durations\n", _runs(tuple(TIME_ARITHMETIC.values()))]
    return sections(*parts)


def _overview() -> str:
    rows = []
    for group in GROUPS:
        names = [f"[{code(each.name)}](#{_anchor(each)})" for each in FUNCTIONS.values() if each.group == group]
        forms = [code(form) for form, where, _ in FORMS if where == group]
        rows.append([f"[{group}](#{group})", " · ".join([*forms, *names])])
    return table(["group", "what is in it"], rows)


def _forms(group: str) -> str:
    rows = [[code(form), doc] for form, where, doc in FORMS if where == group]
    return table(["form", "meaning"], rows) if rows else ""


def _function(function: Function) -> str:
    same = [name for name, of in SYNONYMS.items() if of == function.name]
    if same and not all(name in function.doc for name in same):
        raise ValueError(f"{function.name} does not mention that {same} is the same")
    examples = "\n".join(f"{text}  -- {result}" for text, result in function.examples)
    return sections(
        anchored(3, code(function.name), _anchor(function)),
        function.doc,
        "" if "Fails" in function.doc else _failure(function),
        _runs(function.overloads),
        block(examples, "sql") if examples else "",
    )


def _runs(overloads: tuple[Overload, ...]) -> str:
    rows = []
    for each in overloads:
        spark, python = (_text(text, len(each.parameters)) for text in (each.spark, each.python))
        rows.append([code(_call(each)), ", ".join(_remarks(each)), spark, python])
    return table(["call", "remarks", "Spark SQL", "Python"], rows)


def _call(overload: Overload) -> str:
    """The signature, of an operator as it is written."""
    if overload.name[0].isalpha():
        return overload.signature
    first, second = (*overload.parameters, *overload.parameters)[:2]
    return f"{first} {overload.name} {second} -> {overload.result}"


def _failure(function: Function) -> str:
    """When it fails, where its description leaves that to the type of the result."""
    reasons = [_reason(each) for each in function.overloads if each.fails]
    return " ".join(dict.fromkeys(reasons))


def _reason(overload: Overload) -> str:
    match overload:
        case Overload(result="long" | "duration", parameters=("long" | "duration", *_)):
            return f"Fails if the result is beyond the range of {overload.result}."
        case Overload(parameters=("timestamp", *_)):
            return "Fails if the clocks of the zone show a year outside 1 to 9999."
        case Overload(parameters=("double", "double", "points")):
            return "Fails on coordinates beyond 1e100."
    raise ValueError(f"{overload.signature} can fail and does not say when")


def _remarks(overload: Overload) -> list[str]:
    remarks = [overload.unit.value] if overload.unit is not UnitRule.NONE else []
    if overload.constants:
        places = " and ".join(str(place + 1) for place in overload.constants)
        remarks.append(f"argument {places} must be a constant")
    flags = {"can fail": overload.fails, "may be null": overload.may_be_null, "inexact": overload.inexact}
    return remarks + [f"**{word}**" for word, holds in flags.items() if holds]


def _text(template: object, parameters: int) -> str:
    if not isinstance(template, str):
        return "*written for the call*"
    text = template.format(*_LETTERS[:parameters])
    # A table of hundreds of letters says no more than its first few.
    text = re.sub(r"'([^']{10})[^']{50,}'", r"'\1…'", text)
    return code(text) if len(text) <= _LONGEST else code(text[:_LONGEST] + "…")


def _anchor(function: Function) -> str:
    names = {"+": "plus", "-": "minus", "*": "times", "/": "divided", "%": "remainder", "||": "concat"}
    return f"fn-{names.get(function.name, function.name)}"
