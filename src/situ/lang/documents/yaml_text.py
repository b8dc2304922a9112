"""What the YAML scanner complains about, in words that help the writer.

The scanner reports where it gave up and what it was looking for; people want to know what they did. One
table of the usual mistakes translates. Both of PyYAML's parsers are covered: they word the same complaint
differently.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from yaml import MarkedYAMLError

from situ.catalogue import YAML_SYNTAX
from situ.documents.source import Source
from situ.errors import Problem


class _Mistake(NamedTuple):
    complaint: re.Pattern[str]
    reason: str
    remedy: str
    at_opening: bool = False  # show where the broken thing begins, not where the scanner gave up


def _mistake(complaint: str, reason: str, remedy: str, *, at_opening: bool = False) -> _Mistake:
    return _Mistake(re.compile(complaint), reason, remedy, at_opening)


# In order: the first that matches explains. The complaint is "context; problem" in PyYAML's words.
_MISTAKES = (
    _mistake(
        r"tab character",
        "a tab where only spaces can stand",
        "Indent with spaces; YAML allows no tabs there.",
    ),
    _mistake(
        r"cannot start any token",
        "no value can begin with `{character}`",
        "Put text that begins with `{character}` in quotes.",
    ),
    _mistake(
        r"quoted scalar; found unexpected (end of stream|document)",
        "the quote opened here is never closed",
        "Close it; inside single quotes `''` is a quote, inside double quotes `\\\"` is.",
        at_opening=True,
    ),
    _mistake(
        r"unknown escape character",
        "`\\{after}` is no escape",
        "Write `\\\\` for a backslash in double quotes, or use single quotes, where it needs no escape.",
    ),
    _mistake(
        r"hexdecimal number|escape sequence of",
        "this escape lacks digits",
        "`\\x` takes two hexadecimal digits, `\\u` four, `\\U` eight; `\\\\` is a backslash.",
    ),
    _mistake(
        r"scanning an? (alias|anchor)",
        "a name is missing after `&` or `*`",
        "Put text that begins with `&` or `*` in quotes.",
        at_opening=True,
    ),
    _mistake(
        r"(scanning|parsing) a tag|tag handle|tag URI|parsing a node; found non-specific",
        "this is no tag",
        "Put text that begins with `!` in quotes; tags are not used.",
    ),
    _mistake(
        r"directive",
        "no line can begin with `%`",
        "Put text that begins with `%` in quotes, or indent it.",
        at_opening=True,
    ),
    _mistake(
        r"scanning a block scalar",
        "nothing but `+`, `-` or one digit from 1 to 9 can follow `|` or `>`",
        "Begin the text on the next line, indented.",
        at_opening=True,
    ),
    _mistake(
        r"could not find expected ':'",
        "a key without `:`",
        "Write `key: value`, with a space after the colon; text over several lines is indented below its key.",
        at_opening=True,
    ),
    _mistake(
        r"mapping values are not allowed",
        "a `:` where no key can stand before it",
        "Put text with `: ` in it in quotes; indent all keys of a mapping alike; does the line above have its `:`?",
    ),
    _mistake(
        r"mapping keys are not allowed",
        "no key can stand here",
        "Begin a mapping on a line of its own.",
    ),
    _mistake(
        r"sequence entries are not allowed",
        "no list can begin here",
        "Begin the list on the line below its key; put text that begins with `- ` in quotes.",
    ),
    _mistake(
        r"flow sequence",
        "the list opened with `[` in line {opening} is not well formed or not closed",
        "Separate its items by commas and close it with `]`.",
    ),
    _mistake(
        r"flow mapping",
        "the mapping opened with `{{` in line {opening} is not well formed or not closed",
        "Separate its entries by commas and close it with `}}`.",
    ),
    _mistake(
        r"node content",
        "a value is missing, or begins with a character it cannot begin with",
        "Write the value, in quotes if it begins with a special character.",
    ),
    _mistake(
        r"block collection|block sequence",
        "this does not belong to the list that begins in line {opening}",
        "Begin every item with `- `, all indented alike.",
    ),
    _mistake(
        r"block mapping",
        "this does not belong to the mapping that begins in line {opening}",
        "Indent all keys of a mapping alike; after a value in quotes or brackets nothing can follow in its line.",
    ),
    _mistake(
        r"document start",
        "the document has ended before this",
        "Check the brackets and quotes of the lines above, and that this line is indented like the first.",
    ),
    _mistake(
        r"unexpected ':'",
        "a `:` inside plain text",
        "Put the text in quotes.",
    ),
)  # fmt: skip

_ESCAPE = re.compile(r"\\(?:x(.{2})|u(.{4})|U(.{8})|(.))", re.DOTALL)


def explain(error: MarkedYAMLError, source: Source) -> Problem:
    """The scanner's complaint as a problem at the place where the writer can mend it."""
    complaint = f"{error.context or ''}; {error.problem or ''}"
    if "invalid Unicode character escape" in complaint:
        return bad_escape(source, _index(error.context_mark, source))
    given_up = _index(error.problem_mark, source)
    opening = _index(error.context_mark, source) if error.context_mark else given_up
    if "unknown escape" in complaint and not source.text.startswith("\\", given_up):
        given_up -= 1  # the parser in Python stops behind the backslash, the one in C before it
    character, after = source.text[given_up : given_up + 1], source.text[given_up + 1 : given_up + 2]
    if character == "\t":
        complaint = "tab character"
    for mistake in _MISTAKES:
        if mistake.complaint.search(complaint):
            # At the end of the text there is nothing to see: show what was left open.
            at_opening = mistake.at_opening or given_up == len(source.text)
            place = source.location(opening if at_opening else given_up)
            values = {"character": character, "after": after, "opening": source.location(opening).line}
            return YAML_SYNTAX(
                place, reason=mistake.reason.format_map(values), remedy=mistake.remedy.format_map(values)
            )
    return YAML_SYNTAX(source.location(given_up), reason=error.problem or "it cannot be read", remedy="")


def bad_escape(source: Source, start: int) -> Problem:
    """The first escape at or after ``start`` that stands for no character of text."""
    for found in _ESCAPE.finditer(source.text, start):
        digits = found[1] or found[2] or found[3]
        if found[4] == "0" or (digits and not _is_character(digits)):
            break
    else:
        return YAML_SYNTAX(source.location(start), reason="an escape that stands for no character", remedy="")
    return YAML_SYNTAX(
        source.location(*found.span()),
        reason=f"`{found[0]}` stands for no character of text",
        remedy="Write the character itself or its number, as in `\\U0001F600`; zero and half a pair are none.",
    )


def _is_character(digits: str) -> bool:
    try:
        number = int(digits, 16)
    except ValueError:
        return True  # another complaint
    return 0 < number < 0xD800 or 0xE000 <= number <= 0x10FFFF


def _index(mark: object, source: Source) -> int:
    """A mark's index, which at the end of the text may lie beyond it."""
    return min(getattr(mark, "index", 0), len(source.text))
