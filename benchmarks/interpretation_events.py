"""Events of two dialects and the contexts between them, for the benchmarks of interpretation.

An event has five or fifteen attributes, side by side (*flat*) or each a level below the one before (*deep*). A producer
in a context of its own sends lengths in feet, weights in pounds and addresses in one text; each consumer's context has
other units, other names, and addresses in parts. The same in terms of root, where nothing is converted, is what
content-based routing without interpretation does.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

from situ.event.message import join_lines
from situ.routing.model import Subscription

ATTRIBUTES = (5, 15)
SHAPES = ("flat", "deep")
PER_MESSAGE = 500
_LENGTHS = ("yd", "km", "cm", "mi", "mm", "dm", "hm", "inch", "dam", "ft")
_TEXTS = ("shipper", "contact", "order", "lane", "dock")
_COUNTS = ("boxes", "pallets", "stops", "priority", "revision")


@dataclass(frozen=True, slots=True)
class Form:
    """What events look like."""

    shape: str
    attributes: int

    def __str__(self) -> str:
        return f"{self.shape}, {self.attributes} attributes"

    @property
    def names(self) -> list[str]:
        """Attributes besides the first five, texts and numbers in turns."""
        more = [name for pair in zip(_TEXTS, _COUNTS, strict=True) for name in pair]
        return more[: self.attributes - 5]


FLAT, DEEP = Form("flat", 5), Form("deep", 15)
FORMS = tuple(Form(shape, attributes) for shape in SHAPES for attributes in ATTRIBUTES)


def _attributes(form: Form, *, length: str, weight: str, address: str) -> list[str]:
    first = [
        "id: string",
        "at: timestamp",
        f"distance: double {length}",
        f"weight: double {weight}",
        f"address: {address}",
    ]
    return first + [f"{name}: {'string' if name in _TEXTS else 'long'}" for name in form.names]


def _types(form: Form, prefix: str, event: str, *, length: str, weight: str, address: str) -> str:
    """The event type and, if its attributes stand below each other, a type for every level."""
    attributes = _attributes(form, length=length, weight=weight, address=address)
    if form.shape == "flat":
        return f"events:\n  {event}: {{{', '.join(attributes)}}}\n"
    lines, last = ["types:"], ""
    for number in range(len(attributes) - 1, 0, -1):
        below = f", below: {last}" if last else ""
        last = f"{prefix}{number}"
        lines.append(f"  {last}: {{{attributes[number]}{below}}}")
    return "\n".join([*lines, "events:", f"  {event}: {{{attributes[0]}, below: {last}}}"]) + "\n"


def root_types(form: Form) -> str:
    types = _types(form, "Level", "Shipment", length="m", weight="kg", address="Address")
    own = "  Address: {name: string, specifics: string}\n"
    head, _, rest = types.partition("types:\n")
    return f"version: 1\ntypes:\n{own}{rest or head}"


def producer(form: Form, *, context: str = "carrier") -> str:
    types = _types(form, "Own", "Load", length="ft", weight="lb", address="string")
    parts = "struct(split_part(value, '/', 1) AS name, split_part(value, '/', 2) AS specifics)"
    return (
        f"version: 1\ncontext: {context}\n{types}maps: [in: Load -> Shipment]\n"
        f"rules: {{in: [{_address('Load', form)} -> to_address]}}\n"
        f"functions:\n  to_address: string -> Address = {parts}\n"
    )


def renamed(form: Form, context: str, event: str, maps: str) -> str:
    """A context that calls the event otherwise and has all its values as root has them: only texts are written anew."""
    types = _types(form, f"{event}Part", event, length="m", weight="kg", address="Place")
    own = "  Place: {name: string, specifics: string}\n"
    head, _, rest = types.partition("types:\n")
    return f"version: 1\ncontext: {context}\ntypes:\n{own}{rest or head}maps: [{maps}]\n"


def _address(event: str, form: Form) -> str:
    return f"{event}.address" if form.shape == "flat" else f"{event}.below.below.below.below.address"


def consumer(form: Form, number: int) -> str:
    """One of up to ten contexts, each with a unit of its own."""
    length = _LENGTHS[number % len(_LENGTHS)]
    types = _types(form, "Part", "Delivery", length=length, weight="g", address="Parts")
    own = "  Parts: {name: string, street: optional string, zip: optional string}\n"
    head, _, rest = types.partition("types:\n")
    keyed = "kv(value.specifics, 'street') AS street, kv(value.specifics, 'zip') AS zip"
    return (
        f"version: 1\ncontext: desk{number}\ntypes:\n{own}{rest or head}maps: [out: Shipment -> Delivery]\n"
        f"rules: {{out: [Address -> to_parts]}}\n"
        f"functions:\n  to_parts: Address -> Parts = struct(value.name AS name, {keyed})\n"
    )


def files(form: Form, *, contexts: int = 1, clients: str = "", situ: str = "", convert: bool = True) -> dict[str, str]:
    """A project: the carrier's context and so many of consumers; ``clients`` are who sends in which terms.

    Not ``convert``: these contexts differ from root in names alone.
    """
    found = {
        "situ.yaml": f"version: 1\nname: bench\n{situ}",
        "types/all.yaml": root_types(form),
        "contexts/carrier.yaml": producer(form)
        if convert
        else renamed(form, "carrier", "Load", "in: Load -> Shipment"),
        "clients/all.yaml": f"version: 1\nclients:\n{clients}",
    }
    return found | {
        f"contexts/desk{number}.yaml": consumer(form, number)
        if convert
        else renamed(form, f"desk{number}", "Delivery", "out: Shipment -> Delivery")
        for number in range(contexts)
    }


def subscriptions(consumers: int, contexts: int, *, mediated: bool) -> list[Subscription]:
    """Everybody asks for something that all events have."""
    return [
        Subscription(
            client=f"c{number}",
            name="all",
            types=("Delivery" if mediated else "Shipment",),
            where="id LIKE 'S-%'",
            durable=True,
            context=f"desk{number % contexts}" if mediated else "root",
        )
        for number in range(consumers)
    ]


# ── events ────────────────────────────────────────────────────────────────────────────────────────


def body(
    form: Form,
    client: str,
    *,
    mediated: bool,
    type: str = "",
    prefix: str = "S",
    number: int = PER_MESSAGE,
    seed: int = 7,
) -> bytes:
    """A message of a client: in its own terms, or the same already in those of root, maybe as another ``type``."""
    type = type or ("Load" if mediated else "Shipment")
    return join_lines(_events(form, client, mediated, type, prefix, number, random.Random(seed)))


def _events(
    form: Form, client: str, mediated: bool, type: str, prefix: str, number: int, dice: random.Random
) -> Iterator[bytes]:
    for each in range(number):
        event = {
            "specversion": "1.0",
            "id": f"{dice.randrange(16**8):08x}-{each}",
            "source": client,
            "type": type,
            "time": "2026-11-15T10:00:00.000000Z",
            "situad": f"{client}/loads",
            "data": data(form, dice, mediated=mediated, prefix=prefix),
        }
        yield json.dumps(event, separators=(",", ":")).encode()


def data(form: Form, dice: random.Random, *, mediated: bool, prefix: str = "S") -> dict[str, object]:
    """What one event says; filters may ask for the ``prefix`` of its id."""
    name, specifics = (
        f"N-{dice.randrange(1000)}",
        f"street=Main {dice.randrange(99)};zip={dice.randrange(10_000, 99_999)}",
    )
    distance, weight = round(dice.uniform(5, 5000), 2), round(dice.uniform(1, 900), 2)
    values: dict[str, object] = {
        "id": f"{prefix}-{dice.randrange(100_000)}",
        "at": "2026-11-15T09:59:58.250000Z",
        "distance": distance,
        "weight": weight,
        "address": f"{name}/{specifics}" if mediated else {"name": name, "specifics": specifics},
    }
    for each in form.names:
        values[each] = f"{each}-{dice.randrange(100)}" if each in _TEXTS else dice.randrange(1000)
    return values if form.shape == "flat" else _nested(list(values.items()))


def _nested(items: list[tuple[str, object]]) -> dict[str, object]:
    (name, value), *rest = items
    return {name: value, "below": _nested(rest)} if rest else {name: value}
