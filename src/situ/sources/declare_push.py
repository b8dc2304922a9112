"""One push source as a file declares it → a :class:`~situ.sources.model.Push`, with all that is wrong with it.

``{event: Sighting, concept: person, id: who, attribute: position, value: at, lateness: 2 s, keep: last 10 min}``. Knows
the notation and event types; whether there is such a concept is not known here.
"""

from __future__ import annotations

from datetime import timedelta

from situ.catalogue import PUSH_EVENT, PUSH_PATH, PUSH_TIME, PUSH_TIME_OF_SITUATION, PUSH_UNFIT
from situ.documents import Fields, Node, Reader, Scalar
from situ.errors import Problems, nearest
from situ.expr.faults import Faults
from situ.sources.declare import read_duration
from situ.sources.model import Push
from situ.types.model import STRING, TIMESTAMP, Attribute, Struct, plain, unit_below
from situ.types.reserved import BINDINGS
from situ.types.syntax import RESERVED_PREFIX, format_attribute
from situ.types.table import Types
from situ.units import NO_UNIT, Unit

REQUIRED = ("event", "concept", "id", "attribute", "value")
PUSH_KEYS = (*REQUIRED, "time", "lateness", "idle", "keep")

_LAST = "last "


class DeclaringPushes:
    """Reads push sources of events of one table of types."""

    def __init__(self, types: Types, problems: Problems, faults: Faults) -> None:
        self._types, self._faults = types, faults
        self._read = Reader(problems)

    def push(self, key: Scalar, node: Node) -> Push | None:
        """One push source; None, with the problems noted, if it cannot be used."""
        before = len(self._read.problems.errors)
        fields = self._read.fields(node, required=REQUIRED, optional=PUSH_KEYS[len(REQUIRED) :])
        if fields is None:
            return None
        texts = {name: fields.scalar(name) for name in REQUIRED}
        event = self._event(key, texts["event"])
        for name in ("id", "value"):
            scalar = texts[name]
            if event is not None and scalar is not None:
                found = self._at(event, scalar)
                if name == "id" and found is not None and plain(found.type) != STRING:
                    self._no_identity(event, scalar, found, texts["concept"])
        time = fields.scalar("time")
        if event is not None and time is not None:
            self._check_time(event, time)
        lateness, idle = self._duration(fields, "lateness"), self._duration(fields, "idle")
        keep = self._keep(fields)
        written = {name: scalar.text.strip() for name, scalar in texts.items() if scalar is not None}
        if event is None or len(written) < len(REQUIRED) or len(self._read.problems.errors) > before:
            return None
        return Push(
            name=key.text,
            event=written["event"],
            concept=written["concept"],
            id=tuple(written["id"].split(".")),
            attribute=written["attribute"],
            value=tuple(written["value"].split(".")),
            time=() if time is None else tuple(time.text.strip().split(".")),
            lateness=lateness,
            idle=idle,
            keep=keep,
            location=key.location,
        )

    def _event(self, key: Scalar, scalar: Scalar | None) -> Struct | None:
        if scalar is None:
            return None
        found = self._types.event(scalar.text)
        if found is not None:
            return found
        if scalar.text not in self._faults.types:
            similar = nearest(scalar.text, self._types.events)
            self._read.problems.add(PUSH_EVENT(scalar.location, push=key.text, name=scalar.text, nearest=similar))
        return None

    def _at(self, event: Struct, scalar: Scalar) -> Attribute | None:
        found = attribute_at(event, tuple(scalar.text.strip().split(".")))
        if isinstance(found, Attribute):
            return found
        struct, step = found
        if step not in self._faults.attributes.get(struct.name, ()):
            known = tuple(each.name for each in struct.attributes)
            self._read.problems.add(
                PUSH_PATH(
                    scalar.location,
                    path=scalar.text,
                    event=event.name,
                    type=str(struct),
                    step=step,
                    nearest=nearest(step, known),
                    known=known,
                )
            )
        return None

    def _check_time(self, event: Struct, scalar: Scalar) -> None:
        found = self._at(event, scalar)
        if event.name.startswith(RESERVED_PREFIX):
            # Who reads what policies conclude waits for these policies, which count by the time of the event.
            self._read.problems.add(PUSH_TIME_OF_SITUATION(scalar.location, event=event.name))
        elif found is not None and plain(found.type) != TIMESTAMP:
            self._read.problems.add(
                PUSH_TIME(scalar.location, path=scalar.text, event=event.name, found=format_attribute(found))
            )

    def _no_identity(self, event: Struct, scalar: Scalar, found: Attribute, concept: Scalar | None) -> None:
        remedy = "Identities are texts: give the event one, or let a context make it one by a function."
        self._read.problems.add(
            PUSH_UNFIT(
                scalar.location,
                path=scalar.text,
                event=event.name,
                found=format_attribute(found),
                concept=concept.text if concept is not None else "",
                attribute="id",
                expected="string",
                remedy=remedy,
            )
        )

    def _duration(self, fields: Fields, key: str) -> timedelta | None:
        node = fields.node(key)
        return None if node is None else read_duration(node, self._read)

    def _keep(self, fields: Fields) -> timedelta:
        scalar = fields.scalar("keep")
        if scalar is None:
            return timedelta(0)
        if not scalar.text.startswith(_LAST):
            self._read.wrong(scalar, "`last` and a duration, such as `last 10 min`")
            return timedelta(0)
        return read_duration(scalar, self._read, scalar.text.removeprefix(_LAST).strip()) or timedelta(0)


def attribute_at(struct: Struct, path: tuple[str, ...]) -> Attribute | tuple[Struct, str]:
    """What is at a path below a struct, with its unit; or the struct that has no attribute for a step, and the step.

    Below the bindings of a situation are aliases: any policy may have any, so none is unknown, and each may be missing.
    """
    unit: Unit = NO_UNIT
    optional = False
    for place, step in enumerate(path):
        attribute = struct.attribute(step)
        if attribute is None:
            return struct, step
        unit = unit_below(struct, unit, attribute)
        optional = optional or attribute.nullable
        if place == len(path) - 1:
            return Attribute(name=step, type=attribute.type, unit=unit, optional=optional)
        below = plain(attribute.type)
        if below == BINDINGS and place == len(path) - 2:
            return Attribute(name=path[-1], type=STRING, optional=True)
        struct = below if isinstance(below, Struct) else Struct(format_attribute(attribute), ())
    raise ValueError("an empty path leads nowhere")
