"""``X``: what is wrong inside an expression, and what an expression meets in an event."""

from __future__ import annotations

from situ.catalogue.defining import define

SYNTAX = define(
    "X101",
    "syntax of an expression",
    "This is not an expression: {found} is unexpected here.",
    "Expressions are written as in SQL: `at.x < 5 m AND name LIKE 'a%'`; text stands in single quotes.",
    found=str,
)
NOT_IN_LANGUAGE = define(
    "X107",
    "not allowed here",
    "{found} is not allowed here.",
    "Only the operators and functions of the expression language can be used: see the reference of functions.",
    found=str,
)
TOO_LARGE = define(
    "X108",
    "expression too large",
    "The expression is too large: more than {limit} {what}.",
    "Split it into several, or raise the limit under `limits:` in situ.yaml.",
    what=str,
    limit=int,
)
UNKNOWN_NAME = define(
    "X102",
    "unknown name",
    "There is no {kind} `{name}` here.",
    "Did you mean {nearest}?",
    "{instead}",
    kind=str,
    name=str,
    nearest=tuple,
    instead=str,
)
WRONG_TYPE = define(
    "X103",
    "types do not fit",
    "{what}: found {found}, expected {expected}.",
    "{remedy}",
    what=str,
    found=str,
    expected=str,
    remedy=str,
)
WRONG_UNIT = define(
    "X104",
    "units do not fit",
    "{what}: {found} and {expected} do not go together.",
    "{remedy}",
    what=str,
    found=str,
    expected=str,
    remedy=str,
)
ALWAYS_FAILS = define(
    "X105",
    "always fails",
    "This fails whatever the event: {reason}.",
    "A value that cannot be computed would make a dead letter of every event; correct the constant.",
    reason=str,
)
WRONG_CALL = define(
    "X106",
    "function called wrongly",
    "`{name}` cannot be called like this: {reason}.",
    "It is called as {forms}.",
    "See the reference of functions.",
    name=str,
    reason=str,
    forms=tuple,
)
