"""Data of actions: what is written → templates and constants, held against the type of the event they make.

Twice: where they are declared, for names and constants; where a policy uses them, for what references stand for there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from situ.lang.catalogue import DATA_UNFIT
from situ.lang.documents import MappingNode, Node, ScalarNode, SequenceNode, to_data
from situ.lang.problems import Location, Problem, Problems, SituError, nearest
from situ.lang.records import replace
from situ.lang.types.json_codec import check_value
from situ.lang.types.model import (
    STRING,
    Attribute,
    ListOf,
    Struct,
    Type,
    fits,
    format_attribute,
    format_type,
    plain,
    unit_below,
)
from situ.lang.units import NO_UNIT, Unit
from situ.policies.actions.model import ActionData, ConstantData, ListData, RecordData
from situ.policies.actions.templates import Template, TemplateReference, parse_template, text_template

ReferenceLookup = Callable[[TemplateReference], Attribute | None]
"""What a reference stands for in a policy: its type and unit; None if it means nothing there."""


class ActionDataReader:
    """Reads the data of one action."""

    def __init__(self, action: str, problems: Problems) -> None:
        self.action, self.problems = action, problems

    def event(self, node: Node | None, struct: Struct, place: Location) -> RecordData | None:
        """The data of an event of this type; ``place`` is where the type is named."""
        if node is None:
            missing = [each for each in struct.attributes if not each.nullable and each.default is None]
            if missing:
                remedy = f"Write `data:` with {_listed_attributes(missing)}."
                self._unfit(place, "data", "nothing", f"the attributes of `{struct.name}`", remedy)
            return RecordData(())
        data = self._typed(node, struct, "data")
        return data if isinstance(data, RecordData) else None

    def anything(self, node: Node) -> ActionData | None:
        """Data of no particular type."""
        match node:
            case MappingNode():
                entries = [(key.text, self.anything(value)) for key, value in node.entries]
                return _record((name, each) for name, each in entries if each is not None)
            case SequenceNode():
                items = [self.anything(each) for each in node.items]
                return ListData(tuple(each for each in items if each is not None))
            case ScalarNode():
                return self._text(node) if isinstance(node.value, str) or node.substituted else ConstantData(node.value)

    def _typed(self, node: Node, type: Type, path: str) -> ActionData | None:
        bare = plain(type)
        match node, bare:
            case MappingNode(), Struct():
                return self._record(node, bare, path)
            case SequenceNode(), ListOf(element=element):
                items = [self._typed(each, element, f"{path}[{place}]") for place, each in enumerate(node.items)]
                return ListData(tuple(each for each in items if each is not None))
            case ScalarNode(), _ if node.substituted or (isinstance(node.value, str) and {"{", "}"} & set(node.text)):
                return self._fitting(node, type, path)
            case ScalarNode(), _ if bare == STRING and isinstance(node.value, str):
                return text_template(node.text)
        return self._constant(node, type, path)

    def _record(self, node: MappingNode, struct: Struct, path: str) -> RecordData:
        entries = []
        for key, value in node.entries:
            attribute = struct.attribute(key.text)
            if attribute is None:
                known = tuple(each.name for each in struct.attributes)
                similar = nearest(key.text, known, 1)
                remedy = f"Did you mean `{similar[0]}`?" if similar else f"It has {_names(known)}."
                self._unfit(key.location, f"{path}.{key.text}", "another attribute", f"one of `{struct}`", remedy)
            elif (made := self._typed(value, attribute.type, f"{path}.{key.text}")) is not None:
                entries.append((key.text, made))
        given = {key.text for key, _ in node.entries}
        missing = [
            each for each in struct.attributes if each.name not in given and not each.nullable and each.default is None
        ]
        for each in missing:
            remedy = f"Write `{each.name}: …`; it is declared as `{format_attribute(each)}`."
            self._unfit(node.location, f"{path}.{each.name}", "nothing", "a value", remedy)
        return _record(entries)

    def _fitting(self, node: ScalarNode, type: Type, path: str) -> Template | None:
        template = self._text(node)
        if template is not None and template.alone is None and plain(type) != STRING:
            remedy = "Only one reference alone, `{A.age}`, gives something else than text."
            self._unfit(node.location, path, "text", f"`{format_type(type)}`", remedy)
            return None
        return template

    def _text(self, node: ScalarNode) -> Template | None:
        try:
            written = node.written or node  # what the environment says stays out of what is stored
            return parse_template(written.text, written.locate)
        except SituError as error:
            self.problems.extend(error.problems)
            return None

    def _constant(self, node: Node, type: Type, path: str) -> ConstantData | None:
        value = to_data(node)
        for problem in check_value(type, value):
            self._unfit(node.location, path, _shown(value), f"`{format_type(type)}`", problem.hint)
            return None
        return ConstantData(value)

    def _unfit(self, place: Location | None, path: str, found: str, expected: str, remedy: str) -> None:
        self.problems.add(
            DATA_UNFIT(place, path=path, action=self.action, found=found, expected=expected, remedy=remedy)
        )


def _record(entries: Iterable[tuple[str, ActionData]]) -> RecordData:
    """In the order of names: what is the same when it is read back is the same from the start."""
    return RecordData(tuple(sorted(entries, key=lambda entry: entry[0])))


def misfits(
    data: ActionData, type: Type, known: ReferenceLookup, action: str, place: Location | None
) -> Iterator[Problem]:
    """Where what references stand for does not fit the event they make."""
    yield from _misfits(data, type, NO_UNIT, "data", _Use(known, action, place))


class _Use:
    def __init__(self, known: ReferenceLookup, action: str, place: Location | None) -> None:
        self.known, self.action, self.place = known, action, place


def _misfits(data: ActionData, type: Type, unit: Unit, path: str, use: _Use) -> Iterator[Problem]:
    bare = plain(type)
    match data, bare:
        case RecordData(entries=entries), Struct():
            for name, each in entries:
                attribute = bare.attribute(name)
                if attribute is not None:
                    below = unit_below(bare, unit, attribute)
                    yield from _misfits(each, attribute.type, below, f"{path}.{name}", use)
        case ListData(items=items), ListOf(element=element):
            for number, each in enumerate(items):
                yield from _misfits(each, element, unit, f"{path}[{number}]", use)
        case Template(), _ if data.alone is not None:
            found = use.known(data.alone)
            if found is not None and not (fits(found.type, type) and found.unit == unit):
                expected = format_attribute(Attribute(name="", type=type, unit=unit))
                remedy = f"Put it into text, as in `about {data.alone}`, or declare `{path}` so that it fits."
                yield DATA_UNFIT(
                    use.place,
                    path=path,
                    action=use.action,
                    found=f"`{data.alone}` of type `{format_attribute(replace(found, optional=False))}`",
                    expected=f"`{expected}`",
                    remedy=remedy,
                )


def data_as_json(data: ActionData) -> Any:
    """As it is written."""
    match data:
        case Template():
            return str(data)
        case ConstantData(value=value):
            return value
        case RecordData(entries=entries):
            return {name: data_as_json(each) for name, each in entries}
        case ListData(items=items):
            return [data_as_json(each) for each in items]


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"`{value}`" if isinstance(value, str | int | float) else "something else"


def _listed_attributes(attributes: list[Attribute]) -> str:
    return _names(tuple(each.name for each in attributes))


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "no attributes"
