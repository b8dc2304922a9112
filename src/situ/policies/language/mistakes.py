"""The usual mistakes in policies: functions that each recognise one and say what to write instead.

In order: mistakes in values, in definitions of concepts, in conditions; then `explain_refusal`, which says what is
wrong with any statement that the grammar refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from situ.lang.catalogue import CONCEPT_INCOMPLETE, OPTION_UNFIT, POLICY_NAME, POLICY_SYNTAX, RELATION_INCOMPLETE
from situ.lang.problems import Problem, nearest
from situ.policies.language.statements import OPTIONS, SECTIONS
from situ.policies.language.syntax_errors import (
    NAME,
    OPPOSITE,
    RefusedStatement,
    is_condition,
    shown,
    syntax_problem,
    unexpected,
)

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Mistakes in values, wherever they stand.

_BEFORE_VALUE = re.compile(r"(?:=|!=|<|>|\blike|\bin\s*\(|\bin\s*\([^()]*,)\s*\Z", re.IGNORECASE)


def compound_unit(refused: RefusedStatement) -> Problem | None:
    number = re.search(r"(?P<number>[0-9][0-9.]*)\s*(?P<unit>[^\W\d]\w*)?\Z", refused.before)
    rest = re.match(r"\s*[/*^·]\s*\w*(?:\s*[/*^·]\s*\w+)*", refused.text[refused.at :])
    if number is None or rest is None:
        return None
    unit = f"{number['unit'] or ''}{''.join(rest[0].split())}"
    written = f"{number['number']} [{unit}]" if number["unit"] else f"{number['number']} [m/s]"
    return syntax_problem(refused, "the end of the number", f"Units made of several stand in brackets: `{written}`.")


def decimal_comma(refused: RefusedStatement) -> Problem | None:
    number = re.search(r"(?P<number>[0-9]+)\Z", refused.before)
    rest = re.match(r",(?P<fraction>[0-9]+)", refused.text[refused.at :])
    if number is None or rest is None:
        return None
    written = f"{number['number']}.{rest['fraction']}"
    return syntax_problem(refused, "the end of the number", f"Numbers are written with a point: `{written}`.")


def text_wanted(refused: RefusedStatement) -> Problem | None:
    """``status = guest``."""
    word = refused.found
    if "TEXT" not in refused.expected or not word[:1].isalpha() or not _BEFORE_VALUE.search(refused.before):
        return None
    if word.lower() in ("null", "none"):
        return syntax_problem(refused, "a value", "What is not known fits no property: leave the property out.")
    return syntax_problem(refused, "a value", f"Text stands in single quotes: `'{word}'`.")


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Mistakes in definitions of concepts.

_OPERATORS = ("=", "!=", "<", ">", "<=", ">=", "is", "in", "like")
_OUTSIDE = re.compile(
    rf"(?P<alias>{NAME})\s+(?:(?:where|whose|having|if|that|with)\s+)?(?P<name>{NAME})\Z", re.IGNORECASE
)
_PROPERTIES = "Properties are written `status = 'guest'`, `status in ('guest', 'visitor')` or `name like 'A%'`."


def _one_word(refused: RefusedStatement) -> Problem | None:
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


def _properties_outside(refused: RefusedStatement) -> Problem | None:
    """``person A status = 'guest'``: the attribute is read as the next concept."""
    found = _OUTSIDE.search(refused.before)
    if found is None or "(" in refused.before or refused.found.lower() not in _OPERATORS:
        return None
    if "COMPARED" in refused.expected:
        return None
    remedy = f"Properties stand in parentheses: `{found['alias']} ({found['name']} = …)`."
    return syntax_problem(refused, "an alias", remedy)


def _with_without_property(refused: RefusedStatement) -> Problem | None:
    if "_PROPERTY" not in refused.expected:
        return None
    return syntax_problem(
        refused, "`property`", f"Write `with property {refused.found} …`, or the properties in parentheses."
    )


def _or_between_properties(refused: RefusedStatement) -> Problem | None:
    if refused.found.lower() != "or" or not {"COMMA", "_AND"} & refused.expected:
        return None
    remedy = "Properties must all hold. For several values write `status in ('guest', 'visitor')`."
    return unexpected(refused, remedy)


def _alias_before_attribute(refused: RefusedStatement) -> Problem | None:
    found = re.search(rf"[(,]\s*(?P<alias>{NAME})\Z", refused.before)
    if found is None or refused.found != ".":
        return None
    after = re.match(rf"\.\s*(?P<name>{NAME})", refused.text[refused.at :])
    name = after["name"] if after else "status"
    return syntax_problem(refused, "a comparison", f"Properties are those of the concept itself: `{name} = …`.")


def _no_comparison(refused: RefusedStatement) -> Problem | None:
    """``(status 'guest')``, ``(status is 'guest')``."""
    if "COMPARED" not in refused.expected or not refused.found:
        return None
    return unexpected(refused, _PROPERTIES)


def _comma_in_concept(refused: RefusedStatement) -> Problem | None:
    if refused.found != "," or "COMMA" in refused.expected:
        return None
    return syntax_problem(
        refused, "a concept, properties or the end of the line", "Write every concept on its own line."
    )


def _as(refused: RefusedStatement) -> Problem | None:
    """``person as A``: two words make a concept, the third has no alias."""
    words = refused.before.split()
    if len(words) < 3 or words[-2].lower() != "as":
        return None
    remedy = f"The alias stands behind the concept: `{words[-3]} {words[-1]}`."
    return syntax_problem(refused, "a concept and its alias", remedy)


def _text_for_like(refused: RefusedStatement) -> Problem | None:
    if not re.search(r"\blike\Z", refused.before, re.IGNORECASE):
        return None
    return syntax_problem(
        refused, "text in quotes", "Write a pattern: `name like 'A%'`; `%` is any text, `_` any letter."
    )


def _value_missing(refused: RefusedStatement) -> Problem | None:
    if refused.found not in (")", "") or not re.search(r"[=<>]\Z", refused.before):
        return None
    return syntax_problem(refused, "a value", "Write a value: `status = 'guest'`, `age > 5`.")


def _list_wanted(refused: RefusedStatement) -> Problem | None:
    if re.search(r"\bin\s*\(\Z", refused.before, re.IGNORECASE) and refused.found in (")", ""):
        return syntax_problem(refused, "a value", "Write the values: `in ('guest', 'visitor')`.")
    if not re.search(r"\bin\Z", refused.before, re.IGNORECASE) or "LPAR" not in refused.expected:
        return None
    return syntax_problem(refused, "`(`", "Several values stand in parentheses: `in ('guest', 'visitor')`.")


def _no_property(refused: RefusedStatement) -> Problem | None:
    if refused.found != ")" or not refused.before.endswith("("):
        return None
    return syntax_problem(refused, "a property", "Leave the parentheses out if every instance will do.")


def _property_after_unit(refused: RefusedStatement) -> Problem | None:
    """``(speed > 5 name = 'x')``: ``name`` is read as the unit."""
    found = re.search(rf"[0-9]\s+(?P<name>{NAME})\Z", refused.before)
    if found is None or refused.found.lower() not in _OPERATORS:
        return None
    remedy = f"Put a comma between properties: `5, {found['name']} {refused.found} …`."
    return syntax_problem(refused, "`,` or `)`", remedy)


# The order counts: the first that recognises a statement speaks.
CONCEPT_MISTAKES: tuple[Callable[[RefusedStatement], Problem | None], ...] = (
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
    _comma_in_concept,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Mistakes in conditions.

_ANY = re.IGNORECASE


def _begins_with_operator(refused: RefusedStatement) -> Problem | None:
    word = refused.found.lower()
    if refused.before or word not in ("and", "or", "followed-by"):
        return None
    remedy = f"A line break is an `and` that binds weakest: write `{word}` at the end of the line before."
    return syntax_problem(refused, "a relation or comparison", remedy)


def _ends_with_operator(refused: RefusedStatement) -> Problem | None:
    last = re.search(r"\b(and|or|followed-by)\Z", refused.before, re.IGNORECASE)
    if refused.found or last is None:
        return None
    return syntax_problem(refused, "a relation or comparison", f"Something must follow `{last[1].lower()}`.")


def _not_before_relation(refused: RefusedStatement) -> Problem | None:
    """``not A is inside R``."""
    before = re.search(
        rf"(?:\A|\(|\band|\bor|{_FOLLOWED_BY})\s*(?P<not>not\s+(?P<alias>{NAME}))\Z", refused.before, _ANY
    )
    if before is None or not re.match(r"[^\W\d]", refused.found):
        return None
    rest = re.match(r"\s*(?:is\s+)?(?P<rest>[^()]*)", refused.text[refused.at :], _ANY)
    assert rest is not None  # all of it may be nothing
    said = re.split(r"\s(?:and|or|followed-by)\b", rest["rest"].strip(), maxsplit=1, flags=re.IGNORECASE)[0]
    reading = f"{before['alias']} is not {' '.join(said.split())}"
    remedy = f"Write `{reading}`." if is_condition(reading) else "Write `A is not inside R`."
    place = refused.place(before.start("not"), before.start("not") + len("not"))
    return RELATION_INCOMPLETE(place, reason="`not` comes before the alias", remedy=remedy)


def _not_inside_comparison(refused: RefusedStatement) -> Problem | None:
    """``A.x not = 3``, ``A.x is not 3``, ``A.x = not 3``: `not` stands before the whole, or another sign is meant."""
    start, factor = _factor(refused)
    found = _COMPARED.fullmatch(factor)
    if (
        found is None
        or refused.found.lower() not in ("is", "not")
        or not (found["is"] or found["not"] or found["late"])
    ):
        return None
    left, sign, right = found["left"], found["sign"] or "=", found["right"].strip()
    plain = f"{left} {sign} {right}"
    if not is_condition(plain):
        return None
    place = refused.place(start + found.start("said"), start + found.end("said"))
    if not (found["not"] or found["late"]):
        return RELATION_INCOMPLETE(place, reason="values are compared with a sign", remedy=f"Write `{plain}`.")
    other = f"{left} {OPPOSITE[sign]} {right}"
    remedy = f"Write `not {plain}`: no such value comes; or `{other}`: a value comes for which this is so."
    return RELATION_INCOMPLETE(place, reason="`not` comes inside a comparison", remedy=remedy)


_OPERAND = rf"{NAME}\s*(?:\.\s*{NAME}|\(\s*{NAME}\s*,\s*{NAME}\s*\))"
_FOLLOWED_BY = r"\bfollowed-by(?:\s+within\s+[0-9.]+\s*[^\W\d]\w*)?"
_COMPARED = re.compile(
    rf"(?:not\s+)?(?P<left>{_OPERAND})\s*(?P<said>(?P<is>is\b)?\s*(?P<not>not\b)?\s*(?P<sign><=|>=|!=|=|<|>)?)"
    r"\s*(?P<late>not\b)?(?P<right>.+)",
    _ANY,
)


def _factor(refused: RefusedStatement) -> tuple[int, str]:
    """The relation or comparison in which it stopped making sense, and where that begins."""
    start = 0
    for found in re.finditer(rf"\(|\band\b|\bor\b|{_FOLLOWED_BY}", refused.text[: refused.at], _ANY):
        if not re.search(rf"{NAME}\s*\Z", refused.text[: found.start()]) or found[0] != "(":
            start = found.end()
    rest = re.split(r"\s(?:and|or|followed-by)\b", refused.text[start:], maxsplit=1, flags=re.IGNORECASE)[0]
    return start + len(rest) - len(rest.lstrip()), rest.strip()


def _not_before_duration(refused: RefusedStatement) -> Problem | None:
    """``followed-by not within 10 min T.x > 3``, ``followed-by within 10 not min T.x > 3``."""
    found = re.search(
        r"followed-by\s+(?:not\s+within\s+(?P<one>[0-9.]+\s*[^\W\d]\w*)|within\s+(?P<two>[0-9.]+)\s+not\s+(?P<unit>[^\W\d]\w*))"
        r"\s+(?P<rest>.+)",
        refused.text,
        _ANY,
    )
    if found is None or not found.start() <= refused.at <= found.start("rest") + len(found["rest"]):
        return None
    span = found["one"] or f"{found['two']} {found['unit']}"
    meant = re.split(r"\s(?:and|or|followed-by)\b", found["rest"], maxsplit=1, flags=re.IGNORECASE)[0].strip(") ")
    relation = re.fullmatch(rf"(?P<alias>{NAME})\s+(?:is\s+)?(?P<said>{NAME}.*)", meant, _ANY)
    negated = f"{relation['alias']} is not {relation['said']}" if relation else f"not {meant}"
    written = f"followed-by within {span} {negated}"
    remedy = (
        f"Write `{written}`." if is_condition(f"A.x = 1 {written}") else "Write `followed-by within 10 s not A.x > 3`."
    )
    at = refused.text.lower().index("not", found.start())
    reason = "`not` stands between `followed-by` and its duration"
    return RELATION_INCOMPLETE(refused.place(at, at + len("not")), reason=reason, remedy=remedy)


def _not_behind_relationship(refused: RefusedStatement) -> Problem | None:
    if refused.found.lower() != "not" or not refused.before:
        return None
    start, factor = _factor(refused)
    before = refused.text[start : refused.at].split()
    after = factor[refused.at - start :].split()[1:]
    meant = ""
    if before and after:
        verb = before[:-1] if before[-2:-1] and before[-2].lower() == "is" else [*before[:-1], "is"]
        meant = " ".join([*verb, "not", before[-1], *after])
    remedy = f"Write `{meant}`." if is_condition(meant) else "Write `A is not inside R`."
    return RELATION_INCOMPLETE(refused.place(), reason="`not` comes behind the name of the relationship", remedy=remedy)


def _not_twice(refused: RefusedStatement) -> Problem | None:
    if refused.found.lower() != "not" or not re.search(r"\bnot\Z", refused.before, re.IGNORECASE):
        return None
    return RELATION_INCOMPLETE(refused.place(), reason="`not` stands twice", remedy="Leave one, or neither.")


def _alias_as_unit(refused: RefusedStatement) -> Problem | None:
    found = re.search(rf"(?P<number>[0-9.]+)\s*(?P<unit>{NAME})\Z", refused.before)
    if found is None or found["unit"] not in refused.aliases:
        return None
    number, alias = found["number"], found["unit"]
    return RELATION_INCOMPLETE(
        refused.place(found.start("unit"), found.end("unit")),
        reason=f"`{alias}` behind the number is read as its unit",
        remedy=f"Write the unit and `of`: `{number} m of {alias}`.",
    )


def _then(refused: RefusedStatement) -> Problem | None:
    words = [refused.found.lower(), *(word.lower() for word in refused.before.split()[-1:])]
    sign = next((word for word in words if word in ("then", "before", "after", "afterwards", "next")), None)
    if sign is None or "followed-by" in refused.before.lower().split()[-2:]:
        return None
    remedy = (
        f"One thing after another is `followed-by`: `A is inside R followed-by A is inside Q`. `{sign}` is no word."
    )
    return syntax_problem(refused, "`and`, `or`, `followed-by` or the end of the line", remedy)


def _attribute_without_alias(refused: RefusedStatement) -> Problem | None:
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


def _text_without_quotes(refused: RefusedStatement) -> Problem | None:
    """``A.status = guest``: the word could begin an attribute or a measure."""
    word = re.search(rf"[=<>]\s*(?P<name>{NAME})\Z", refused.before)
    if word is None or "DOT" not in refused.expected:
        return None
    name = word["name"]
    remedy = f"Text stands in single quotes, `'{name}'`; an attribute is written with its alias, as `A.{name}`."
    return syntax_problem(refused, "`(` or `.`", remedy)


def _compared_twice(refused: RefusedStatement) -> Problem | None:
    if refused.found not in ("=", "!=", "<", ">", "<=", ">=") or "_AND" not in refused.expected:
        return None
    return unexpected(refused, "Compare two at a time: `1 m < distance(A, B) and distance(A, B) < 5 m`.")


def _arithmetic(refused: RefusedStatement) -> Problem | None:
    if refused.found not in ("+", "-", "*", "/", "%", "^"):
        return None
    return unexpected(refused, "Policies do not calculate: declare a measure in the ontology, and compare that.")


def _not_before_is(refused: RefusedStatement) -> Problem | None:
    if refused.found.lower() != "is" or not re.search(r"\bnot\Z", refused.before, re.IGNORECASE):
        return None
    return RELATION_INCOMPLETE(refused.place(), reason="`not` comes before `is`", remedy="Write `is not`.")


def _no_duration(refused: RefusedStatement) -> Problem | None:
    if not re.search(r"\bfollowed-by\s+within\Z", refused.before, re.IGNORECASE):
        return None
    return syntax_problem(refused, "a duration", "Write how long: `followed-by within 10 s`.")


def _part_of_attribute(refused: RefusedStatement) -> Problem | None:
    if refused.found != "." or re.search(rf"{NAME}\.{NAME}\Z", refused.before) is None:
        return None
    return syntax_problem(
        refused, "an operator", "Attributes are compared whole: give parts names of their own in the ontology."
    )


def _several_words(refused: RefusedStatement) -> Problem | None:
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


def _two_in_a_line(refused: RefusedStatement) -> Problem | None:
    if "_AND" not in refused.expected or not re.match(r"[^\W\d]", refused.found):
        return None
    if _near_operator(refused.found) or refused.found.lower() in ("is", "of", "not"):
        return None
    if "RPAR" in refused.expected:
        return unexpected(refused, "Inside parentheses a line break joins nothing: write `and` or `or`.")
    return unexpected(refused, "Between two conditions stands `and`, `or`, `followed-by` or a line break.")


def _nothing_right(refused: RefusedStatement) -> Problem | None:
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


def _unit_alone(refused: RefusedStatement) -> Problem | None:
    """``A is within m of B``: ``m`` is read as the alias, and then comes ``of``."""
    found = re.search(rf"(?P<name>{NAME})\s+(?P<unit>{NAME})\Z", refused.before)
    if found is None or refused.found.lower() != "of" or found["unit"] in refused.aliases:
        return None
    return RELATION_INCOMPLETE(
        refused.place(found.start("unit"), found.end("unit")),
        reason=f"`{found['unit']}` has no number",
        remedy=f"Write the number before its unit: `{found['name']} 5 {found['unit']} of …`.",
    )


def _comma_in_condition(refused: RefusedStatement) -> Problem | None:
    if refused.found != "," or "COMMA" in refused.expected:
        return None
    remedy = "Write every relation by itself: `A is inside R and B is inside R`."
    return syntax_problem(refused, "`and`, `or`, `followed-by` or the end of the line", remedy)


def _arguments(refused: RefusedStatement) -> Problem | None:
    found = re.search(rf"(?P<name>{NAME})\s*\([^()]*\Z", refused.before)
    if found is None or "COMPARED" in refused.expected or found["name"].lower() in ("and", "or", "followed-by"):
        return None
    if re.fullmatch(rf"\(\s*(?:{NAME})?(?:\s*,\s*{NAME})*\s*,?", refused.before[found.end("name") :].strip()) is None:
        return None
    return unexpected(refused, f"A measure is over two aliases: `{found['name']}(A, B)`.")


# The order counts here, too.
CONDITION_MISTAKES: tuple[Callable[[RefusedStatement], Problem | None], ...] = (
    _begins_with_operator,
    _ends_with_operator,
    _not_before_duration,
    _not_before_relation,
    _not_inside_comparison,
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
    _comma_in_condition,
    _arithmetic,
    _two_in_a_line,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Any statement that the grammar refuses: the usual mistakes by name, all others by what was expected.


def explain_refusal(refused: RefusedStatement) -> Problem:
    """The one problem of a statement that the grammar refuses."""
    for recognise in _MISTAKES[refused.rule]:
        if (problem := recognise(refused)) is not None:
            return problem
    return unexpected(refused)


def _not_an_option(refused: RefusedStatement) -> Problem | None:
    word, place = refused.found, refused.place()
    if word.lower() in ("if", "when", "then", "rule", "select", "from"):
        remedy = "A policy has the sections `concepts`, `conditions` and `actions`."
        return POLICY_SYNTAX(place, found=f"`{word}`", expected="an option or a section", nearest=(), remedy=remedy)
    known = ("policy", *OPTIONS, *SECTIONS)
    remedy = f"Before `concepts` stand {', '.join(f'`{each}`' for each in ('policy', *OPTIONS))}."
    if not word[:1].isalpha():
        return POLICY_SYNTAX(place, found=shown(word), expected="an option or a section", nearest=(), remedy=remedy)
    return OPTION_UNFIT(place, option=word, reason="is not known", nearest=nearest(word, known), remedy=remedy)


def _bad_name(refused: RefusedStatement) -> Problem | None:
    name = refused.text.strip()
    if not name:
        return POLICY_NAME(refused.place(), found="Nothing")
    start = refused.text.index(name)
    return POLICY_NAME(refused.place(start, start + len(name)), found=shown(name))


def _sign_before_duration(refused: RefusedStatement) -> Problem | None:
    if not re.match(r"\s*[:=]", refused.text):
        return None
    return syntax_problem(refused, "a duration", "Options are written without a sign: `window 5 s`.")


def _no_mode(refused: RefusedStatement) -> Problem | None:
    modes = ("chronicle", "recent", "all")
    reason = f"cannot be {shown(refused.found)}" if refused.found else "says nothing"
    return OPTION_UNFIT(
        refused.place(),
        option="consumption",
        reason=reason,
        nearest=nearest(refused.found, modes, 1),
        remedy="It is `chronicle`, `recent` or `all`.",
    )


_MISTAKES: Mapping[str, tuple[Callable[[RefusedStatement], Problem | None], ...]] = {
    "preamble": (_not_an_option,),
    "policy": (_bad_name,),
    "duration": (_sign_before_duration,),
    "consumption": (_no_mode,),
    "when": (),
    "concepts": CONCEPT_MISTAKES,
    "condition": CONDITION_MISTAKES,
    "action": (),
}
