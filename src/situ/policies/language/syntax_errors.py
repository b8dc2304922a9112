"""A statement that the grammar refuses: where it stopped making sense, and how that is said in general."""

from __future__ import annotations

import re
from dataclasses import dataclass

from situ.catalogue import POLICY_SYNTAX
from situ.documents.source import Source
from situ.errors import Location, Problem, nearest
from situ.situation.language.lines import Statement


@dataclass(frozen=True, slots=True)
class Refused:
    """A statement, what it should have been, where it stopped making sense, and what could have come there."""

    rule: str
    statement: Statement
    source: Source
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


_IN_GENERAL = {
    "duration": "Write a number and a unit of time: `5 s`, `200 ms`, `10 min`.",
    "when": "Write `actions on opening`, `actions on every detection` or `actions on close`.",
    "concepts": "A concept is defined as `person A` or `person A (status = 'guest')`.",
    "condition": "Conditions are relations, `A is not within 5 m of B`, and comparisons, `distance(A, B) < 5 m`.",
    "action": "An action is its name and what it needs: `raise alarm`, `suspend policy night-watch`.",
}


def unexpected(refused: Refused, remedy: str = "") -> Problem:
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
        remedy=remedy or _IN_GENERAL.get(refused.rule, ""),
    )


def shown(word: str) -> str:
    if len(word) == 1 and not word.isprintable():
        return f"The character U+{ord(word):04X}"
    return f"`{word}`"


def listed(choices: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]])) if choices else ""


def syntax_problem(refused: Refused, expected: str, remedy: str) -> Problem:
    found = shown(refused.found) if refused.found else "The end of the line"
    return POLICY_SYNTAX(refused.place(), found=found, expected=expected, nearest=(), remedy=remedy)
