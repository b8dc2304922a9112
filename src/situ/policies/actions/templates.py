"""Templates: text with references to what was detected, ``{A.name} alone in {R.id}``.

``{A}`` is the identity of what the alias ``A`` is bound to, ``{A.name}`` one of its attributes; ``{policy}``,
``{situation}``, ``{detection}`` and ``{time}`` are those of the detection; ``{1}`` is what stands first behind the name
of the action; ``${TOKEN}`` is what the environment says where the action is performed, and stands in no deployment.
Braces are doubled to mean themselves. Rendering is a function of what is given and nothing else.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from situ.lang.catalogue import TEMPLATE_SYNTAX
from situ.lang.problems import Location, SituError
from situ.lang.types.model import BYTES, DATE, DURATION, TIMESTAMP
from situ.lang.types.scalars import PRINTERS, print_decimal

ABOUT = ("policy", "situation", "detection", "time")
"""What can be said of a detection itself."""
UNKNOWN = "unknown"
"""How a value that is not known reads inside of text."""

Locate = Callable[[int, int], Location | None]

_PIECE = re.compile(r"\{\{|\}\}|(?P<environment>\$\{[A-Za-z_]\w*\})|\{(?P<reference>[^{}]*)\}|[{}]|[^{}$]+|\$")
_REFERENCE = re.compile(r"\s*(?P<name>[^\W\d]\w*(?:-\w+)*|[1-9])(?:\.(?P<attribute>[^\W\d]\w*))?\s*")


@dataclass(frozen=True, slots=True)
class TemplateReference:
    """``{A.name}``: an alias with an attribute, an alias, a word about the detection, or the number of an argument.

    A name that begins with ``$`` is one of the environment.
    """

    name: str
    attribute: str = ""
    location: Location | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.is_environment:
            return f"${{{self.name[1:]}}}"
        return f"{{{self.name}.{self.attribute}}}" if self.attribute else f"{{{self.name}}}"

    @property
    def is_environment(self) -> bool:
        return self.name.startswith("$")

    @property
    def argument(self) -> int:
        """Which argument this is, from 1; 0 if it is none."""
        return int(self.name) if self.name.isdigit() else 0

    @property
    def is_alias(self) -> bool:
        return not self.argument and not self.is_environment and (bool(self.attribute) or self.name not in ABOUT)


@dataclass(frozen=True, slots=True)
class Template:
    """Text and references in turn."""

    parts: tuple[str | TemplateReference, ...]
    location: Location | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """As it is written."""
        return "".join(
            str(part) if isinstance(part, TemplateReference) else part.replace("{", "{{").replace("}", "}}")
            for part in self.parts
        )

    @property
    def references(self) -> tuple[TemplateReference, ...]:
        return tuple(part for part in self.parts if isinstance(part, TemplateReference))

    @property
    def alone(self) -> TemplateReference | None:
        """The reference that is all of the template: its value keeps its type."""
        return self.parts[0] if len(self.parts) == 1 and isinstance(self.parts[0], TemplateReference) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateFacts:
    """What templates can refer to. An alias that is not bound, an attribute that is not known, is None."""

    policy: str = ""
    situation: str = ""
    detection: str = ""
    time: dt.datetime | None = None
    bindings: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By alias, then by name."""
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def value(self, reference: TemplateReference) -> Any:
        if reference.is_environment:
            return self.environment.get(reference.name[1:])
        if reference.argument:
            given = self.arguments[reference.argument - 1 : reference.argument]
            return given[0] if given else None
        if reference.attribute == "id" or (reference.is_alias and not reference.attribute):
            return self.bindings.get(reference.name)
        if reference.attribute:
            return self.attributes.get(reference.name, {}).get(reference.attribute)
        return getattr(self, reference.name)


def parse_template(text: str, locate: Locate) -> Template:
    """Read a template; :class:`SituError` with all that is wrong with it."""
    parts: list[str | TemplateReference] = []
    problems = []
    for found in _PIECE.finditer(text):
        piece = found[0]
        place = locate(found.start(), len(piece))
        if piece in ("{{", "}}"):
            parts.append(piece[0])
        elif piece in ("{", "}"):
            remedy = "Write `{{` and `}}` for braces that mean themselves."
            problems.append(TEMPLATE_SYNTAX(place, reason=f"`{piece}` stands alone", remedy=remedy))
        elif found["environment"] is not None:
            parts.append(TemplateReference(f"${piece[2:-1]}", location=place))
        elif found["reference"] is None:
            parts.append(piece)
        elif (reference := _REFERENCE.fullmatch(found["reference"])) is None:
            remedy = "Refer to an alias, `{A}`, or to one of its attributes, `{A.name}`."
            problems.append(TEMPLATE_SYNTAX(place, reason=f"`{piece}` refers to nothing", remedy=remedy))
        else:
            parts.append(TemplateReference(reference["name"], reference["attribute"] or "", location=place))
    if problems:
        raise SituError(*problems)
    return Template(tuple(_joined(parts)), location=locate(0, len(text)))


def text_template(text: str) -> Template:
    """Text that refers to nothing."""
    return Template((text,) if text else ())


def _joined(parts: list[str | TemplateReference]) -> Iterator[str | TemplateReference]:
    text = ""
    for part in parts:
        if isinstance(part, str):
            text += part
            continue
        if text:
            yield text
        text = ""
        yield part
    if text:
        yield text


# ── rendering ─────────────────────────────────────────────────────────────────────────────────────


def render_template(template: Template, facts: TemplateFacts) -> Any:
    """What the template says of these facts: a JSON value. Only a reference that stands alone can give no text."""
    if (alone := template.alone) is not None:
        return json_value(facts.value(alone))
    return render_text(template, facts)


def render_text(template: Template, facts: TemplateFacts, spell: Callable[[str], str] = str) -> str:
    """The template as text; ``spell`` is applied to what references stand for."""
    return "".join(
        part if isinstance(part, str) else spell(_text(json_value(facts.value(part)))) for part in template.parts
    )


def json_value(value: Any) -> Any:
    """A value as events carry it."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dt.datetime():
            return PRINTERS[TIMESTAMP](value)
        case dt.date():
            return PRINTERS[DATE](value)
        case dt.timedelta():
            return PRINTERS[DURATION](value)
        case decimal.Decimal():
            return print_decimal(value)
        case bytes():
            return PRINTERS[BYTES](value)
        case Mapping():
            return {name: json_value(each) for name, each in value.items()}
        case Sequence():
            return [json_value(each) for each in value]
        case _:
            raise TypeError(f"no value of any type: {value!r}")


def _text(value: Any) -> str:
    match value:
        case None:
            return UNKNOWN
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.12g}"
        case int():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
