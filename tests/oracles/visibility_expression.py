"""A pair as one boolean expression of the language: for display, for pushing into a source, and as a second opinion.

An OR of ANDs of filters for each dimension, joined by AND. Only TRUE passes, so it makes no difference that an AND or
OR of filters may also be null or fail where one of them does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from situ.lang.catalogue import TOO_LARGE
from situ.lang.problems import SituError
from situ.scopes.filter_sets import Family, FilterNumbers, numbers_in
from situ.scopes.visibility_plan import TagSetPair, Verdict

LONGEST = 100_000
"""Characters of an expression that somebody could still do something with."""

_AND, _OR = " AND ", " OR "


def to_expression(pair: TagSetPair, numbers: FilterNumbers) -> str:
    """The text; ``SituError`` for a nested family that would be too long to be of use."""
    if pair.verdict is not Verdict.DEPENDS:
        return "TRUE" if pair.verdict is Verdict.ALWAYS else "FALSE"
    texts = numbers.texts()
    return _joined(_AND, [_family(family, texts) for family in pair.families])


def _family(family: Family, texts: Mapping[int, str]) -> str:
    made: list[str] = []
    for step in family.program:
        made.append(
            _joined(
                _OR,
                [
                    _joined(_AND, [*(texts[number] for number in numbers_in(needed)), *(made[part] for part in parts)])
                    for needed, parts in step
                ],
            )
        )
    return made[-1]


def _joined(word: str, parts: Iterable[str]) -> str:
    each = list(parts)
    if len(each) == 1:
        return each[0]
    text = word.join(f"({part})" for part in each)
    if len(text) > LONGEST:
        raise SituError(TOO_LARGE(what="characters of a visibility expression", limit=LONGEST))
    return text
