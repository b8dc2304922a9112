"""Places in events, and the patterns that name them: ``DangerCheck.Position``, ``Shipment.crates[].spare``.

A *traversal* is one place: the event's type, then attribute by attribute, each with the type its value has there. A
*pattern* stands for many. This module owns what the two are together: how a pattern is read and printed, which are
possible at all, and which places one matches. Which of several matching patterns counts is
:mod:`situ.interpretation.precedence`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from situ.errors import Problems, SituError
from situ.interpretation.model import Pattern, Qualifier
from situ.interpretation.pattern_reader import PatternReader, innermost
from situ.types.model import ListOf, Named, Struct, Type, is_subtype
from situ.types.syntax import Locate, nowhere
from situ.types.table import Types


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """From a struct to the value of an attribute, or with ``elements`` to an element of the list that it is.

    ``type`` is the dynamic type of that value. A list and its elements are on the same level.
    """

    attribute: str
    elements: bool = False
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Traversal:
    """One place in an event of type ``event``: without steps the event itself."""

    event: Struct
    steps: tuple[Step, ...] = ()

    @property
    def type(self) -> Type:
        """The dynamic type of the value there."""
        return self.steps[-1].type if self.steps else self.event

    @property
    def types(self) -> tuple[Type, ...]:
        """The dynamic types on the way, those of the event and of the place included: one a level."""
        return (self.event, *(step.type for step in self.steps))

    def __str__(self) -> str:
        return ".".join(self._shown())

    def _shown(self) -> Iterator[str]:
        left: Type = self.event
        for step in self.steps:
            declared = left.attribute(step.attribute) if isinstance(left, Struct) else None
            lists = _lists(declared.type) - _lists(step.type) if declared else int(step.elements)
            yield step.attribute + "[]" * lists
            left = step.type


def _lists(type: Type) -> int:
    return 1 + _lists(type.element) if isinstance(type, ListOf) else 0


def matches(pattern: Pattern, path: Traversal) -> bool:
    """Whether the pattern names this place.

    One of a type alone names every value of the type, at any depth. With qualifiers its head is the event, every
    qualifier holds one level further down, and if the last is a type, any number of levels may lie before it.
    """
    if not pattern.qualifiers:
        return is_subtype(path.type, pattern.head)
    *inner, last = pattern.qualifiers
    wanted, found = len(pattern.qualifiers), len(path.steps)
    return (
        (found == wanted if last.attribute else found >= wanted)
        and is_subtype(path.event, pattern.head)
        and holds(last, path.steps[-1])
        and all(map(holds, inner, path.steps))
    )


def holds(qualifier: Qualifier, step: Step) -> bool:
    if qualifier.attribute and (qualifier.attribute, qualifier.elements) != (step.attribute, step.elements):
        return False
    return is_subtype(step.type, qualifier.type)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def read_pattern(
    text: str, types: Types, problems: Problems, locate: Locate = nowhere, *, root: Types | None = None
) -> Pattern | None:
    """The pattern in its normal form: every qualifier with its type. None if something is wrong with it.

    ``types`` are those visible where it stands; ``root:Name`` is looked up in ``root``, for names hidden there.
    """
    try:
        return PatternReader(text, types, root or types, problems, locate).pattern()
    except SituError as error:
        problems.extend(error.problems)
        return None


# ── printing ──────────────────────────────────────────────────────────────────────────────────────


def print_pattern(pattern: Pattern, types: Types | None = None) -> str:
    """The shortest text that reads back as this pattern.

    With ``types``, those visible where it is to stand, it reads back there without a warning: hidden types are written
    ``root:Name``, and nothing is left out that tells attributes from types.
    """
    written = [_print_type(pattern.head, types)]
    left = pattern.head
    for number, qualifier in enumerate(pattern.qualifiers, 1):
        last = number == len(pattern.qualifiers)
        if qualifier.attribute:
            clear = types is None or not _can_be_type(written[-1], qualifier.attribute, types)
            written.append(_print_attribute(qualifier, left, types, last=last, clear=clear))
        else:
            written.append(_print_type_qualifier(qualifier.type, left, written[-1], types))
        left = qualifier.type
    return ".".join(written)


def _print_attribute(qualifier: Qualifier, left: Type, types: Types | None, *, last: bool, clear: bool) -> str:
    attribute = left.attribute(qualifier.attribute) if isinstance(left, Struct) else None
    declared = attribute.type if attribute is not None else None
    name = f"{qualifier.attribute}[]" if qualifier.elements else qualifier.attribute
    if not last and declared is not None and clear and innermost(declared) == qualifier.type:
        return qualifier.attribute
    meant = declared.element if isinstance(declared, ListOf) and qualifier.elements else declared
    if meant == qualifier.type and (clear or qualifier.elements):
        return name
    return f"{name}({_print_type(qualifier.type, types)})"


def _print_type_qualifier(type: Type, left: Type, before: str, types: Types | None) -> str:
    written = _print_type(type, types)
    word = written.split(".")[0]
    is_attribute = isinstance(left, Struct) and left.attribute(word) is not None
    runs_on = types is not None and _runs_on(before, word, types)
    return f":{written}" if is_attribute or runs_on else written


def _can_be_type(before: str, attribute: str, types: Types) -> bool:
    """Whether a bare attribute could be taken for a type, or for a further word of the type before it."""
    return types.get(attribute) is not None or _runs_on(before, attribute, types)


def _runs_on(before: str, word: str, types: Types) -> bool:
    if before.startswith("root:"):
        return True
    begins = f"{before.removeprefix(':')}.{word}"
    return any(name == begins or name.startswith(f"{begins}.") for name in types.names)


def _print_type(type: Type, types: Types | None) -> str:
    if isinstance(type, ListOf):
        return f"[{_print_type(type.element, types)}]"
    hidden = types is not None and isinstance(type, Struct | Named) and types.get(type.name) != type
    return f"root:{type}" if hidden else str(type)
