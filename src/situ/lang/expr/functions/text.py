"""Functions on text. Lengths and places count characters (code points) from 1."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from situ.lang.expr.overload import Function, Overload, PythonText, spark_text
from situ.lang.expr.runtime import CASE_PAIRS, LONGEST_TEXT

_LONGEST_SUM = 50  # Python's compiler recurses over every operand
_SMALL = spark_text("".join(small for small, _ in CASE_PAIRS))
_LARGE = spark_text("".join(large for _, large in CASE_PAIRS))


_REPLACE = (
    "CASE WHEN CAST(char_length({0}) AS BIGINT) + CAST(char_length({0}) - char_length(replace({0}, {1}, '')) AS BIGINT) "
    "DIV greatest(char_length({1}), 1) * (char_length({2}) - char_length({1})) "
    f"<= {LONGEST_TEXT} THEN replace({{0}}, {{1}}, {{2}}) END"
)


def clamped(text: str) -> str:
    """Spark counts in int; beyond its range the end of any text or list lies anyway."""
    return f"CASE WHEN {text} > 2147483647L THEN 2147483647 WHEN {text} < -2147483647L THEN -2147483647 ELSE try_cast({text} AS INT) END"


def _substring(args: Sequence[str], constants: Sequence[Any]) -> str:
    return f"substring({args[0]}, {', '.join(clamped(arg) for arg in args[1:])})"


def _substring_python(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
    return f"_substring({', '.join(args)})"


def _concat(args: Sequence[str], constants: Sequence[Any]) -> str:
    return f"concat({', '.join(args)})"


def _concat_python(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
    return f"({' + '.join(args)})" if len(args) <= _LONGEST_SUM else f"''.join(({', '.join(args)}))"


def _kv(args: Sequence[str], constants: Sequence[Any]) -> str:
    separator, equals = _kv_marks(constants)
    prefix = f"concat({args[1]}, {spark_text(equals)})"
    parts = f"split({args[0]}, {spark_text(_quoted(separator))}, -1)"
    found = f"try_element_at(filter({parts}, _situ_p -> startswith(_situ_p, {prefix})), 1)"
    return f"substring({found}, length({prefix}) + 1)"


def _kv_python(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
    separator, equals = _kv_marks(constants)
    key = _constant(args[1])
    if not isinstance(key, str) or len(separator) != 1 or separator in key + equals:
        return f"_kv({args[0]}, {args[1]}, {separator!r}, {equals!r})"
    return f"_kv_of({args[0]}, {separator + key + equals!r}, {separator!r})"


def _split_part_python(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
    separator, place = _constant(args[1]), _constant(args[2])
    if not isinstance(separator, str) or not separator or place not in (1, 2, 3):
        return f"_split_part({', '.join(args)})"
    mark = repr(separator)
    return f"({args[0]}){f'.partition({mark})[2]' * (place - 1)}.partition({mark})[0]"  # the text is not taken apart


def _constant(text: str) -> Any:
    """What a text in Python's spelling stands for, if it is a literal: nothing else is written like one."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None


def _kv_marks(constants: Sequence[Any]) -> tuple[str, str]:
    given = list(constants) + [None] * (2 - len(constants))
    return given[0] or ";", given[1] or "="


def _quoted(text: str) -> str:
    """A Java regular expression that matches just this text."""
    return "".join(c if c.isalnum() else f"\\x{{{ord(c):x}}}" for c in text)


def _like(args: Sequence[str], constants: Sequence[Any]) -> str:
    return f"({args[0]} RLIKE {spark_text(like_expression(constants[0], java=True))})"


def _like_python(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
    import re

    return f"({bind(re.compile(like_expression(constants[0], java=False)).match)}({args[0]}) is not None)"


ANY = "\ud800"
"""Stands for any one character in the pieces of a pattern: half of a character, which no text can have."""

LONGEST_PATTERN = 1000  # Java's regular expressions take stack for every piece, and end the process without it


def _pattern_problem(constants: Sequence[Any]) -> str:
    return "" if len(constants[0]) <= LONGEST_PATTERN else f"a pattern has at most {LONGEST_PATTERN} characters"


def like_pieces(pattern: str) -> list[str | None]:
    """Text to find, with None for ``%`` and :data:`ANY` for ``_``; a backslash takes the next character as it is."""
    pieces: list[str | None] = [""]
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            pieces += [None, ""]
        elif character == "_":
            pieces[-1] = f"{pieces[-1]}{ANY}"
        else:
            literal = next(characters, "\\") if character == "\\" else character
            pieces[-1] = f"{pieces[-1]}{literal}"
    return [piece for piece in pieces if piece != ""]


def like_expression(pattern: str, *, java: bool) -> str:
    """LIKE as a regular expression that never goes back behind a piece it has found: linear on hostile text."""

    def escaped(character: str) -> str:
        return f"\\x{{{ord(character):x}}}" if java else f"\\U{ord(character):08x}"

    def letters(piece: str) -> str:
        return "".join("." if c == ANY else c if c.isascii() and c.isalnum() else escaped(c) for c in piece)

    pieces = like_pieces(pattern)
    result, index = "(?s)\\A", 0
    while index < len(pieces):
        piece = pieces[index]
        if piece is not None:
            result += letters(piece)
        elif index + 1 < len(pieces) and (following := pieces[index + 1]) is not None:
            last = index + 2 == len(pieces)
            result += f".*{letters(following)}" if last else f"(?>.*?{letters(following)})"
            index += 1
        elif index + 1 == len(pieces):
            result += ".*"
        index += 1
    return result + ("\\z" if java else "\\Z")


def _simple(
    name: str,
    doc: str,
    parameters: tuple[str, ...],
    result: str,
    spark: str,
    python: str | PythonText,
    *examples: tuple[str, str],
    **how: Any,
) -> Function:
    overload = Overload(name=name, parameters=parameters, result=result, spark=spark, python=python, **how)
    return Function(name=name, group="text", doc=doc, overloads=(overload,), examples=examples)


TEXT: tuple[Function, ...] = (
    Function(
        name="||",
        group="text",
        doc="Texts put together; null if one is null. `concat` is the same.",
        overloads=(Overload(name="||", parameters=("string",), result="string", spark=_concat, python=_concat_python, variadic=True),),
        examples=(("'a' || 'b'", "'ab'"),),
    ),
    _simple("upper", "In capitals, letter by letter; letters without a single capital stay.", ("string",), "string", f"translate({{0}}, {_SMALL}, {_LARGE})", "_upper({0})", ("upper('Käse')", "'KÄSE'")),
    _simple("lower", "In small letters, letter by letter.", ("string",), "string", f"translate({{0}}, {_LARGE}, {_SMALL})", "_lower({0})", ("lower('ÄB')", "'äb'")),
    _simple("trim", "Without spaces at both ends.", ("string",), "string", "trim({0})", "({0}).strip(' ')", ("trim('  a ')", "'a'")),
    _simple("starts_with", "Whether the text begins with the other.", ("string", "string"), "boolean", "startswith({0}, {1})", "({0}).startswith({1})", ("starts_with('situ', 'si')", "true")),
    _simple("ends_with", "Whether the text ends with the other.", ("string", "string"), "boolean", "endswith({0}, {1})", "({0}).endswith({1})", ("ends_with('situ', 'tu')", "true")),
    Function(
        name="length",
        group="text",
        doc="Number of characters of a text, of bytes of bytes.",
        overloads=(
            Overload(name="length", parameters=("string",), result="long", spark="CAST(char_length({0}) AS BIGINT)", python="len({0})"),
            Overload(name="length", parameters=("bytes",), result="long", spark="CAST(octet_length({0}) AS BIGINT)", python="len({0})"),
        ),
        examples=(("length('Käse')", "4"),),
    ),
    Function(
        name="substring",
        group="text",
        doc="The part from a place on, so many characters long (to the end if left out). A negative place counts from the end.",
        overloads=(Overload(name="substring", parameters=("string", "long", "long"), result="string", spark=_substring, python=_substring_python, optional=1),),
        examples=(("substring('situation', 1, 4)", "'situ'"), ("substring('abc', -2)", "'bc'")),
    ),
    _simple("replace", "Every occurrence of the second text replaced by the third. Fails if that makes a text of more than 4,194,304 characters.", ("string", "string", "string"), "string", _REPLACE, "_replace({0}, {1}, {2})", ("replace('a-b', '-', '+')", "'a+b'"), fails=True),
    _simple("split_part", "The n-th part between separators, counted from the end if negative; empty if there is none. Fails for 0.", ("string", "string", "long"), "string", f"split_part({{0}}, {{1}}, nullif({clamped('{2}')}, 0))", _split_part_python, ("split_part('a/b/c', '/', 2)", "'b'"), fails=True),
    Function(
        name="kv",
        group="text",
        doc="The value of a key in a text like `street=Main;number=3`; null if it is not there. The separators `;` and `=` can be given.",
        overloads=(Overload(name="kv", parameters=("string", "string", "string", "string"), result="string", spark=_kv, python=_kv_python, optional=2, constants=(2, 3), may_be_null=True),),
        examples=(("kv('street=Main;number=3', 'number')", "'3'"),),
    ),
    Function(
        name="like",
        group="text",
        doc="Written `text LIKE 'pattern'`: `%` stands for any characters, `_` for one, a backslash takes the next as it is.",
        overloads=(Overload(name="like", parameters=("string", "string"), result="boolean", spark=_like, python=_like_python, constants=(1,), refuses=_pattern_problem),),
        examples=(("'situation' LIKE 's%_on'", "true"),),
    ),
    Function(
        name="to_string",
        group="conversions",
        doc="A value as text: a number by its digits, a timestamp by RFC 3339 in UTC. For doubles use `format_number`.",
        overloads=(
            Overload(name="to_string", parameters=("string",), result="string", spark="{0}", python="{0}"),
            Overload(name="to_string", parameters=("long",), result="string", spark="CAST({0} AS STRING)", python="str({0})"),
            Overload(name="to_string", parameters=("decimal",), result="string", spark="CAST({0} AS STRING)", python="format({0}, 'f')"),
            Overload(name="to_string", parameters=("boolean",), result="string", spark="CAST({0} AS STRING)", python="('true' if {0} else 'false')"),
            Overload(name="to_string", parameters=("date",), result="string", spark="date_format({0}, 'yyyy-MM-dd')", python="({0}).isoformat()"),
            Overload(name="to_string", parameters=("timestamp",), result="string", spark="concat(date_format({0}, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\"), 'Z')", python="(({0}).isoformat(timespec='microseconds')[:26] + 'Z')"),
        ),
        examples=(("to_string(42)", "'42'"),),
    ),
)  # fmt: skip
