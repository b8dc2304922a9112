"""The usual mistakes in conditions: each function recognises one and says what to write."""

from __future__ import annotations

import re
from collections.abc import Callable

from situ.catalogue import RELATION_INCOMPLETE
from situ.errors import Problem, nearest
from situ.situation.language.mistaken_values import compound_unit, decimal_comma, text_wanted
from situ.situation.language.refused import NAME, Refused, syntax_problem, unexpected

_ANY = re.IGNORECASE


def _begins_with_operator(refused: Refused) -> Problem | None:
    word = refused.found.lower()
    if refused.before or word not in ("and", "or", "followed-by"):
        return None
    remedy = f"A line break is an `and` that binds weakest: write `{word}` at the end of the line before."
    return syntax_problem(refused, "a relation or comparison", remedy)


def _ends_with_operator(refused: Refused) -> Problem | None:
    last = re.search(r"\b(and|or|followed-by)\Z", refused.before, re.IGNORECASE)
    if refused.found or last is None:
        return None
    return syntax_problem(refused, "a relation or comparison", f"Something must follow `{last[1].lower()}`.")


def _not_before_relation(refused: Refused) -> Problem | None:
    found = re.match(rf"not\s+(?P<alias>{NAME})\s+(?:is\s+)?(?P<rest>[^()]*)", refused.text[refused.at :], _ANY)
    if found is None or re.search(r"(?:\A|\(|\band|\bor|\bfollowed-by)\Z", refused.before, re.IGNORECASE) is None:
        return None
    rest = re.split(r"\s(?:and|or|followed-by)\b", found["rest"].strip(), maxsplit=1, flags=re.IGNORECASE)[0]
    reading = f"`{found['alias']} is not {' '.join(rest.split())}`"
    return RELATION_INCOMPLETE(refused.place(), reason="`not` comes before the alias", remedy=f"Write {reading}.")


def _not_behind_relationship(refused: Refused) -> Problem | None:
    if refused.found.lower() != "not" or not refused.before:
        return None
    words = refused.before.split()
    verb = " ".join(words[:-1]) if len(words) > 1 else words[-1]
    after = refused.text[refused.at :].split()[1:2]
    remedy = f"Write `{verb} not {words[-1]} {after[0]}`." if after and len(words) > 1 else "Write `A is not inside R`."
    return RELATION_INCOMPLETE(
        refused.place(), reason="`not` comes behind the name of the relationship", remedy=remedy.replace("is is", "is")
    )


def _not_twice(refused: Refused) -> Problem | None:
    if refused.found.lower() != "not" or not re.search(r"\bnot\Z", refused.before, re.IGNORECASE):
        return None
    return RELATION_INCOMPLETE(refused.place(), reason="`not` stands twice", remedy="Leave one, or neither.")


def _alias_as_unit(refused: Refused) -> Problem | None:
    found = re.search(rf"(?P<number>[0-9.]+)\s*(?P<unit>{NAME})\Z", refused.before)
    if found is None or found["unit"] not in refused.aliases:
        return None
    number, alias = found["number"], found["unit"]
    return RELATION_INCOMPLETE(
        refused.place(found.start("unit"), found.end("unit")),
        reason=f"`{alias}` behind the number is read as its unit",
        remedy=f"Write the unit and `of`: `{number} m of {alias}`.",
    )


def _then(refused: Refused) -> Problem | None:
    words = [refused.found.lower(), *(word.lower() for word in refused.before.split()[-1:])]
    sign = next((word for word in words if word in ("then", "before", "after", "afterwards", "next")), None)
    if sign is None or "followed-by" in refused.before.lower().split()[-2:]:
        return None
    remedy = (
        f"One thing after another is `followed-by`: `A is inside R followed-by A is inside Q`. `{sign}` is no word."
    )
    return syntax_problem(refused, "`and`, `or`, `followed-by` or the end of the line", remedy)


def _attribute_without_alias(refused: Refused) -> Problem | None:
    word = re.search(rf"(?:\A|\(|\band\s|\bor\s|\bfollowed-by\s)\s*(?P<name>{NAME})\Z", refused.before, re.IGNORECASE)
    if word is None or refused.found not in ("=", "!=", "<", ">", "<=", ">="):
        return None
    name = word["name"]
    alias = refused.aliases[0] if refused.aliases else "A"
    remedy = (
        f"An attribute is written with its alias: `{alias}.{name} {refused.found} …`; measures as `distance(A, B)`."
    )
    if name in refused.aliases:
        remedy = f"`{name}` is an alias: compare one of its attributes, as `{name}.id`."
    return syntax_problem(refused, "a relationship, `(` or `.`", remedy)


def _text_without_quotes(refused: Refused) -> Problem | None:
    """``A.status = guest``: the word could begin an attribute or a measure."""
    word = re.search(rf"[=<>]\s*(?P<name>{NAME})\Z", refused.before)
    if word is None or "DOT" not in refused.expected:
        return None
    name = word["name"]
    remedy = f"Text stands in single quotes, `'{name}'`; an attribute is written with its alias, as `A.{name}`."
    return syntax_problem(refused, "`(` or `.`", remedy)


def _compared_twice(refused: Refused) -> Problem | None:
    if refused.found not in ("=", "!=", "<", ">", "<=", ">=") or "_AND" not in refused.expected:
        return None
    return unexpected(refused, "Compare two at a time: `1 m < distance(A, B) and distance(A, B) < 5 m`.")


def _arithmetic(refused: Refused) -> Problem | None:
    if refused.found not in ("+", "-", "*", "/", "%", "^"):
        return None
    return unexpected(refused, "Policies do not calculate: declare a measure in the ontology, and compare that.")


def _not_before_is(refused: Refused) -> Problem | None:
    if refused.found.lower() != "is" or not re.search(r"\bnot\Z", refused.before, re.IGNORECASE):
        return None
    return RELATION_INCOMPLETE(refused.place(), reason="`not` comes before `is`", remedy="Write `is not`.")


def _no_duration(refused: Refused) -> Problem | None:
    if not re.search(r"\bfollowed-by\s+within\Z", refused.before, re.IGNORECASE):
        return None
    return syntax_problem(refused, "a duration", "Write how long: `followed-by within 10 s`.")


def _part_of_attribute(refused: Refused) -> Problem | None:
    if refused.found != "." or re.search(rf"{NAME}\.{NAME}\Z", refused.before) is None:
        return None
    return syntax_problem(
        refused, "an operator", "Attributes are compared whole: give parts names of their own in the ontology."
    )


def _several_words(refused: Refused) -> Problem | None:
    """``A is next to B``: three words after the verb."""
    found = re.search(rf"\bis\s+(?:not\s+)?(?P<one>{NAME})\s+(?P<two>{NAME})\Z", refused.before, re.IGNORECASE)
    if found is None or not re.match(r"[^\W\d]", refused.found) or found["two"] in refused.aliases:
        return None
    if _near_operator(refused.found):
        return None
    return RELATION_INCOMPLETE(
        refused.place(),
        reason=f"`{found['one']} {found['two']}` are two words",
        remedy=f"The name of a relationship is one word, as `{found['one']}_{found['two']}`.",
    )


def _near_operator(word: str) -> bool:
    return len(word) > 1 and bool(nearest(word, ("and", "or", "followed-by"), 1))


def _two_in_a_line(refused: Refused) -> Problem | None:
    if "_AND" not in refused.expected or not re.match(r"[^\W\d]", refused.found):
        return None
    if _near_operator(refused.found) or refused.found.lower() in ("is", "of", "not"):
        return None
    if "RPAR" in refused.expected:
        return unexpected(refused, "Inside parentheses a line break joins nothing: write `and` or `or`.")
    return unexpected(refused, "Between two conditions stands `and`, `or`, `followed-by` or a line break.")


def _nothing_right(refused: Refused) -> Problem | None:
    """A relation that ends, or goes over to the next one, before its second alias."""
    ends = not refused.found or refused.found.lower() in ("and", "or", "followed-by", ")")
    if not ends or "NAME" not in refused.expected or not refused.before.split():
        return None
    words = refused.before.split()
    if re.search(r"(?:[=<>]|\band|\bor|\bfollowed-by)\Z", refused.before, re.IGNORECASE):
        return unexpected(refused, f"Something must stand behind `{words[-1]}`.")
    if words[-1].endswith("("):
        return unexpected(refused, "Parentheses hold conditions.")
    if words[-1].lower() in ("is", "not"):
        reason, remedy = "the relationship is missing", "Write `A is inside R`."
    elif words[-1] in refused.aliases and "IS" in refused.expected:
        reason, remedy = f"`{words[-1]}` stands alone", f"Say what is with it: `{words[-1]} is inside R`."
    elif re.search(r"[0-9]\s*(?:[^\W\d]\w*|\[[^\]]*\]|%)?\Z", refused.before):
        reason, remedy = "the second alias is missing", f"Write `of` and an alias behind `{words[-1]}`."
    else:
        reason, remedy = "the second alias is missing", f"Write an alias behind `{words[-1]}`."
    return RELATION_INCOMPLETE(refused.place(), reason=reason, remedy=remedy)


def _unit_alone(refused: Refused) -> Problem | None:
    """``A is within m of B``: ``m`` is read as the alias, and then comes ``of``."""
    found = re.search(rf"(?P<name>{NAME})\s+(?P<unit>{NAME})\Z", refused.before)
    if found is None or refused.found.lower() != "of" or found["unit"] in refused.aliases:
        return None
    return RELATION_INCOMPLETE(
        refused.place(found.start("unit"), found.end("unit")),
        reason=f"`{found['unit']}` has no number",
        remedy=f"Write the number before its unit: `{found['name']} 5 {found['unit']} of …`.",
    )


def _comma(refused: Refused) -> Problem | None:
    if refused.found != "," or "COMMA" in refused.expected:
        return None
    remedy = "Write every relation by itself: `A is inside R and B is inside R`."
    return syntax_problem(refused, "`and`, `or`, `followed-by` or the end of the line", remedy)


def _arguments(refused: Refused) -> Problem | None:
    found = re.search(rf"(?P<name>{NAME})\s*\([^()]*\Z", refused.before)
    if found is None or "COMPARED" in refused.expected or found["name"].lower() in ("and", "or", "followed-by"):
        return None
    if re.fullmatch(rf"\(\s*(?:{NAME})?(?:\s*,\s*{NAME})*\s*,?", refused.before[found.end("name") :].strip()) is None:
        return None
    return unexpected(refused, f"A measure is over two aliases: `{found['name']}(A, B)`.")


RECOGNISED: tuple[Callable[[Refused], Problem | None], ...] = (
    _begins_with_operator,
    _ends_with_operator,
    _not_before_relation,
    _no_duration,
    compound_unit,
    decimal_comma,
    _alias_as_unit,
    _not_twice,
    _not_behind_relationship,
    _not_before_is,
    _text_without_quotes,
    _compared_twice,
    _then,
    _unit_alone,
    _attribute_without_alias,
    _part_of_attribute,
    text_wanted,
    _arguments,
    _several_words,
    _nothing_right,
    _comma,
    _arithmetic,
    _two_in_a_line,
)
