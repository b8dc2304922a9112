"""Statements that the grammar refuses: where they stop making sense, and how that is said in general.

`RefusedStatement` is such a statement, `readings_of_group` and `readings_of_not_followed` say what a misplaced ``not``
may mean, `foreign_spellings` finds signs and words of other languages.
"""

from __future__ import annotations

import re

import msgspec

from situ.lang.catalogue import FOREIGN_SPELLING, NOT_OUTSIDE, POLICY_SYNTAX
from situ.lang.documents.nodes import SourceText
from situ.lang.problems import Location, Problem, SituError, nearest
from situ.policies.language.print import print_condition
from situ.policies.language.statements import PolicyStatement
from situ.policies.language.syntax import AllOf, AnyOf, Comparison, Condition, FollowedBy, RelationText


class RefusedStatement(msgspec.Struct, frozen=True):
    """A statement, what it should have been, where it stopped making sense, and what could have come there."""

    rule: str
    statement: PolicyStatement
    source: SourceText
    at: int
    expected: frozenset[str] = frozenset()
    aliases: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.statement.text

    @property
    def before(self) -> str:
        return self.text[: self.at].rstrip()

    @property
    def found(self) -> str:
        """The word or sign that is unexpected; empty at the end."""
        rest = self.text[self.at :].lstrip()
        word = _WORD.match(rest)
        return word[0] if word else ""

    def place(self, start: int | None = None, end: int | None = None) -> Location:
        if start is None:
            start = self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip())
            end = start + len(self.found)
        begin = self.statement.start + start
        return self.source.location(begin, None if end is None else self.statement.start + end)


_WORD = re.compile(r"'(?:[^']|'')*'|\w[\w-]*|<=|>=|!=|\S")
NAME = r"[^\W\d]\w*(?:-\w+)*"

SPOKEN = {
    "NAME": "a name",
    "QUANTITY": "a number with its unit",
    "TEXT": "text in quotes",
    "TYPED": "",
    "BOOLEAN": "",
    "COMPARED": "`=`, `!=`, `<`, `>`, `<=`, `>=`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "COMMA": "`,`",
    "DOT": "`.`",
    "$END": "the end of the line",
    "WORD": "an action",
    "POLICY_NAME": "a name",
    "_FOLLOWED_BY": "`followed-by`",
    "_WITH": "`with property`",
}
_ORDER = ("NAME", "QUANTITY", "TEXT", "LPAR", "RPAR", "COMMA", "DOT", "COMPARED", "_AND", "_OR", "_FOLLOWED_BY", "$END")
_KEYWORDS = {
    "_AND": "and",
    "_OR": "or",
    "_FOLLOWED_BY": "followed-by",
    "IS": "is",
    "NOT": "not",
    "OF": "of",
    "_WITHIN": "within",
    "_WITH": "with property",
    "_PROPERTY": "property",
    "IN": "in",
    "LIKE": "like",
    "CLOSE": "close",
    "OPENING": "opening",
    "EVERY": "every",
    "DETECTION": "detection",
}


_GENERAL_REMEDIES = {
    "duration": "Write a number and a unit of time: `5 s`, `200 ms`, `10 min`.",
    "when": "Write `actions on opening`, `actions on every detection` or `actions on close`.",
    "concepts": "A concept is defined as `person A` or `person A (status = 'guest')`.",
    "condition": "Conditions are relations, `A is not within 5 m of B`, and comparisons, `distance(A, B) < 5 m`.",
    "action": "An action is its name and what it needs: `raise alarm`, `suspend policy night-watch`.",
}


def unexpected(refused: RefusedStatement, remedy: str = "") -> Problem:
    expected = sorted(refused.expected, key=lambda each: (_ORDER.index(each) if each in _ORDER else 99, each))
    spoken = [SPOKEN.get(each, f"`{each.strip('_').lower()}`") for each in expected]
    choices = [each for each in dict.fromkeys(spoken) if each]
    found = refused.found
    words = [_KEYWORDS[each] for each in expected if each in _KEYWORDS]
    similar = nearest(found, words, 1) if len(found) > 1 and found[0].isalpha() and found.lower() not in words else ()
    return POLICY_SYNTAX(
        refused.place(),
        found=shown(found) if found else "The end of the line",
        expected=listed(choices) or "something else",
        nearest=similar,
        remedy=remedy or _GENERAL_REMEDIES.get(refused.rule, ""),
    )


def shown(word: str) -> str:
    if len(word) == 1 and not word.isprintable():
        return f"The character U+{ord(word):04X}"
    return f"`{word}`"


def listed(choices: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]])) if choices else ""


def syntax_problem(refused: RefusedStatement, expected: str, remedy: str) -> Problem:
    found = shown(refused.found) if refused.found else "The end of the line"
    return POLICY_SYNTAX(refused.place(), found=found, expected=expected, nearest=(), remedy=remedy)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a person may have meant by a ``not`` that stands outside of a relation: conditions as they could be written.
# Negation of a sequence is where intuitions part, so the reader is shown both and chooses.

OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""For values for which a comparison is not true: that one comes does not say that none comes for which it is."""

_GENERAL_READINGS = ("X followed-by not Y", "(X followed-by not Y) or not X")


def readings_of_group(text: str, opening: int) -> tuple[str, ...]:
    """Of ``not (…)``, the parenthesis beginning at ``opening``."""
    depth = 0
    for index in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return _readings(text[opening + 1 : index])
    return _GENERAL_READINGS


def readings_of_not_followed(text: str, start: int) -> tuple[str, ...]:
    """Of ``X not followed-by Y``, the ``not`` beginning at ``start``."""
    return _readings(text[:start] + " " * len("not") + text[start + len("not") :])


def is_condition(text: str) -> bool:
    """Whether a line reads: nothing else is proposed to anybody."""
    # Imported here, because `parse` imports this module.
    from situ.policies.language.parse import reads

    return reads(text)


def _readings(text: str) -> tuple[str, ...]:
    from situ.policies.language.parse import parse_condition

    try:
        condition = parse_condition(text)
    except SituError:
        return _GENERAL_READINGS
    if not isinstance(condition, FollowedBy):
        return _readings_without_sequence(condition)
    first, second = _negated(condition.first), _negated(condition.second)
    if first is None or second is None:
        return _GENERAL_READINGS
    then = FollowedBy(condition.first, second, condition.within)
    return print_condition(then), f"({print_condition(then)}) or {print_condition(first)}"


def _readings_without_sequence(condition: Condition) -> tuple[str, ...]:
    """The opposite of the whole, and that of its first part only."""
    negated = _negated(condition)
    if negated is None:
        return _GENERAL_READINGS
    if not isinstance(condition, (AllOf, AnyOf)):
        return (print_condition(negated),)
    first = _negated(condition.parts[0])
    assert first is not None
    return print_condition(negated), print_condition(type(condition)((first, *condition.parts[1:])))


def _negated(condition: Condition) -> Condition | None:
    """The opposite, with `not` inside relations and before comparisons only; None for sequences."""
    match condition:
        case RelationText():
            return RelationText(
                condition.left,
                condition.relationship,
                condition.right,
                negated=not condition.negated,
                parameter=condition.parameter,
                says_is=condition.says_is,
                says_of=condition.says_of,
            )
        case Comparison():
            # That no such value comes; `<=` for `>` would say that another one does.
            return Comparison(condition.left, condition.operator, condition.right, negated=not condition.negated)
        case AllOf() | AnyOf():
            parts = tuple(_negated(part) for part in condition.parts)
            known = tuple(part for part in parts if part is not None)
            other = AnyOf if isinstance(condition, AllOf) else AllOf
            return other(known) if len(known) == len(parts) else None
        case FollowedBy():
            return None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Spellings of other languages: signs and words that are never right in a policy, with what to write instead.

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


def foreign_spellings(rule: str, statement: PolicyStatement, source: SourceText) -> tuple[Problem, ...]:
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


def _negation(found: re.Match[str], statement: PolicyStatement, source: SourceText) -> Problem:
    place = source.location(statement.start + found.start(), statement.start + found.start() + len("not"))
    if found["group"]:
        what, readings = "a parenthesis", readings_of_group(statement.text, found.end() - 1)
    else:
        what, readings = "`followed-by`", readings_of_not_followed(statement.text, found.start())
    return NOT_OUTSIDE(place, what=what, readings=readings)
