"""JSON text → nodes: strict JSON (RFC 8259), with every place kept.

Written out as a loop over tokens, not by recursion: a document nested a hundred thousand deep is
refused like any other. Stricter than the RFC in what it leaves open: a name stands once in an object,
numbers are finite, text has no half surrogate pairs.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress

from situ.lang.catalogue import JSON_SYNTAX, NUMBER_OUT_OF_RANGE
from situ.lang.documents.builder import Builder, Stop, resolve
from situ.lang.documents.nodes import Document, DocumentLimits, ScalarNode, SourceText, read_source
from situ.lang.problems import Problem

_WHITE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_]\w{0,20}")
_WORDS = {"true": True, "false": False, "null": None}
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER_STARTS = frozenset("-0123456789")


def parse_json(data: str | bytes, file: str, limits: DocumentLimits = DocumentLimits(), *, first: int = 1) -> Document:  # noqa: B008
    """Read one JSON document. Whatever the text, the answer is nodes or problems, never an exception.

    ``first`` is the line of the file in which it begins.
    """
    source = read_source(data, file, limits, first)
    if isinstance(source, Problem):
        return Document(file=file, root=None, problems=(source,))
    builder = Builder(source, limits)
    with suppress(Stop):
        _Parser(source, builder).document()
    return builder.document()


class _Parser:
    def __init__(self, source: SourceText, builder: Builder) -> None:
        self._source = source
        self._text = source.text
        self._builder = builder
        self._index = 0

    def document(self) -> None:
        closing: list[str] = []
        may_close = False
        while True:
            self._skip_white()
            character = self._text[self._index : self._index + 1]
            if may_close and character == closing[-1]:
                self._close(closing)
            elif self._builder.expects_key:
                self._name()
                may_close = False
                continue
            elif character in ("[", "{"):
                self._open(character, closing)
                may_close = True
                continue
            else:
                self._value(character)
            may_close = self._after_value(closing)
            if not closing:
                return

    def _open(self, character: str, closing: list[str]) -> None:
        if character == "[":
            self._builder.open_sequence(self._index)
        else:
            self._builder.open_mapping(self._index)
        closing.append("]" if character == "[" else "}")
        self._index += 1

    def _close(self, closing: list[str]) -> None:
        closing.pop()
        self._index += 1
        self._builder.close(self._index)

    def _after_value(self, closing: list[str]) -> bool:
        """Go past the comma, or to the bracket that closes; whether it is the latter."""
        self._skip_white()
        character = self._text[self._index : self._index + 1]
        if not closing:
            if character:
                raise self._refuse("something follows after the document", "Take it out; a file holds one value.")
            return False
        if character == closing[-1]:
            return True
        if character != ",":
            raise self._refuse(f"expected `,` or `{closing[-1]}`, found {self._found()}", "Separate entries by commas.")
        self._index += 1
        return False

    def _name(self) -> None:
        if self._text[self._index : self._index + 1] != '"':
            remedy = "Names stand in double quotes; after the last entry there is no comma."
            raise self._refuse(f"expected a name in double quotes, found {self._found()}", remedy)
        self._string()
        self._skip_white()
        if self._text[self._index : self._index + 1] != ":":
            raise self._refuse(f"expected `:`, found {self._found()}", 'Write `"name": value`.')
        self._index += 1

    def _value(self, character: str) -> None:
        if character == '"':
            self._string()
        elif character in _NUMBER_STARTS:
            self._number()
        elif (word := _WORD.match(self._text, self._index)) and word[0] in _WORDS:
            self._scalar(word[0], _WORDS[word[0]], word.end())
        else:
            remedy = (
                "Text and names stand in double quotes; there are no comments, no NaN, and no comma before a bracket."
            )
            raise self._refuse(f"expected a value, found {self._found()}", remedy)

    def _number(self) -> None:
        found = _NUMBER.match(self._text, self._index)
        after = found.end() if found else self._index
        if found is None or re.match(r"[0-9A-Za-z.+-]", self._text[after : after + 1]):
            remedy = "Numbers are decimal, without leading zeros or `+`, with a digit before and after the point."
            raise self._refuse("this is no number", remedy)
        value = resolve(found[0])
        if isinstance(value, str):
            place = self._source.location(*found.span())
            self._builder.report(NUMBER_OUT_OF_RANGE(place, number=found[0]), uncertain=True)
        self._scalar(found[0], value, after)

    def _string(self) -> None:
        found = _STRING.match(self._text, self._index)
        after = found.end() if found else self._index
        if self._text[after : after + 1] != '"':
            raise self._bad_string(after)
        text: str = json.loads(self._text[self._index : after + 1])
        if _SURROGATE.search(text):
            remedy = "Write both halves of a surrogate pair, or the character itself."
            raise self._refuse("half of a surrogate pair is no character", remedy)
        self._builder.scalar(ScalarNode(text, text, '"', self._source, self._index, after + 1))
        self._index = after + 1

    def _bad_string(self, after: int) -> Stop:
        wrong = self._text[after : after + 1]
        if not wrong:
            return self._refuse("the quote opened here is never closed", 'Close it; inside, `\\"` is a quote.')
        self._index = after
        if wrong == "\\":
            remedy = 'Escapes are `\\\\ \\" \\/ \\b \\f \\n \\r \\t` and `\\u` with four hexadecimal digits.'
            return self._refuse(f"`{self._text[after : after + 2]}` is no escape", remedy)
        return self._refuse(
            f"the character U+{ord(wrong):04X} cannot stand in text", "Write `\\n` for a line break, `\\t` for a tab."
        )

    def _scalar(self, text: str, value: str | float | bool | None, after: int) -> None:
        self._builder.scalar(ScalarNode(text, value, "", self._source, self._index, after))
        self._index = after

    def _skip_white(self) -> None:
        white = _WHITE.match(self._text, self._index)
        self._index = white.end() if white else self._index

    def _found(self) -> str:
        if self._index >= len(self._text):
            return "the end of the text"
        if word := _WORD.match(self._text, self._index):
            return f"`{word[0]}`"
        character = self._text[self._index]
        return f"`{character}`" if character.isprintable() else f"the character U+{ord(character):04X}"

    def _refuse(self, reason: str, remedy: str) -> Stop:
        return self._builder.refuse(JSON_SYNTAX(self._source.location(self._index), reason=reason, remedy=remedy))
