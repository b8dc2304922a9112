"""Numbers of filters, and what an event knows of them: its bits.

Each distinct filter, by its canonical text, has a number that is given once and never to another, so that bits stay
readable when filters come and go. ``bits`` of an event is an integer with a 1 for each filter that is TRUE for it;
where integers have 64 bits with a sign, the same is a list of words of 63.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

WORD = 63
"""Bits in a word: the sign is left alone."""

_FULL = (1 << WORD) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers that were ever given: by the text of the filter. Kept with the scope document, for good."""

    given: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def __getitem__(self, text: str) -> int:
        return self.given[text]

    def __contains__(self, text: object) -> bool:
        return text in self.given

    def __len__(self) -> int:
        return len(self.given)

    def texts(self) -> dict[int, str]:
        """The texts by their numbers."""
        return {number: text for text, number in self.given.items()}


NO_NUMBERS = Numbers()


def give_numbers(numbers: Numbers, texts: Iterable[str]) -> Numbers:
    """With numbers for these texts, too: those that had one keep it, new ones get the next, in alphabetical order."""
    new = sorted({text for text in texts if text not in numbers})
    if not new:
        return numbers
    following = max(numbers.given.values(), default=-1) + 1
    given = {**numbers.given, **{text: following + place for place, text in enumerate(new)}}
    return Numbers(given=MappingProxyType(given))


def bits_of(numbers: Iterable[int]) -> int:
    """An integer with the bits of these numbers."""
    result = 0
    for number in numbers:
        result |= 1 << number
    return result


def numbers_in(bits: int) -> Iterator[int]:
    """The numbers of the bits that are 1, smaller ones first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def to_words(bits: int, least: int = 0) -> tuple[int, ...]:
    """The same in words of 63, lower ones first; at least so many, and none for nothing."""
    words: list[int] = []
    while bits or len(words) < least:
        words.append(bits & _FULL)
        bits >>= WORD
    return tuple(words)


def from_words(words: Sequence[int]) -> int:
    """What :func:`to_words` took apart."""
    result = 0
    for place, word in enumerate(words):
        result |= word << (WORD * place)
    return result
