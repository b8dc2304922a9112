"""The elements of a context in XML: which there are, what each can have, and what to say about all else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType

from situ.catalogue import NAME_TWICE, XML_NOT_UNDERSTOOD
from situ.documents import Node, Scalar
from situ.documents.xml_text import Element
from situ.errors import Location, Problem, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What an element can have; ``text`` if it has content of its own."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    text: bool = False


SECTIONS = ("units", "types", "events", "mappings", "rules", "functions")
_TYPE = Form(optional=("name", "extends", "alias"), children=("attribute",), text=True)
_FUNCTION = ("time", "key", "missing", "default", "nulls", "lossy", "inverse", "value", "expr")

ELEMENTS: MappingProxyType[str, Form] = MappingProxyType(
    {
        "context": Form(required=("id",), optional=("extends", "derive"), children=SECTIONS),
        "units": Form(children=("unit",)),
        "unit": Form(required=("name", "kind")),
        "types": Form(children=("type",)),
        "type": _TYPE,
        "events": Form(children=("event",)),
        "event": _TYPE,
        "attribute": Form(required=("name", "type"), optional=("unit", "optional", "default")),
        "mappings": Form(children=("mapping",)),
        "mapping": Form(required=("from", "to", "dir"), children=("attribute",)),
        "mapping attribute": Form(required=("name",), optional=("from", "expr", "default")),
        "rules": Form(optional=("dir",), children=("rule",)),
        "rule": Form(required=("pattern", "function"), optional=("dir",)),
        "functions": Form(children=("function",)),
        "function": Form(
            required=("name",),
            optional=("class", "alias", "signature", *_FUNCTION),
            children=("lookup", "state"),
            text=True,
        ),
        "lookup": Form(required=("name", "source"), optional=("as_of",), children=("key",)),
        "key": Form(required=("column",), text=True),
        "state": Form(required=("name", "event"), optional=("key", "history", "ttl", "max_keys"), children=("keep",)),
        "keep": Form(required=("name",), text=True),
    }
)
"""The elements of the form; an attribute inside of a mapping says where its value comes from."""

DIRECTIONS = MappingProxyType({"outgoing": "out", "incoming": "in", "both": "both", "out": "out", "in": "in"})


class ElementFaults:
    """Holds what is found against the form of elements."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def check(self, element: Element, form: str) -> bool:
        """Whether an element has what it needs; what it cannot have is noted, too."""
        expected = ELEMENTS[form]
        known = (*expected.required, *expected.optional)
        for name, (key, _) in element.attributes.items():
            if name not in known:
                found, names = f"`<{element.name}>` has no `{name}`", ", ".join(f"`{each}`" for each in known)
                self.refuse(key.location, found, names or "no attributes", nearest(name, known))
        if element.text.text and not expected.text:
            found = f"the text `{element.text.text[:40]}` in `<{element.name}>`"
            self.refuse(element.location, found, "elements and attributes only", ())
        self.check_children(f"`<{element.name}>`", element.children, expected.children)
        lacking = [name for name in expected.required if name not in element.attributes]
        for name in lacking:
            self.refuse(element.location, f"`<{element.name}>` without `{name}`", f"`{name}=`", ())
        return not lacking

    def check_children(self, where: str, children: Iterable[Element], known: tuple[str, ...]) -> None:
        for child in children:
            if child.name not in known:
                expected = ", ".join(f"`<{each}>`" for each in known) or "no elements"
                self.refuse(child.location, f"`<{child.name}>` in {where}", expected, nearest(child.name, known))

    def refuse(self, place: Location, found: str, expected: str, near: tuple[str, ...]) -> None:
        self.problems.append(
            XML_NOT_UNDERSTOOD(
                place, found=found, expected=expected, nearest=near, remedy="Correct it, or take it out."
            )
        )

    def once(self, entries: Iterable[tuple[Scalar, Node]]) -> list[tuple[Scalar, Node]]:
        firsts: dict[str, tuple[Scalar, Node]] = {}
        for entry in entries:
            key = entry[0]
            if firsts.setdefault(key.text, entry) is not entry:
                line = firsts[key.text][0].location.line
                self.problems.append(NAME_TWICE(key.location, name=key.text, line=line))
        return list(firsts.values())
