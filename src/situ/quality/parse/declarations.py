"""What somebody wrote of one need → the need: its property, its bounds and its options, each where it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast, get_args

from situ.catalogue import BAD_ATTRIBUTE, NEED_OPTION_UNFIT, OUTSIDE_DOMAIN, TOO_MANY, UNKNOWN_PROPERTY
from situ.documents import Fields, Node, Reader, Scalar
from situ.errors import nearest
from situ.quality.around import Around, numeric
from situ.quality.expectation import Keep, Need
from situ.quality.json_form import property_of
from situ.quality.property import Property
from situ.quality.read_value import Values, read_microseconds
from situ.types.model import Attribute
from situ.units import NO_UNIT

NEED_KEYS = ("lb", "ub", "unit", "of", "each", "missing", "per", "across", "keep", "max_silence", "per_key")
MOST_PROPERTIES = 100
"""Of one need, profile or mode."""
OF = " of "
IMPRECISION = "imprecision"

_EACH = ("confidence", "freshness")
_FITS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "each": ("`confidence` and `freshness`", _EACH),
        "missing": ("`confidence` and `freshness`, beside `each: true`", _EACH),
        "per": ("`rate` and `imprecision`", ("rate", IMPRECISION)),
        "across": ("`rate`", ("rate",)),
        "keep": ("`rate`", ("rate",)),
        "max_silence": ("`imprecision`", (IMPRECISION,)),
        "per_key": ("`imprecision`", (IMPRECISION,)),
    }
)
"""Option → the properties that it goes with, in words and by name."""


@dataclass(frozen=True, slots=True)
class Named:
    """Reads which property is meant. ``types`` are the event types that its attributes are looked for in."""

    read: Reader
    around: Around
    types: tuple[str, ...] = ()

    def property(self, key: Scalar, fields: Fields | None = None) -> Property | None:
        """The property of a key, ``rate`` or ``imprecision of power``; the attribute can stand under ``of:``, too."""
        name, _, attribute = key.text.partition(OF)
        if name in self.around.faulty:
            return None
        found = self.around.properties.get(name)
        if found is None:
            known = tuple(self.around.properties)
            similar = nearest(name, known)
            self.read.problems.add(UNKNOWN_PROPERTY(key.location, name=name, nearest=similar, known=known))
            return None
        of = fields.scalar("of") if fields is not None else None
        written = attribute.strip() or (of.text if of is not None else "")
        if name != IMPRECISION:
            if written:
                remedy = f"Only `{IMPRECISION}` is of an attribute: leave it out."
                self._bad(of or key, f"`{name}` is no property of a single attribute", remedy)
                return None
            return found
        return self._of_attribute(of or key, written)

    def _of_attribute(self, place: Scalar, name: str) -> Property | None:
        if not name:
            self._bad(place, "An imprecision is that of an attribute", "Say of which: `of: temperature`.")
            return None
        there = list(self.around.attributes(name, self.types))
        if not there:
            events = ", ".join(f"`{each}`" for each in self.types) or "any event type"
            known = sorted({each.name for each in self._all_attributes()})
            remedy = f"There are {', '.join(f'`{each}`' for each in nearest(name, known) or known[:9])}."
            self._bad(place, f"There is no attribute `{name}` of {events} in root", remedy if known else "Declare it.")
            return None
        units = {each.unit.difference for each in numeric(there)}
        if len(units) != 1:
            what = "is a number of one unit in one event type, and of another or none in another"
            what = "is no number" if not units else what
            self._bad(place, f"`{name}` {what}", "Imprecision needs numbers of one unit.")
            return None
        unit = units.pop()
        return property_of(f"{IMPRECISION}{OF}{name}", self.around.properties, "" if unit == NO_UNIT else str(unit))

    def _all_attributes(self) -> list[Attribute]:
        names = self.types or tuple(self.around.types.events)
        events = (self.around.types.event(each) for each in names)
        return [each for event in events if event is not None for each in numeric(event.attributes)]

    def _bad(self, place: Scalar, what: str, remedy: str) -> None:
        self.read.problems.add(BAD_ATTRIBUTE(place.location, what=what, remedy=remedy))


Entries = tuple[tuple[Scalar, Node], ...]


def not_too_many(read: Reader, entries: Entries) -> Entries:
    """What is said of properties; of more than anybody has, nothing is looked at, and that is said."""
    if len(entries) <= MOST_PROPERTIES:
        return entries
    first = entries[MOST_PROPERTIES][0]
    read.problems.add(TOO_MANY(first.location, count=len(entries), what="properties", most=MOST_PROPERTIES))
    return ()


def read_needs(named: Named, values: Values, entries: Entries) -> dict[str, Need] | None:
    """All needs of an expectation by the ids of their properties; None if something is wrong with one of them."""
    found: dict[str, Need] = {}
    wrong = len(entries) > MOST_PROPERTIES
    for key, node in not_too_many(named.read, entries):
        need = _need(named, values, key, node)
        if need is not None and need.about.id in found:
            named.read.wrong(key, f"each property once, and `{need.about.id}` is there already")
            need = None
        if need is None:
            wrong = True
        else:
            found[need.about.id] = need
    return None if wrong else found


def _need(named: Named, values: Values, key: Scalar, node: Node) -> Need | None:
    read = named.read
    before = len(read.problems)
    fields = read.fields(node, optional=NEED_KEYS)
    about = named.property(key, fields)
    if about is None or fields is None:
        return None
    values = values.in_unit(fields)
    bounds = values.bounds(about, fields)
    _check_fit(read, about, fields)
    silence = read_microseconds(read, fields.node("max_silence"))
    per_key = _per_key(values, about, fields, bounds[1]) if bounds is not None else {}
    each = fields.boolean("each", default=False)
    missing = fields.choice("missing", ("drop", "keep"), "drop")
    per = fields.text("per", "")
    across = fields.boolean("across", default=False)
    keep = fields.choice("keep", get_args(Keep), "first")
    if bounds is None or len(read.problems) > before:
        return None
    return Need(
        about=about,
        lb=bounds[0],
        ub=bounds[1],
        each=each,
        keep_missing=missing == "keep",
        per=per,
        across=across,
        keep=cast(Keep, keep),
        max_silence=silence,
        per_key=MappingProxyType(per_key),
    )


def _check_fit(read: Reader, about: Property, fields: Fields) -> None:
    for option, (shown, names) in _FITS.items():
        place = fields.mapping.key(option)
        if place is not None and about.name not in names:
            read.problems.add(NEED_OPTION_UNFIT(place.location, option=option, name=about.id, fits=shown))
    missing = fields.mapping.key("missing")
    if missing is not None and about.name in _EACH and not fields.boolean("each", default=False):
        read.problems.add(NEED_OPTION_UNFIT(missing.location, option="missing", name=about.id, fits="`each: true`"))


def _per_key(values: Values, about: Property, fields: Fields, most: float) -> dict[str, float]:
    """Smaller bounds of single keys: a larger one would tell less than was asked for."""
    found = {}
    for key, node in fields.entries("per_key") if "per_key" in fields else ():
        bound = values.value(about, node)
        if bound is not None and bound > most:
            lo, hi = (f"{each:g} {about.unit}".strip() for each in (about.lo, most))
            problem = OUTSIDE_DOMAIN(
                node.location, value=f"{bound:g}", name=f"{about.id} of {key.text}", lo=lo, hi=hi, nearest=()
            )
            values.read.problems.add(problem)
        elif bound is not None:
            found[key.text] = bound
    return found
