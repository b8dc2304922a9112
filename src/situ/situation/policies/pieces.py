"""Expressions made of pieces of a policy, and the way back from a place in them to one in the policy."""

from __future__ import annotations

from dataclasses import replace

from situ.errors import Location
from situ.situation.language.syntax import Value


class Pieces:
    """The text of an expression; ``place`` is that of whatever has none of its own."""

    def __init__(self, place: Location | None) -> None:
        self.text = ""
        self._place = place or Location(file="policy")
        self._pieces: list[tuple[int, int, Location, bool]] = []

    def add(self, text: str, place: Location | None = None) -> Pieces:
        if place is not None:
            self._pieces.append((len(self.text), len(self.text) + len(text), place, False))
        self.text += text
        return self

    def value(self, value: Value) -> Pieces:
        """A value stands in the policy as it stands here, so problems inside it have their own place."""
        if value.location is not None:
            exact = value.location.length == len(value.text)
            self._pieces.append((len(self.text), len(self.text) + len(value.text), value.location, exact))
        self.text += value.text
        return self

    def locate(self, offset: int, length: int) -> Location:
        for start, end, place, exact in self._pieces:
            if start <= offset and offset + length <= end:
                return replace(place, column=place.column + offset - start, length=max(length, 1)) if exact else place
        return self._place
