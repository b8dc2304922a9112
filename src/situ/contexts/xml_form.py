"""Contexts in XML: the files ``contexts/*.xml``, read into the nodes that the same context has in YAML.

The parts, in order: which elements there are and what each can have, the nodes that an element becomes,
`parse_context_xml` with `check_references`, and `as_yaml`, which writes a context as a YAML file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec
import yaml

from situ.contexts.table import Contexts
from situ.contexts.xml_names import TextPart, XmlNames, compose, short_parts
from situ.lang.catalogue import NAME_TWICE, UNKNOWN_FUNCTION, UNKNOWN_TYPE, XML_NOT_UNDERSTOOD
from situ.lang.documents import Document, DocumentLimits, MappingNode, Node, ScalarNode, SequenceNode, to_data
from situ.lang.documents.builder import resolve
from situ.lang.documents.nodes import placed
from situ.lang.documents.xml_text import Element, parse_xml
from situ.lang.problems import Location, Problem, Problems, nearest
from situ.lang.records import replace
from situ.lang.types.model import ROOT_PREFIX


class ElementForm(msgspec.Struct, frozen=True, kw_only=True):
    """What an element can have; ``text`` if it has content of its own."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    text: bool = False


SECTIONS = ("units", "types", "events", "mappings", "rules", "functions")
_TYPE = ElementForm(optional=("name", "extends", "alias"), children=("attribute",), text=True)
_FUNCTION = ("time", "key", "missing", "default", "nulls", "lossy", "inverse", "value", "expr")

ELEMENTS: MappingProxyType[str, ElementForm] = MappingProxyType(
    {
        "context": ElementForm(required=("id",), optional=("extends", "derive"), children=SECTIONS),
        "units": ElementForm(children=("unit",)),
        "unit": ElementForm(required=("name", "kind")),
        "types": ElementForm(children=("type",)),
        "type": _TYPE,
        "events": ElementForm(children=("event",)),
        "event": _TYPE,
        "attribute": ElementForm(required=("name", "type"), optional=("unit", "optional", "default")),
        "mappings": ElementForm(children=("mapping",)),
        "mapping": ElementForm(required=("from", "to", "dir"), children=("attribute",)),
        "mapping attribute": ElementForm(required=("name",), optional=("from", "expr", "default")),
        "rules": ElementForm(optional=("dir",), children=("rule",)),
        "rule": ElementForm(required=("pattern", "function"), optional=("dir",)),
        "functions": ElementForm(children=("function",)),
        "function": ElementForm(
            required=("name",),
            optional=("class", "alias", "signature", *_FUNCTION),
            children=("lookup", "state"),
            text=True,
        ),
        "lookup": ElementForm(required=("name", "source"), optional=("as_of",), children=("key",)),
        "key": ElementForm(required=("column",), text=True),
        "state": ElementForm(
            required=("name", "event"), optional=("key", "history", "ttl", "max_keys"), children=("keep",)
        ),
        "keep": ElementForm(required=("name",), text=True),
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

    def once(self, entries: Iterable[tuple[ScalarNode, Node]]) -> list[tuple[ScalarNode, Node]]:
        firsts: dict[str, tuple[ScalarNode, Node]] = {}
        for entry in entries:
            key = entry[0]
            if firsts.setdefault(key.text, entry) is not entry:
                line = firsts[key.text][0].location.line
                self.problems.append(NAME_TWICE(key.location, name=key.text, line=line))
        return list(firsts.values())


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Nodes of YAML, at the place of the element.


def word(element: Element, text: str) -> ScalarNode:
    """A key that the YAML of an element has, at the element's name."""
    return ScalarNode(text, text, "", element.source, element.start + 1, element.start + 1 + len(element.name))


def mapping_of(
    element: Element, entries: Iterable[tuple[ScalarNode, Node]], under: ScalarNode | None = None
) -> MappingNode:
    return MappingNode(tuple(entries), under, element.source, element.start, element.end)


def list_of(element: Element, items: Iterable[Node]) -> SequenceNode:
    return SequenceNode(tuple(items), None, element.source, element.start, element.end)


def plain(scalar: ScalarNode) -> ScalarNode:
    """What stands for a number, a boolean or nothing where plain text would."""
    return replace(scalar, value=resolve(scalar.text), style="")


def value_of(scalar: ScalarNode) -> Node:
    """A value in JSON, or what plain text stands for."""
    if scalar.text[:1] not in ('"', "[", "{"):
        return plain(scalar)
    try:
        return placed(json.loads(scalar.text), scalar)
    except (ValueError, RecursionError):
        return scalar


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The reader. Everything after it is one way for both forms, so they give equal contexts. What somebody writes who is
# used to classes, ``com.acme.us.PositionUpdate``, names a type or function of the project by its last part, or by its
# ``alias``; no code is loaded.

_NAME = re.compile(rf"(?:{ROOT_PREFIX})?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_MAPPED_FORMS = ("from", "expr", "default")


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlDocument(Document):
    """A context from XML: the nodes of its YAML, and the types and functions that it only refers to."""

    types: tuple[ScalarNode, ...] = ()
    functions: tuple[ScalarNode, ...] = ()


def parse_context_xml(data: str | bytes, file: str, limits: DocumentLimits = DocumentLimits()) -> XmlDocument:  # noqa: B008
    """The document that declares the context of an XML file. Whatever it is, the answer is nodes or problems."""
    read = parse_xml(data, file, limits)
    if read.problems:
        return XmlDocument(file=file, root=None, problems=read.problems)
    return _XmlReader(file, read.elements, limits).document()


def check_references(documents: Iterable[Document], contexts: Contexts, problems: Problems) -> None:
    """Report types and functions that files in XML refer to and that are not there, unless that has been said."""
    said = {(each.location.file, each.values.get("name")) for each in problems.errors if each.location is not None}
    for document in documents:
        written = document.root.get("context") if isinstance(document.root, MappingNode) else None
        context = contexts.get(written.text) if isinstance(written, ScalarNode) else None
        if not isinstance(document, XmlDocument) or context is None or contexts.faulty.get(context.id, 0) is None:
            continue
        types = {**context.root.types.types, **context.types.types}
        functions = {name for above in context.chain for name in above.functions}
        for type in document.types:
            if type.text not in types and (document.file, type.text) not in said:
                problems.add(UNKNOWN_TYPE(type.location, name=type.text, nearest=nearest(type.text, types)))
        for function in document.functions:
            if function.text not in functions and (document.file, function.text) not in said:
                near, name = nearest(function.text, functions), function.text
                problems.add(UNKNOWN_FUNCTION(function.location, name=name, context=context.id, nearest=near))


class _XmlReader:
    """Goes through all elements; what is not understood is noted and left out."""

    def __init__(self, file: str, elements: tuple[Element, ...], limits: DocumentLimits) -> None:
        self._file, self._elements, self._most = file, elements, limits.problems
        self._faults = ElementFaults()
        self._names = XmlNames.of(elements)
        self._types: list[ScalarNode] = []
        self._functions: list[ScalarNode] = []
        self._sections: dict[str, list[Any]] = {}
        self._firsts: dict[str, Element] = {}

    def document(self) -> XmlDocument:
        root = self._root()
        problems = tuple(self._faults.problems[: self._most])
        return XmlDocument(
            file=self._file,
            root=root,
            problems=problems,
            types=tuple(self._types),
            functions=tuple(self._functions),
        )

    def _root(self) -> Node | None:
        if not self._elements:
            place = Location(file=self._file, line=1, column=1)
            self._faults.refuse(place, "nothing is there", "`<context id=…>`", SECTIONS)
            return None
        first = self._elements[0]
        entries: list[tuple[ScalarNode, Node]] = []
        sections: tuple[Element, ...] = self._elements
        if first.name == "context":
            for other in self._elements[1:]:
                self._faults.refuse(other.location, f"`<{other.name}>` after the context", "one `<context>` a file", ())
            self._faults.check(first, "context")
            entries += [(word(first, "context"), id)] if (id := first.get("id")) else []
            entries += [(word(first, "extends"), above)] if (above := first.get("extends")) else []
            entries += [(word(first, "derive"), plain(derive))] if (derive := first.get("derive")) else []
            sections = first.children
        else:
            stem = self._file.rpartition("/")[2].removesuffix(".xml")
            entries += [(word(first, "context"), word(first, stem)), (word(first, "extends"), word(first, "root"))]
            self._faults.check_children("the file", sections, SECTIONS)
        for section in sections:
            if section.name in SECTIONS:
                self._section(section)
        entries += self._collected()
        return mapping_of(first, entries)

    def _section(self, section: Element) -> None:
        self._faults.check(section, section.name)
        self._firsts.setdefault(section.name, section)
        collected = self._sections.setdefault(section.name, [])
        readers: dict[str, Callable[[Element], Any]] = {
            "unit": self._unit,
            "type": self._type,
            "event": self._type,
            "mapping": self._mapping,
            "rule": lambda rule: self._rule(rule, section.get("dir")),
            "function": self._function,
        }
        for child in section.children:
            if child.name in ELEMENTS[section.name].children and self._faults.check(child, child.name):
                found = readers[child.name](child)
                if found is not None:
                    collected.append(found)

    def _collected(self) -> Iterator[tuple[ScalarNode, Node]]:
        for name in ("units", "types", "events"):
            if self._sections.get(name):
                yield (
                    word(self._firsts[name], name),
                    mapping_of(self._firsts[name], self._faults.once(self._sections[name])),
                )
        if self._sections.get("mappings"):
            first = self._firsts["mappings"]
            yield word(first, "maps"), list_of(first, self._sections["mappings"])
        if self._sections.get("rules"):
            yield word(self._firsts["rules"], "rules"), self._rules(self._firsts["rules"], self._sections["rules"])
        if self._sections.get("functions"):
            first = self._firsts["functions"]
            yield word(first, "functions"), mapping_of(first, self._faults.once(self._sections["functions"]))

    # ── types and units ───────────────────────────────────────────────────────────────────────────

    def _unit(self, unit: Element) -> tuple[ScalarNode, Node]:
        return unit.attributes["name"][1], unit.attributes["kind"][1]

    def _type(self, type: Element) -> tuple[ScalarNode, Node] | None:
        name, above = type.get("name"), type.get("extends")
        if name is None:
            self._refer_to_type(type)
            return None
        if type.text.text:
            self._faults.refuse(type.text.location, "a type with a name and a text", "one of both", ())
        head = compose(self._short(name), "(", self._short(above), ")") if above is not None else self._scalar(name)
        attributes = [self._attribute(each) for each in type.children if self._faults.check(each, "attribute")]
        return head, mapping_of(type, self._faults.once(attributes))

    def _refer_to_type(self, type: Element) -> None:
        if not _NAME.fullmatch(type.text.text) or type.children:
            form = f"a name of a type, or `<{type.name} name=…>` with its attributes"
            self._faults.refuse(type.location, f"`<{type.name}>` without a name", form, ())
        else:
            self._types.append(self._scalar(type.text))

    def _attribute(self, attribute: Element) -> tuple[ScalarNode, Node]:
        name, type = attribute.attributes["name"][1], attribute.attributes["type"][1]
        unit, optional, default = attribute.get("unit"), attribute.get("optional"), attribute.get("default")
        if default is None and (optional is None or optional.text in ("true", "false")):
            words = ("optional ",) if optional is not None and optional.text == "true" else ()
            return name, compose(*words, self._short(type), *((" ", unit) if unit is not None else ()))
        entries: list[tuple[ScalarNode, Node]] = [(word(attribute, "type"), self._scalar(type))]
        entries += [(word(attribute, "unit"), unit)] if unit is not None else []
        entries += [(word(attribute, "optional"), plain(optional))] if optional is not None else []
        entries += [(word(attribute, "default"), value_of(default))] if default is not None else []
        return name, mapping_of(attribute, entries, under=name)

    # ── mappings and rules ────────────────────────────────────────────────────────────────────────

    def _mapping(self, mapping: Element) -> Node | None:
        source, target, written = (mapping.attributes[each][1] for each in ("from", "to", "dir"))
        for name in (source, target):
            if not _NAME.fullmatch(name.text):
                self._faults.refuse(name.location, f"the text `{name.text}`", "the name of an event type", ())
                return None
        direction = self._direction(written, tuple(DIRECTIONS))
        if direction is None:
            return None
        arrow = " <-> " if direction == "both" else " -> "
        entries: list[tuple[ScalarNode, Node]] = [
            (word(mapping, direction), compose(self._short(source), arrow, self._short(target)))
        ]
        attributes = [each for child in mapping.children if (each := self._mapped(child)) is not None]
        if attributes:
            entries.append((word(mapping, "attributes"), mapping_of(mapping, self._faults.once(attributes))))
        return mapping_of(mapping, entries)

    def _mapped(self, attribute: Element) -> tuple[ScalarNode, Node] | None:
        if not self._faults.check(attribute, "mapping attribute"):
            return None
        given = [each for each in _MAPPED_FORMS if each in attribute.attributes]
        name = attribute.attributes["name"][1]
        if len(given) != 1:
            self._faults.refuse(
                attribute.location, f"`{name.text}` with {len(given)} of them", "`from`, `expr` or `default`", ()
            )
            return None
        value = attribute.attributes[given[0]][1]
        if given[0] == "from":
            return name, value
        node = value_of(value) if given[0] == "default" else value
        return name, mapping_of(attribute, [(word(attribute, given[0]), node)], under=name)

    def _rule(self, rule: Element, inherited: ScalarNode | None) -> tuple[str, ScalarNode] | None:
        pattern, function = rule.attributes["pattern"][1], rule.attributes["function"][1]
        written = rule.get("dir") or inherited
        direction = self._direction(written, tuple(each for each in DIRECTIONS if each != "both")) if written else ""
        if not pattern.text.strip() or not _NAME.fullmatch(function.text):
            at, what = (function, "a function") if pattern.text.strip() else (pattern, "a pattern")
            self._faults.refuse(at.location, f"the text `{at.text}`", what, ())
            return None
        named = self._names.function(function)
        return None if direction is None else (direction, compose(self._short(pattern), " -> ", named))

    def _rules(self, section: Element, rules: list[tuple[str, ScalarNode]]) -> Node:
        if all(not direction for direction, _ in rules):
            return list_of(section, [rule for _, rule in rules])
        for direction, rule in rules:
            if not direction:
                form = "`dir=` in every rule or in none"
                self._faults.refuse(rule.location, "a rule without a direction beside others that have one", form, ())
        entries: list[tuple[ScalarNode, Node]] = []
        for wanted in ("out", "in"):
            under = [rule for direction, rule in rules if direction == wanted]
            entries += [(word(section, wanted), list_of(section, under))] if under else []
        return mapping_of(section, entries)

    def _direction(self, written: ScalarNode, known: tuple[str, ...]) -> str | None:
        if written.text not in known:
            found, expected = f"the direction `{written.text}`", ", ".join(f"`{each}`" for each in known)
            self._faults.refuse(written.location, found, expected, nearest(written.text, known))
            return None
        return DIRECTIONS[written.text]

    # ── functions ─────────────────────────────────────────────────────────────────────────────────

    def _function(self, function: Element) -> tuple[ScalarNode, Node] | None:
        name, signature = function.attributes["name"][1], function.get("signature")
        if signature is None:
            self._refer_to_function(function)
            return None
        if "class" in function.attributes:
            self._faults.refuse(
                function.attributes["class"][0].location, "a class beside a signature", "one of both", ()
            )
        body: list[tuple[ScalarNode, Node]] = [(word(function, "signature"), self._scalar(signature))]
        for each in ("time", "key", "nulls", "inverse", "value", "expr"):
            body += [(word(function, each), value)] if (value := function.get(each)) is not None else []
        for each in ("missing", "lossy"):
            body += [(word(function, each), plain(value))] if (value := function.get(each)) is not None else []
        if (default := function.get("default")) is not None:
            given = mapping_of(function, [(word(function, "default"), value_of(default))])
            body.append((word(function, "missing"), given))
        if function.text.text:
            body.append((word(function, "expr"), function.text))
        for each, below in (("lookup", "key"), ("state", "keep")):
            rows = [self._row(child, below) for child in function.children if child.name == each]
            known = [row for row in rows if row is not None]
            body += [(word(function, each), mapping_of(function, self._faults.once(known)))] if known else []
        if [key.text for key, _ in body] == ["signature", "expr"] and isinstance(body[1][1], ScalarNode):
            return name, compose(self._short(signature), " = ", body[1][1])
        return name, mapping_of(function, self._faults.once(body), under=name)

    def _refer_to_function(self, function: Element) -> None:
        name = function.attributes["name"][1]
        extra = [each for each in function.attributes if each not in ("name", "class", "alias")]
        if extra or function.text.text or function.children:
            self._faults.refuse(
                function.location, f"`{name.text}` without `signature`", "`signature`, as in `A -> B`", ()
            )
        elif not _NAME.fullmatch((function.get("class") or name).text):
            self._faults.refuse(function.location, f"`{name.text}` without a name of a function", "its name", ())
        else:
            self._functions.append(compose(self._names.function(name)))

    def _row(self, row: Element, below: str) -> tuple[ScalarNode, Node] | None:
        """The row of a table or state that a function reads, with the expressions of its keys or what it keeps."""
        if not self._faults.check(row, row.name):
            return None
        entries: list[tuple[ScalarNode, Node]] = []
        for each in (*ELEMENTS[row.name].required[1:], *ELEMENTS[row.name].optional):
            value = row.get(each)
            if value is not None:
                node = plain(value) if each == "max_keys" else self._scalar(value) if each == "event" else value
                entries.append((word(row, each), node))
        named = [
            (child.attributes[ELEMENTS[below].required[0]][1], child.text)
            for child in row.children
            if child.name == below and self._faults.check(child, below)
        ]
        entries.append((word(row, below), mapping_of(row, self._faults.once(named))))
        return row.attributes["name"][1], mapping_of(row, entries)

    def _short(self, scalar: ScalarNode) -> list[TextPart]:
        return short_parts(scalar, self._names)

    def _scalar(self, scalar: ScalarNode) -> ScalarNode:
        return compose(self._short(scalar))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A context as the YAML of a file of ``contexts/``, however it was written.

_UNSEEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What can only be written as an escape."""


class _Dumper(yaml.SafeDumper):
    """Writes what our reader reads: nothing by reference, in quotes what would be taken for another value."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  the library asks about each value
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if _UNSEEN.search(text):
        style = '"'
    elif resolve(text) != text:
        style = "'"
    elif "\n" in text:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def as_yaml(document: Document) -> str:
    """The file that declares the same; nothing for a document that has no meaning."""
    if document.root is None:
        return ""
    return yaml.dump(to_data(document.root), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=112)
