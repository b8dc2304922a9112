"""The usual mistakes in definitions of concepts: each function recognises one and says what to write."""

from __future__ import annotations

import re
from collections.abc import Callable

from situ.catalogue import CONCEPT_INCOMPLETE
from situ.errors import Problem
from situ.situation.language.mistaken_values import compound_unit, decimal_comma, text_wanted
from situ.situation.language.refused import NAME, Refused, syntax_problem, unexpected

_OPERATORS = ("=", "!=", "<", ">", "<=", ">=", "is", "in", "like")
_OUTSIDE = re.compile(
    rf"(?P<alias>{NAME})\s+(?:(?:where|whose|having|if|that|with)\s+)?(?P<name>{NAME})\Z", re.IGNORECASE
)
_PROPERTIES = "Properties are written `status = 'guest'`, `status in ('guest', 'visitor')` or `name like 'A%'`."


def _one_word(refused: Refused) -> Problem | None:
    words = re.findall(r"[\w-]+|\S", refused.text)
    if refused.before.split()[-1:] == [] or "NAME" not in refused.expected or len(refused.before.split()) % 2 == 0:
        return None
    if refused.found and refused.found != "(":
        return None
    word = words[len(re.findall(r"[\w-]+|\S", refused.before)) - 1]
    if word in refused.aliases or (len(word) <= 2 and word.isupper()):
        remedy = f"Write the concept before the alias: `person {word}`."
    else:
        remedy = f"Write an alias behind the concept: `{word} {word[:1].upper()}`."
    place = refused.place(refused.before.rindex(word), len(refused.before))
    return CONCEPT_INCOMPLETE(place, found=f"`{word}`", remedy=remedy)


def _properties_outside(refused: Refused) -> Problem | None:
    """``person A status = 'guest'``: the attribute is read as the next concept."""
    found = _OUTSIDE.search(refused.before)
    if found is None or "(" in refused.before or refused.found.lower() not in _OPERATORS:
        return None
    if "COMPARED" in refused.expected:
        return None
    remedy = f"Properties stand in parentheses: `{found['alias']} ({found['name']} = …)`."
    return syntax_problem(refused, "an alias", remedy)


def _with_without_property(refused: Refused) -> Problem | None:
    if "_PROPERTY" not in refused.expected:
        return None
    return syntax_problem(
        refused, "`property`", f"Write `with property {refused.found} …`, or the properties in parentheses."
    )


def _or_between_properties(refused: Refused) -> Problem | None:
    if refused.found.lower() != "or" or not {"COMMA", "_AND"} & refused.expected:
        return None
    remedy = "Properties must all hold. For several values write `status in ('guest', 'visitor')`."
    return unexpected(refused, remedy)


def _alias_before_attribute(refused: Refused) -> Problem | None:
    found = re.search(rf"[(,]\s*(?P<alias>{NAME})\Z", refused.before)
    if found is None or refused.found != ".":
        return None
    after = re.match(rf"\.\s*(?P<name>{NAME})", refused.text[refused.at :])
    name = after["name"] if after else "status"
    return syntax_problem(refused, "a comparison", f"Properties are those of the concept itself: `{name} = …`.")


def _no_comparison(refused: Refused) -> Problem | None:
    """``(status 'guest')``, ``(status is 'guest')``."""
    if "COMPARED" not in refused.expected or not refused.found:
        return None
    return unexpected(refused, _PROPERTIES)


def _comma(refused: Refused) -> Problem | None:
    if refused.found != "," or "COMMA" in refused.expected:
        return None
    return syntax_problem(
        refused, "a concept, properties or the end of the line", "Write every concept on its own line."
    )


def _as(refused: Refused) -> Problem | None:
    """``person as A``: two words make a concept, the third has no alias."""
    words = refused.before.split()
    if len(words) < 3 or words[-2].lower() != "as":
        return None
    remedy = f"The alias stands behind the concept: `{words[-3]} {words[-1]}`."
    return syntax_problem(refused, "a concept and its alias", remedy)


def _text_for_like(refused: Refused) -> Problem | None:
    if not re.search(r"\blike\Z", refused.before, re.IGNORECASE):
        return None
    return syntax_problem(
        refused, "text in quotes", "Write a pattern: `name like 'A%'`; `%` is any text, `_` any letter."
    )


def _value_missing(refused: Refused) -> Problem | None:
    if refused.found not in (")", "") or not re.search(r"[=<>]\Z", refused.before):
        return None
    return syntax_problem(refused, "a value", "Write a value: `status = 'guest'`, `age > 5`.")


def _list_wanted(refused: Refused) -> Problem | None:
    if re.search(r"\bin\s*\(\Z", refused.before, re.IGNORECASE) and refused.found in (")", ""):
        return syntax_problem(refused, "a value", "Write the values: `in ('guest', 'visitor')`.")
    if not re.search(r"\bin\Z", refused.before, re.IGNORECASE) or "LPAR" not in refused.expected:
        return None
    return syntax_problem(refused, "`(`", "Several values stand in parentheses: `in ('guest', 'visitor')`.")


def _no_property(refused: Refused) -> Problem | None:
    if refused.found != ")" or not refused.before.endswith("("):
        return None
    return syntax_problem(refused, "a property", "Leave the parentheses out if every instance will do.")


def _property_after_unit(refused: Refused) -> Problem | None:
    """``(speed > 5 name = 'x')``: ``name`` is read as the unit."""
    found = re.search(rf"[0-9]\s+(?P<name>{NAME})\Z", refused.before)
    if found is None or refused.found.lower() not in _OPERATORS:
        return None
    remedy = f"Put a comma between properties: `5, {found['name']} {refused.found} …`."
    return syntax_problem(refused, "`,` or `)`", remedy)


RECOGNISED: tuple[Callable[[Refused], Problem | None], ...] = (
    compound_unit,
    decimal_comma,
    _property_after_unit,
    _properties_outside,
    _with_without_property,
    _as,
    _one_word,
    _or_between_properties,
    _alias_before_attribute,
    _list_wanted,
    _no_property,
    _text_for_like,
    _value_missing,
    text_wanted,
    _no_comparison,
    _comma,
)
