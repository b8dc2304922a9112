"""The usual mistakes in values, wherever they stand: each function recognises one and says what to write."""

from __future__ import annotations

import re

from situ.errors import Problem
from situ.situation.language.refused import Refused, syntax_problem

_COMPARED = re.compile(r"(?:=|!=|<|>|\blike|\bin\s*\(|\bin\s*\([^()]*,)\s*\Z", re.IGNORECASE)


def compound_unit(refused: Refused) -> Problem | None:
    number = re.search(r"(?P<number>[0-9][0-9.]*)\s*(?P<unit>[^\W\d]\w*)?\Z", refused.before)
    rest = re.match(r"\s*[/*^·]\s*\w*(?:\s*[/*^·]\s*\w+)*", refused.text[refused.at :])
    if number is None or rest is None:
        return None
    unit = f"{number['unit'] or ''}{''.join(rest[0].split())}"
    written = f"{number['number']} [{unit}]" if number["unit"] else f"{number['number']} [m/s]"
    return syntax_problem(refused, "the end of the number", f"Units made of several stand in brackets: `{written}`.")


def decimal_comma(refused: Refused) -> Problem | None:
    number = re.search(r"(?P<number>[0-9]+)\Z", refused.before)
    rest = re.match(r",(?P<fraction>[0-9]+)", refused.text[refused.at :])
    if number is None or rest is None:
        return None
    written = f"{number['number']}.{rest['fraction']}"
    return syntax_problem(refused, "the end of the number", f"Numbers are written with a point: `{written}`.")


def text_wanted(refused: Refused) -> Problem | None:
    """``status = guest``."""
    word = refused.found
    if "TEXT" not in refused.expected or not word[:1].isalpha() or not _COMPARED.search(refused.before):
        return None
    if word.lower() in ("null", "none"):
        return syntax_problem(refused, "a value", "What is not known fits no property: leave the property out.")
    return syntax_problem(refused, "a value", f"Text stands in single quotes: `'{word}'`.")
