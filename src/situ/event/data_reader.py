"""Compiled readers of the data of events: plans for what clients send, trusting readers for rows.

:class:`DataPlan` is what the decode stage tries first. :func:`data_reader` and :func:`row_reader` give filters the
attributes they look at; :func:`read_envelope` and its neighbours give them the envelope of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from situ.event.instants import canonical_instant, instant_at
from situ.event.row import Row
from situ.lang.problems import SituError
from situ.lang.types.json_codec import decoder, encode
from situ.lang.types.layout import NoShape, dict_shape
from situ.lang.types.model import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Attribute,
    Decimal,
    ListOf,
    Primitive,
    Struct,
    Type,
    plain,
)
from situ.lang.types.scalars import PRINTERS, PYTHON_TYPES, READERS, Unfit, decimal_reader, print_decimal
from situ.lang.types.table import Types

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Plans: per event type, a compiled reader of its data that accepts what is plainly right.
#
# A plan reads JSON text into a generated struct and writes it again in canonical form, both in C. It accepts less than
# :mod:`situ.lang.types.json_codec` and never anything that one would not, with the same value; whatever it does not
# accept is judged there. So undeclared attributes, ``$type``, decimals written as numbers and times in unusual forms
# are no business of a plan, and what is wrong with a value neither.

DEEPEST = 60
"""Deeper types have no plan: the limit on the depth of events is counted elsewhere."""

_encode = msgspec.json.Encoder().encode

_PLAIN: dict[Primitive | Decimal, Any] = {
    BOOLEAN: bool,
    INT: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)],
    LONG: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)],
    DOUBLE: float,
    STRING: str,
}

Mend = Callable[[Any], bool]
"""Makes a value that was read canonical, in place, and says whether anything changed; :class:`Unfit` where the plan
cannot be sure that the value is one."""


class DataPlan:
    """Reads the data of one event type.

    ``decode`` gives the generated struct. ``careful`` says that writing this again may not be all: attributes may be
    null, have defaults or texts of a certain form; ``mend`` sees to that. ``quotes`` is how many quotes the text of
    every value has, if that is always the same: nothing may be missing or repeated.
    """

    __slots__ = ("_always", "careful", "decode", "mend", "quotes")

    def __init__(self, struct: Struct) -> None:
        shape, mend, always = _struct(struct)
        self.decode: Callable[[Any], Any] = msgspec.json.Decoder(shape).decode
        self.mend: Mend = mend or _nothing
        self.quotes = _quotes(struct)
        self._always = always
        self.careful = mend is not None

    def mended(self, value: Any, text: bytes) -> bytes:
        """The canonical text of a value, given the text it has as it was read."""
        if not self._always and b":null" not in text:
            return text
        return _encode(value) if self.mend(value) else text


def _nothing(value: Any) -> bool:
    return False


def data_plan_of(struct: Struct) -> DataPlan | None:
    """The plan of an event type; None if it is too deep for one."""
    return DataPlan(struct) if _depth(struct) <= DEEPEST else None


def _quotes(type: Type) -> int | None:
    """How many quotes the text of each value has that has none within its texts; None if that differs."""
    bare = plain(type)
    if isinstance(bare, Struct):
        below = [None if _may_lack(each) else _quotes(each.type) for each in bare.attributes]
        return None if None in below else sum(2 + (each or 0) for each in below)
    if isinstance(bare, ListOf):
        return None
    return 0 if bare in _PLAIN and bare != STRING else 2


def _depth(type: Type) -> int:
    bare = plain(type)
    if isinstance(bare, ListOf):
        return 1 + _depth(bare.element)
    if isinstance(bare, Struct):
        return 1 + max((_depth(each.type) for each in bare.attributes), default=0)
    return 0


_Shape = tuple[Any, Mend | None, bool]
"""A type to read, what is to be mended in its values if anything, and whether always or only where a null stands."""


@lru_cache(maxsize=1024)
def _struct(struct: Struct) -> _Shape:
    """Each struct is made once, whichever way it is reached: equal types have one class of values."""
    # Attributes may have any name, also one that Python reserves: fields are numbered and renamed.
    fields: list[tuple[str, Any, Any]] = []
    names: dict[str, str] = {}
    steps: list[_Step] = []
    always = False
    for number, attribute in enumerate(struct.attributes):
        field = field_of(number)
        names[field] = attribute.name
        bare = plain(attribute.type)
        deeper: Mend | None = None
        canonical: Canonical | None = None
        if isinstance(bare, Struct | ListOf):
            shape, deeper, inner = _below(bare)
            always = always or inner
        else:
            shape, canonical = _single(bare)
        may_lack = _may_lack(attribute)
        fields.append((field, shape | None | UnsetType, UNSET) if may_lack else (field, shape, msgspec.NODEFAULT))
        if may_lack or deeper is not None or canonical is not None:
            steps.append((field, deeper, canonical, _default(attribute)))
        always = always or canonical is not None or attribute.default is not None
    by_name = not by_place(struct)
    made = msgspec.defstruct(struct.name or "Data", fields, rename=names, kw_only=by_name, gc=False)
    return made, _mend_struct(tuple(steps)) if steps else None, always


def _below(type: Struct | ListOf) -> _Shape:
    if isinstance(type, Struct):
        return _struct(type)
    element = plain(type.element)
    if isinstance(element, Struct | ListOf):
        shape, mend, always = _below(element)
        return _list(shape), None if mend is None else _mend_elements(mend), always
    single, canonical = _single(element)
    return _list(single), None if canonical is None else _mend_texts(canonical), canonical is not None


def shape_of(struct: Struct) -> type[msgspec.Struct]:
    """The class of the values that are read. Canonical ones have UNSET where an attribute is missing."""
    made: type[msgspec.Struct] = _struct(struct)[0]
    return made


def field_of(number: int) -> str:
    """The field of the attribute with this number."""
    return f"a{number}"


def by_place(struct: Struct) -> bool:
    """Whether values are made of their attributes in order; otherwise of fields by name."""
    lacking = [_may_lack(each) for each in struct.attributes]
    return lacking == sorted(lacking)


def _may_lack(attribute: Attribute) -> bool:
    return attribute.optional or attribute.default is not None


Canonical = Callable[[str], str]
"""From a text of some form to the canonical text; :class:`Unfit` if it is none, or not plainly one."""

_Step = tuple[str, Mend | None, Canonical | None, Any]


def _list(element: Any) -> Any:
    return list[element | None]


def _default(attribute: Attribute) -> Any:
    """What is written where the attribute is missing."""
    return UNSET if attribute.default is None else encode(attribute.type, attribute.default)


def _mend_struct(steps: tuple[_Step, ...]) -> Mend:
    def mend(value: Any) -> bool:
        changed = False
        for field, deeper, canonical, default in steps:
            found = getattr(value, field)
            if found is UNSET or found is None:
                if found is not default:
                    setattr(value, field, default)
                    changed = True
            elif canonical is not None:
                text = canonical(found)
                if text != found:
                    setattr(value, field, text)
                    changed = True
            elif deeper is not None:
                changed |= deeper(found)
        return changed

    return mend


def _mend_elements(element: Mend) -> Mend:
    def mend(value: Any) -> bool:
        changed = False
        for item in value:
            if item is not None:
                changed |= element(item)
        return changed

    return mend


def _mend_texts(canonical: Canonical) -> Mend:
    def mend(value: Any) -> bool:
        before = list(value)
        value[:] = [None if item is None else canonical(item) for item in value]
        return bool(value != before)

    return mend


_MOST_REMEMBERED = 4096
_LONGEST_REMEMBERED = 64


def _single(type: Primitive | Decimal) -> tuple[Any, Canonical | None]:
    """How a single value is read, and what makes it canonical if it is a text of some form."""
    if type in _PLAIN:
        return _PLAIN[type], None
    if type == TIMESTAMP:
        return str, _canonical_instant
    read = decimal_reader(type) if isinstance(type, Decimal) else READERS[type]
    write = print_decimal if isinstance(type, Decimal) else PRINTERS[type]
    known: dict[str, str] = {}

    def canonical(text: str) -> str:
        found = known.get(text)
        if found is None:
            found = write(read(text))
            if len(known) < _MOST_REMEMBERED and len(text) <= _LONGEST_REMEMBERED:
                known[text] = found
        return found

    return str, canonical


def _canonical_instant(text: str) -> str:
    found = canonical_instant(text)
    if found is None:
        raise Unfit
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Reading the data of rows: only the attributes that filters look at, as the values they work with.
#
# The text of a row is canonical and its type known, so it is read in one go, in C, and trusted. The result equals what
# :mod:`situ.lang.types.json_codec` gives for these attributes. A row that was read into a struct has some of them at
# hand.

Data = Mapping[str, Any]

_NONE: Mapping[str, Any] = {}
IN_ROWS = {name: name for name in ("id", "source", "type", "time", "confidence")} | {"received": "recv"}
"""What filters see of the envelope → the column of a row that has it; the rest is among its extensions."""


def data_reader(event: Struct, names: Collection[str] | None, types: Types) -> Callable[[bytes], Data]:
    """A function from the text of an event's data to those of its attributes; None: all of them.

    What stands below is of any subtype that ``types`` has of what is declared there.
    """
    try:
        return msgspec.json.Decoder(dict_shape(event, names, types)).decode
    except NoShape:
        return _judged_reader(event, names, types)


def _judged_reader(event: Struct, names: Collection[str] | None, types: Types) -> Callable[[bytes], Data]:
    """Where subtypes disagree on an attribute, ``$type`` has to be looked at: slower, in Python."""
    wanted = tuple(each for each in event.attributes if names is None or each.name in names)
    judge = decoder(Struct("", wanted), types)

    def read(text: bytes) -> Data:
        decoded = judge(msgspec.json.decode(text))
        if decoded.problems:
            raise SituError(*decoded.problems)
        found: Data = decoded.value
        return found

    return read


def row_reader(event: Struct, names: Collection[str] | None, types: Types) -> Callable[[Row], Data]:
    """The same from a row: out of its struct, if that holds the very values, else out of its text."""
    decode = data_reader(event, names, types)
    wanted = [(place, each) for place, each in enumerate(event.attributes) if names is None or each.name in names]
    if not all(_is_at_hand(each.type) for _, each in wanted):
        return lambda row: decode(row.data)
    made = shape_of(event)
    fields = [(each.name, field_of(place)) for place, each in wanted]

    def read(row: Row) -> Data:
        value = row.value
        if type(value) is not made:
            return decode(row.data)
        return {name: found for name, field in fields if (found := getattr(value, field)) is not UNSET}

    return read


def _is_at_hand(type: Type) -> bool:
    """Whether structs have its values as filters work with them; others they have as texts."""
    bare = plain(type)
    return isinstance(bare, Primitive) and PYTHON_TYPES[bare] in {str, bool, int, float}


def read_extensions(row: Row) -> Mapping[str, Any]:
    """The subject and the foreign attributes of an event, all of them texts."""
    if not row.ext:
        return _NONE
    found: Mapping[str, Any] = msgspec.json.decode(f"{{{row.ext}}}")
    return found


def envelope_value(row: Row, name: str) -> Any:
    """One attribute of the envelope as the index has it: times in microseconds."""
    if name in IN_ROWS:
        return getattr(row, IN_ROWS[name])
    return read_extensions(row).get(name) if name in row.ext else None


def read_envelope(row: Row) -> Mapping[str, Any]:
    """What filters see of the envelope."""
    return {
        **read_extensions(row),
        "id": row.id,
        "source": row.source,
        "type": row.type,
        "time": instant_at(row.time),
        "confidence": row.confidence,
        "received": instant_at(row.recv),
    }
