"""JSON text, read strictly and within bounds: what is not plainly JSON is refused with the place and the reason.

Python's reader takes more than JSON allows (NaN, half surrogate pairs, a key twice, numbers without bound) and recurses
as deep as the text says. This module closes those gaps without slowing down what is in order. It knows nothing of
events.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, NoReturn

import msgspec

from situ.lang.catalogue import EVENT_LIMIT, NOT_JSON
from situ.lang.problems import Problem, SituError


class JsonLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is read before it is refused."""

    event: int = 1024 * 1024
    """Bytes of one event."""
    batch: int = 8 * 1024 * 1024
    """Bytes of one batch."""
    events: int = 65_536
    """Events in one batch: the place in a message has 16 bits of a log position."""
    depth: int = 64
    """Objects and lists inside each other."""


JSON_LIMITS = JsonLimits()


class _NotStrictJson(ValueError):
    """Raised by the hooks; json passes it through. ``token`` is what is refused, as it stands in the text."""

    def __init__(self, reason: str, token: str = "") -> None:
        super().__init__(reason)
        self.token = token


def read_json(text: str, depth: int = JSON_LIMITS.depth) -> Any:
    """The value a JSON text stands for; :class:`SituError` with E701 or E704 if it is none or too deep."""
    if text.count("{") + text.count("[") > depth:
        _check_depth(text, depth)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise SituError(_not_json(f"{error.msg[:1].lower()}{error.msg[1:]}", text, error.pos)) from None
    except _NotStrictJson as error:
        raise SituError(_not_json(str(error), text, _outside_strings(text, error.token))) from None
    except ValueError:
        # The only other one: Python makes no integer of more than some thousand digits.
        raise SituError(NOT_JSON(reason="an integer has thousands of digits", place="")) from None
    # The text itself has none: it came from UTF-8. So half a surrogate pair can only be an escape.
    if "\\ud" in text or "\\uD" in text:
        _check_surrogates(text, value)
    return value


def to_text(raw: bytes | str, most: int) -> str:
    """The characters of at most so many bytes of UTF-8; E701 or E704 if they are not."""
    try:
        data = raw if isinstance(raw, bytes) else raw.encode("utf-8")
        if len(data) > most:
            raise SituError(EVENT_LIMIT(what="bytes", most=most))
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        reason = f"byte {error.start + 1} is not UTF-8"
        raise SituError(NOT_JSON(reason=reason, place="")) from None
    except UnicodeEncodeError as error:
        reason = f"character {error.start + 1} is half of a surrogate pair"
        raise SituError(NOT_JSON(reason=reason, place="")) from None
    if text.startswith("\ufeff"):
        raise SituError(NOT_JSON(reason="it begins with a byte order mark", place=""))
    return text


# A string that does not end takes all the rest, so that no text makes the search start over and over.
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"?'
_TOKEN = re.compile(_STRING + r"|[\[\]{},]", re.DOTALL)


def split_array(text: str) -> list[str] | None:
    """The texts of the elements of a JSON array, uninterpreted; None if brackets and quotes do not match up."""
    start = len(text) - len(text.lstrip(" \t\r\n"))
    if not text.startswith("[", start):
        return None
    parts: list[str] = []
    open_brackets: list[str] = []
    begin = start + 1
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if token == "," and len(open_brackets) == 1:
            parts.append(text[begin : match.start()].strip())
            begin = match.end()
        elif token in ("[", "{"):
            open_brackets.append("]" if token == "[" else "}")
        elif token in ("]", "}"):
            if open_brackets.pop() != token:
                return None
            if not open_brackets:
                last = text[begin : match.start()].strip()
                if text[match.end() :].strip():
                    return None
                return [*parts, last] if last or parts else []
    return None


def _check_depth(text: str, depth: int) -> None:
    level = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in ("[", "{"):
            level += 1
            if level > depth:
                raise SituError(EVENT_LIMIT(what="objects and lists inside each other", most=depth))
        elif token in ("]", "}"):
            level -= 1


def _check_surrogates(text: str, value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        match = re.search(r"\\u[dD][89a-fA-F]", text)
        raise SituError(_not_json("half of a surrogate pair", text, match.start() if match else 0)) from None


def _outside_strings(text: str, token: str) -> int:
    """Where the token stands in the text; -1 if there is none."""
    for match in re.finditer(rf"{_STRING}|{re.escape(token)}", text, re.DOTALL) if token else ():
        if match[0] == token:
            return match.start()
    return -1


def _not_json(reason: str, text: str, position: int) -> Problem:
    if position < 0:
        return NOT_JSON(reason=reason, place="")
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return NOT_JSON(reason=reason, place=f" at line {line}, column {column}")


def _constant(name: str) -> NoReturn:
    raise _NotStrictJson(f"{name} is no number in JSON", name)


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0.0:
        raise _NotStrictJson(
            f"the number {text[:40]} is beyond the range of a double", text if len(text) <= 100 else ""
        )
    return number


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise _NotStrictJson(f"the key {json.dumps(twice[:60])} stands twice in one object")
    return result


_DECODER = json.JSONDecoder(parse_constant=_constant, parse_float=_finite, object_pairs_hook=_each_key_once)
