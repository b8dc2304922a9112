"""What ``ontology.yaml`` says, before anything is looked up: names, attributes, ends, functions, each with its place.

Attributes are written as in ``types/*.yaml``. What several documents say together counts as one; a name is declared
once. Whether it means anything is for :mod:`situ.policies.ontology.load` to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from situ.lang.catalogue import BAD_ENDS, BAD_NAME, DECLARED_TWICE
from situ.lang.documents import Document, Fields, Node, Reader, ScalarNode, SequenceNode, is_nothing
from situ.lang.problems import Location, Problems, SituError
from situ.lang.types.declaration import AttributeDeclaration, declare_attribute
from situ.lang.types.model import NameRef, parse_head

ONTOLOGY_KEYS = ("concepts", "groups", "containers", "relationships", "measures")
RELATIONSHIP_KEYS = ("between", "function", "parameter", "symmetric")
MEASURE_KEYS = ("between", "function", "unit")

CONCEPT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
RELATIONSHIP_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_WORDS_OF_POLICIES = frozenset(
    "policy window lateness hold consumption concepts conditions actions is not of and or in like with property "
    "followed-by".split()
)
_LETTERS = "Use letters, digits and `_`, at most 64, and a letter first."


class ConceptText(msgspec.Struct, frozen=True, kw_only=True):
    """``visitor(person): {host: string}``."""

    name: str
    supers: tuple[NameRef, ...]
    attributes: tuple[AttributeDeclaration, ...]
    faulty: frozenset[str]
    """Attributes that are written, but not understood: reported already."""
    location: Location


class GroupText(msgspec.Struct, frozen=True, kw_only=True):
    """``mobile: [person, robot]``."""

    name: str
    members: tuple[ScalarNode, ...]
    location: Location


class ContainerText(msgspec.Struct, frozen=True, kw_only=True):
    """``room: floor``: a room is part of a floor."""

    part: ScalarNode
    container: ScalarNode


class RelationshipParameterText(msgspec.Struct, frozen=True, kw_only=True):
    """``{name: distance, unit: m}``."""

    name: ScalarNode
    unit: ScalarNode | None = None


class RelationshipText(msgspec.Struct, frozen=True, kw_only=True):
    """A relationship or, with its unit, a measure."""

    name: str
    ends: tuple[ScalarNode, ScalarNode]
    function: ScalarNode
    parameter: RelationshipParameterText | None = None
    symmetric: bool = False
    unit: ScalarNode | None = None
    location: Location


class OntologyText(msgspec.Struct, kw_only=True):
    """All that is declared; relationships and measures in the order written, several of them may have one name."""

    concepts: dict[str, ConceptText] = msgspec.field(default_factory=dict)
    groups: dict[str, GroupText] = msgspec.field(default_factory=dict)
    containers: dict[str, ContainerText] = msgspec.field(default_factory=dict)
    relationships: list[RelationshipText] = msgspec.field(default_factory=list)
    measures: list[RelationshipText] = msgspec.field(default_factory=list)


def declare_ontology(documents: Iterable[Document], problems: Problems) -> OntologyText:
    """What all these documents say together; what is not understood is reported and left out."""
    return _Declaring(Reader(problems)).all(documents)


class _Declaring:
    def __init__(self, read: Reader) -> None:
        self._read = read
        self._text = OntologyText()
        self._first: dict[tuple[str, str], Location] = {}

    def all(self, documents: Iterable[Document]) -> OntologyText:
        for document in documents:
            if document.root is not None and is_nothing(document.root):
                self._read.problems.extend(document.problems)
                continue
            fields = self._read.document(document, optional=ONTOLOGY_KEYS)
            if fields is not None:
                self._document(fields)
        return self._text

    def _document(self, fields: Fields) -> None:
        for key, node in _entries(fields, "concepts"):
            self._concept(key, node)
        for key, node in _entries(fields, "groups"):
            self._group(key, node)
        for key, node in _entries(fields, "containers"):
            container = self._read.scalar(node)
            if container is not None and self._once("The container of", key.text, key.location):
                self._text.containers[key.text] = ContainerText(part=key, container=container)
        for key, node in _entries(fields, "relationships"):
            if self._named(key, "a relationship", RELATIONSHIP_NAME) and self._once("The relationship", key):
                self._text.relationships.extend(self._related(key, node, RELATIONSHIP_KEYS))
        for key, node in _entries(fields, "measures"):
            if self._named(key, "a measure", CONCEPT_NAME) and self._once("The measure", key):
                self._text.measures.extend(self._related(key, node, MEASURE_KEYS))

    # ── concepts and groups ───────────────────────────────────────────────────────────────────────

    def _concept(self, key: ScalarNode, node: Node) -> None:
        try:
            head = parse_head(key.text, key.locate)
        except SituError as error:
            self._read.problems.extend(error.problems)
            return
        place = head.place() or key.location
        named = self._check_name(head.name, place, "a concept", CONCEPT_NAME)
        body: tuple[tuple[ScalarNode, Node], ...] = ()
        if not is_nothing(node):
            mapping = self._read.mapping(node)
            body = mapping.entries if mapping else ()
        declared = {name.text: declare_attribute(name, form, self._read) for name, form in body}
        if named and self._once("The concept", head.name, place):
            self._text.concepts[head.name] = ConceptText(
                name=head.name,
                supers=tuple(
                    each if isinstance(each, NameRef) else NameRef(str(each.type), each.place) for each in head.supers
                ),
                attributes=tuple(each for each in declared.values() if each is not None),
                faulty=frozenset(name for name, each in declared.items() if each is None),
                location=place,
            )

    def _group(self, key: ScalarNode, node: Node) -> None:
        if not self._named(key, "a group", CONCEPT_NAME):
            return
        items = self._read.items(node)
        members = [each for item in items or () if (each := self._read.scalar(item)) is not None]
        if items is not None and not items:
            self._read.wrong(node, "at least one concept, as in `[person, robot]`")
        seen: dict[str, ScalarNode] = {}
        for each in members:
            if seen.setdefault(each.text, each) is not each:
                first = str(seen[each.text].location)
                problem = DECLARED_TWICE(each.location, what="The member", name=each.text, first=first)
                self._read.problems.add(problem)
        if members and self._once("The concept", key):
            self._text.groups[key.text] = GroupText(name=key.text, members=tuple(seen.values()), location=key.location)

    # ── relationships and measures ────────────────────────────────────────────────────────────────

    def _related(self, key: ScalarNode, node: Node, keys: tuple[str, ...]) -> Iterator[RelationshipText]:
        """One, or a list of several between other concepts."""
        for number, each in enumerate(node.items if isinstance(node, SequenceNode) else (node,)):
            fields = self._read.fields(each, required=("between", "function"), optional=keys[2:])
            if fields is None:
                continue
            ends, function = self._ends(key, fields), fields.scalar("function")
            parameter = self._parameter(fields)
            symmetric, unit = fields.boolean("symmetric", False), fields.scalar("unit")
            if ends is not None and function is not None:
                yield RelationshipText(
                    name=key.text,
                    ends=ends,
                    function=function,
                    parameter=parameter,
                    symmetric=symmetric,
                    unit=unit,
                    location=each.location if number else key.location,
                )

    def _ends(self, key: ScalarNode, fields: Fields) -> tuple[ScalarNode, ScalarNode] | None:
        if "between" not in fields:
            return None
        items = fields.items("between")
        ends = fields.scalars("between")
        if len(items) == len(ends) == 2:
            return ends[0], ends[1]
        if items and len(items) == len(ends):
            place = fields.node("between") or key
            self._read.problems.add(BAD_ENDS(place.location, name=key.text, reason=f"there are {len(items)}"))
        return None

    def _parameter(self, fields: Fields) -> RelationshipParameterText | None:
        below = fields.fields("parameter", required=("name",), optional=("unit",))
        name = below.scalar("name") if below is not None else None
        return (
            None if below is None or name is None else RelationshipParameterText(name=name, unit=below.scalar("unit"))
        )

    # ── names ─────────────────────────────────────────────────────────────────────────────────────

    def _named(self, key: ScalarNode, what: str, form: re.Pattern[str]) -> bool:
        return self._check_name(key.text, key.location, what, form)

    def _check_name(self, name: str, place: Location, what: str, form: re.Pattern[str]) -> bool:
        if name.lower() in _WORDS_OF_POLICIES:
            reason, remedy = "it is a word of the policy language", "Choose another name."
        elif not form.fullmatch(name):
            reason, remedy = "it has other characters, or too many", _LETTERS
        else:
            return True
        self._read.problems.add(BAD_NAME(place, name=name or " ", what=what, reason=reason, remedy=remedy))
        return False

    def _once(self, what: str, name: ScalarNode | str, place: Location | None = None) -> bool:
        text, place = (name.text, name.location) if isinstance(name, ScalarNode) else (name, place)
        assert place is not None
        first = self._first.setdefault((what, text), place)
        if first is place:
            return True
        self._read.problems.add(DECLARED_TWICE(place, what=what, name=text, first=str(first)))
        return False


def _entries(fields: Fields, key: str) -> tuple[tuple[ScalarNode, Node], ...]:
    """A section that is there without content is empty: someone is about to write it."""
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.entries(key)
