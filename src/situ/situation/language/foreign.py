"""Spellings of other languages: signs and words that are never right in a policy, with what to write instead."""

from __future__ import annotations

import re

from situ.catalogue import FOREIGN_SPELLING, NOT_OUTSIDE
from situ.documents.source import Source
from situ.errors import Location, Problem
from situ.situation.language.lines import Statement
from situ.situation.language.readings import readings_of_group, readings_of_not_followed

_FOREIGN: tuple[tuple[str, str, str], ...] = (
    (
        r"\"[^\"\r\n]*\"|[\u201c\u201d\u201e][^\u201c\u201d\r\n]*[\u201c\u201d]",
        "text",
        "Text stands in single, straight quotes: {text}.",
    ),
    (
        r"[\u2018\u2019\u201a][^\u2018\u2019\r\n]*[\u2018\u2019]|`[^`\r\n]*`",
        "text",
        "Text stands in single, straight quotes: {text}.",
    ),
    (r"[\u201c\u201d\u201e\u2018\u2019\u201a`\"]", "sign", "Text stands in single, straight quotes: `'guest'`."),
    (r"\b(?:is|are|was|does|do)n['\u2019]t\b", "sign", "Write `is not`."),
    (r"//[^\r\n]*|/\*.*?(?:\*/|\Z)|--[^\r\n]*", "remark", "A comment begins with `#`."),
    (r"-+>|=+>|→|⇒", "sign", "One thing after another is `followed-by`; at least is `>=`."),
    (r"={2,}", "sign", "Equality is one sign: `=`."),
    (r"<>|≠|!==|/=", "sign", "Different is `!=`."),
    (r"=<|≤", "sign", "At most is `<=`."),
    (r"≥", "sign", "At least is `>=`."),
    (r"&+|∧", "sign", "Write `and`."),
    (r"\|+|∨", "sign", "Write `or`."),
    (r"!(?!=)|¬", "sign", "Write `not`, inside a relation: `A is not inside R`."),
    (r"\bfollowed(?:\s+|_)?by\b", "sign", "It is one word with a hyphen: `followed-by`."),
    (r";", "sign", "Nothing ends a statement but the line."),
    (r"[{}]", "sign", "Sections need no braces; conditions are grouped with `(` and `)`."),
    (
        r"[\x00-\x08\x0e-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]",
        "control",
        "Take the character out: it is not visible.",
    ),
)
_FLAGS = re.IGNORECASE | re.DOTALL
_FOREIGN_SIGNS = re.compile("|".join(f"(?P<f{number}>{row[0]})" for number, row in enumerate(_FOREIGN)), _FLAGS)
_OPAQUE = re.compile(r"'(?:[^'\r\n]|'')*'|\[[^\[\]\r\n]*\]")
_NEGATED = re.compile(r"\bnot\s*(?P<group>\()|\bnot\s+(?P<then>followed-by)(?![\w-])", re.IGNORECASE)
_MOST_FOREIGN = 20


def foreign_spellings(rule: str, statement: Statement, source: Source) -> tuple[Problem, ...]:
    """All that can never be right in a statement of this kind."""
    if rule in ("action", "policy"):
        return ()
    text = _OPAQUE.sub(_masked, statement.text)
    found = []
    for sign in _FOREIGN_SIGNS.finditer(text):
        place = source.location(statement.start + sign.start(), statement.start + sign.end())
        found.append(_foreign(sign, place))
        if len(found) == _MOST_FOREIGN:
            break
    if rule == "condition" and not found:
        found += [_negation(each, statement, source) for each in _NEGATED.finditer(text)][:_MOST_FOREIGN]
    return tuple(found)


def _masked(found: re.Match[str]) -> str:
    """Texts and units may hold anything; contractions have a quote of their own."""
    return found[0][0] + "~" * (len(found[0]) - 2) + found[0][-1] if len(found[0]) > 1 else found[0]


def _foreign(sign: re.Match[str], place: Location) -> Problem:
    _, kind, remedy = _FOREIGN[int((sign.lastgroup or "f0")[1:])]
    shown = f"`{sign[0]}`"
    if kind == "control":
        shown = f"The character U+{ord(sign[0]):04X}"
    elif kind == "remark":
        shown = f"`{sign[0][:2]}`"
    inner = sign[0][1:-1].replace("'", "''")
    return FOREIGN_SPELLING(place, found=shown, remedy=remedy.format(text=f"`'{inner}'`"))


def _negation(found: re.Match[str], statement: Statement, source: Source) -> Problem:
    place = source.location(statement.start + found.start(), statement.start + found.start() + len("not"))
    if found["group"]:
        what, readings = "a parenthesis", readings_of_group(statement.text, found.end() - 1)
    else:
        what, readings = "`followed-by`", readings_of_not_followed(statement.text, found.start())
    return NOT_OUTSIDE(place, what=what, readings=readings)
