"""Plain records: those of a topic that Spark SQL alone reads exactly as the stage decode does.

Spark's reader of JSON is lenient where engines are strict: numbers as texts, keys that stand twice, 1.0 for a whole
number. So what is read by Spark alone must be plain first: one object on one line, only declared attributes, texts
without escapes, numbers in their usual form and not too long. One regular expression says so, made of the event type
and written so that Java and Python take it for the same; `PlainRecords.takes` is it in Python, `PlainRecords.condition`
in Spark SQL. What is plain may still be no event, because something is missing or stands twice: that is `fails`, and
such a record is a dead letter of the engine.

`json_text` is the way back: a struct as text, byte for byte as engines write it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any
from zlib import crc32

import msgspec

from situ.event.instants import read_instant
from situ.event.message import TOPICS
from situ.lang.expr.emit.spark import spark_literal
from situ.lang.expr.overload import spark_name, spark_text
from situ.lang.types.json_codec import TYPE_KEY, encode
from situ.lang.types.layout import columns, spark_type
from situ.lang.types.model import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Attribute,
    ListOf,
    Struct,
    Type,
    plain,
)
from situ.lang.types.table import Types
from situ.routing.topics import TopicSource

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The regular expression. Only what Java and Python read alike is in it: no \d, \s or $, no named groups. Of each choice
# the first character decides, so nothing is tried twice. Java goes a call deeper for each member and each item of a
# list, which is why these are counted.

_LONGEST = 65_536
"""Bytes of a record; also half of what an event may have, since more comes to it."""
_MOST_ITEMS = 100
_TEXT = r'"[^"\\\x00-\x1f]*"'
_YEAR = r"(?:19|20)[0-9][0-9]"
_DAY = rf"{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_INSTANT = rf'"{_DAY}T{_CLOCK}Z"'
_WHOLE = {INT: "[0-9]{0,8}", LONG: "[0-9]{0,17}"}
_PATTERNS = {
    BOOLEAN: r"(?:true|false)",
    INT: rf"(?:0|-?[1-9]{_WHOLE[INT]})",
    LONG: rf"(?:0|-?[1-9]{_WHOLE[LONG]})",
    # No zero with a sign, no exponent: so many digits are read alike everywhere.
    DOUBLE: r"(?:-?[1-9][0-9]{0,14}(?:\.[0-9]{1,20})?|0(?:\.[0-9]{1,20})?|-0\.[0-9]{0,19}[1-9])",
    STRING: _TEXT,
    DATE: rf'"{_DAY}"',
    TIMESTAMP: _INSTANT,
}
_MILLIS = r"(?:0|[1-9][0-9]{0,12})"
_PRINTABLE = r'"[!#-\[\]-~]+"'
_WORD = r'"(?=[0-9]*[!#-/:-\[\]-~])[!#-\[\]-~]+"'
"""Printable, and not a number: of an attribute that nobody declared its quotes tell whether it is one."""
_KEY = re.compile(r'[^"\\\x00-\x1f]*')
_NO_KEY = r'["\\\x00-\x1f]'


class NotPlain(Exception):
    """No record of this client is plain; the reason is for people."""


def unfit_type(type: Type, types: Types, path: str = "") -> str | None:
    """Why Spark SQL does not read or write values of a type as engines do; None if it does."""
    bare = plain(type)
    match bare:
        case Struct():
            if path and bare.name and len(types.subtypes(bare)) > 1:
                return f"`{path}` may be of a subtype of `{bare}`"
            found = (unfit_type(each.type, types, f"{path}.{each.name}".lstrip(".")) for each in bare.attributes)
            return next((each for each in found if each is not None), None)
        case ListOf(element=element):
            return unfit_type(element, types, f"{path}[]")
        case _ if bare in _PATTERNS:
            return None
        case _:
            return f"`{path}` is a {bare}"


def _has_below(type: Type, name: str) -> bool:
    bare = plain(type)
    if isinstance(bare, ListOf):
        return _has_below(bare.element, name)
    if isinstance(bare, Struct):
        return any(each.name == name or _has_below(each.type, name) for each in bare.attributes)
    return False


def _pattern(type: Type) -> str:
    bare = plain(type)
    match bare:
        case Struct(attributes=attributes):
            return _object((each.name, _pattern(each.type)) for each in attributes)
        case ListOf(element=element):
            item = rf"{_pattern(element)} *(?:, *(?=[^\] ])|(?=\]))"
            return rf"\[ *(?:{item}){{0,{_MOST_ITEMS}}}\]"
        case _:
            return _PATTERNS[bare]  # type: ignore[index]  # `unfit_type` has looked


def _object(members: Iterable[tuple[str, str]]) -> str:
    # A key that would have to be escaped is in no plain record.
    known = [(name, value) for name, value in members if re.fullmatch(r'[^"\\\x00-\x1f]+', name)]
    several = "|".join(f'"{re.sub(_MEANS, _escaped, name)}" *: *{value}' for name, value in known)
    if not known:
        return r"\{ *\}"
    return rf'\{{ *(?:(?:{several}) *(?:, *(?=")|(?=\}}))){{0,{len(known)}}}\}}'


_MEANS = re.compile(r"[\\.^$|?*+()\[\]{}&~#-]")


def _escaped(found: re.Match[str]) -> str:
    return "\\" + found[0]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Records of one client as events. Columns of a record are called as Spark's connector calls them; `PARSED` is the
# record as it was read, with every member as it stands.

PARSED = "_situ_parsed"
_TEXTUAL = (STRING, TIMESTAMP, DATE)


class PlainRecords:
    """The plain records of a client whose records are the data of events of one type."""

    def __init__(
        self, client: str, source: TopicSource, event: Struct, types: Types, *, ahead: int, size: int, extra: str
    ) -> None:
        """``ahead``: microseconds that an event may be later than its record; ``size``: bytes of an event."""
        self._client, self._source, self._event, self._types = client, source, event, types
        if (reason := unfit_type(event, types)) is not None:
            raise NotPlain(reason)
        self._ahead = ahead
        self._longest = min(_LONGEST, size // 2)
        self._members = {each.name: _pattern(each.type) for each in event.attributes}
        self._raw = {each.name: _raw_type(each.type) for each in event.attributes}
        self._loose: dict[str, str] = {}
        """Members that nobody declared and something of the envelope is read from, with what says that it is a text."""
        for key, name in (("time", source.time), ("id", source.id), ("source", source.source)):
            if name:
                self._name(key, name, extra)
        self._pattern = f" *{_object(self._members.items())} *"
        self._matches = re.compile(self._pattern).fullmatch
        # Some record has the time; no two members of a plain one that is an event have one name.
        time = re.compile(rf'"{re.escape(source.time)}" *: *("[^"]*"|[0-9]+)') if source.time else None
        self._time = time.search if time is not None else None

    def _name(self, key: str, name: str, extra: str) -> None:
        """Restrict a member that ``time``, ``id`` or ``source`` names to what can be read as such."""
        attribute = self._event.attribute(name)
        if [self._source.time, self._source.id, self._source.source].count(name) > 1:
            raise NotPlain(f"`{name}` is named twice")
        if any(_has_below(each.type, name) for each in self._event.attributes):
            raise NotPlain(f"`{name}` is also an attribute further down")
        bare = None if attribute is None else plain(attribute.type)
        if attribute is None and extra == "keep":
            raise NotPlain(f"`{name}` is no attribute of `{self._event}` and is kept all the same")
        fitting: dict[Any, str] = {
            "time": {
                STRING: _INSTANT,
                TIMESTAMP: _INSTANT,
                INT: _PATTERNS[INT],
                LONG: _MILLIS,
                None: f"(?:{_MILLIS}|{_INSTANT})",
            },
            "id": {
                STRING: _PRINTABLE,
                INT: _PATTERNS[INT],
                LONG: _PATTERNS[LONG],
                None: f"(?:{_PATTERNS[LONG]}|{_WORD})",
            },
            "source": {STRING: _PRINTABLE, None: _PRINTABLE},
        }[key]
        if key == "time" and bare == INT:
            fitting[INT] = r"(?:0|[1-9][0-9]{0,8})"
        if bare not in fitting:
            raise NotPlain(f"`{name}`, which is its {key}, is a {bare}")
        self._members[name] = fitting[bare]
        if attribute is None:
            self._raw[name] = "STRING"
            self._loose[name] = "TRUE" if key == "source" else f"NOT {self._raw_field(name)} RLIKE '^-?[0-9]+\\\\z'"

    # ── in Python ──

    def takes(self, key: bytes | None, value: bytes | None, time: int) -> bool:
        """Whether a record is plain; ``time`` in milliseconds, 0 if it has none."""
        if value is None or len(value) > self._longest or time <= 0:
            return False
        try:
            text = value.decode()
            if self._source.key and key is not None and not _KEY.fullmatch(key.decode()):
                return False
        except UnicodeDecodeError:
            return False
        return self._matches(text) is not None and self._is_in_time(text, time)

    def _is_in_time(self, text: str, time: int) -> bool:
        found = self._time(text) if self._time is not None else None
        if found is None:
            return True
        said = found[1]
        at = read_instant(said[1:-1]) if said.startswith('"') else int(said) * 1000
        return at is not None and at <= time * 1000 + self._ahead

    # ── in Spark SQL ──

    @property
    def condition(self) -> str:
        """Whether a record is plain, over the columns ``key``, ``value`` and ``timestamp``."""
        text = "CAST(value AS STRING)"
        parts = [
            f"octet_length(value) <= {self._longest}",
            "unix_millis(timestamp) > 0",
            f"is_valid_utf8({text})",
            f"{text} RLIKE {spark_text(f'^(?:{self._pattern})' + chr(92) + 'z')}",
        ]
        if self._source.key:
            key = "CAST(key AS STRING)"
            parts.append(f"(key IS NULL OR (is_valid_utf8({key}) AND NOT {key} RLIKE {spark_text(_NO_KEY)}))")
        return f"coalesce({' AND '.join(parts)}, FALSE)"

    @property
    def parsed(self) -> str:
        """The column :data:`PARSED` of a plain record."""
        fields = ", ".join(f"{spark_name(name)} {type}" for name, type in self._raw.items())
        return f"from_json(CAST(value AS STRING), {spark_text(fields)})"

    @property
    def data(self) -> str:
        """The data of the event, in the layout of its type."""
        names = count()
        return _struct_value(PARSED, self._event, self._types, names, self._given())

    def _given(self) -> dict[str, str]:
        """What stands elsewhere than in the member of its name: the key of the record."""
        key = self._source.key
        return {key: f"coalesce({self._raw_field(key)}, CAST(key AS STRING))"} if key else {}

    @property
    def fails(self) -> str:
        """Whether a plain record is no event; over :data:`PARSED`, and ``data``."""
        quotes = "octet_length(value) - octet_length(replace(CAST(value AS STRING), '\"', ''))"
        parts = [f"({PARSED} IS NULL OR {self.time} IS NULL OR {self._is_late} OR {quotes} <> {self._quotes()})"]
        parts += [f"{PARSED}.{spark_name(name)} IS NULL" for name in (self._source.id, self._source.source) if name]
        parts += _missing("data", self._event, self._types, count())
        parts += _unreadable(PARSED, "data", self._event, self._types, count())
        return f"coalesce({' OR '.join(parts)}, TRUE)"

    @property
    def _is_late(self) -> str:
        # As in Python: a record that says a later time is not plain.
        if not self._source.time:
            return "FALSE"
        return f"unix_micros({self.time}) > unix_millis(timestamp) * 1000 + {self._ahead}"

    def _quotes(self) -> str:
        """How many quotes the text has if no member stands twice."""
        names = count()
        parts = [_quotes_of(self._raw_field(each.name), each.type, names) for each in self._event.attributes]
        for name, is_text in self._loose.items():
            field = self._raw_field(name)
            parts.append(f"CASE WHEN {field} IS NULL THEN 0 WHEN {is_text} THEN 4 ELSE 2 END")
        return f"({' + '.join(parts) or '0'})"

    def _raw_field(self, name: str) -> str:
        return f"{PARSED}.{spark_name(name)}"

    # ── the envelope ──

    @property
    def time(self) -> str:
        """When the event was; null where the record does not say it."""
        name = self._source.time
        if not name:
            return "timestamp"
        field, attribute = self._raw_field(name), self._event.attribute(name)
        millis = f"timestamp_millis(CAST({field} AS BIGINT))"
        text = f"try_cast({field} AS TIMESTAMP)"
        if attribute is None:
            return f"CASE WHEN {field} RLIKE '^[0-9]+\\\\z' THEN {millis.replace('CAST(', 'try_cast(')} ELSE {text} END"
        return millis if plain(attribute.type) in (INT, LONG) else text

    @property
    def incarnation(self) -> str:
        """That of the partition, as :func:`situ.kafka.records.incarnation_of` has it."""
        arms = " ".join(
            f"WHEN {spark_text(topic)} THEN {TOPICS | crc32(topic.encode()) << 16}L" for topic in self._source.topics
        )
        return f"(CASE topic {arms} END | CAST(partition AS BIGINT))"

    @property
    def seq(self) -> str:
        return "(offset + 1)"

    @property
    def id(self) -> str:
        name = self._source.id
        return f"CAST({self._raw_field(name)} AS STRING)" if name else self.counted_id

    @property
    def counted_id(self) -> str:
        """The id of an event that says none."""
        return f"concat({self.incarnation}, '-', {self.seq})"

    @property
    def source(self) -> str:
        """The source, put behind the client's name if it is not there."""
        name, client = self._source.source, spark_text(self._client)
        if not name:
            return client
        said = f"CAST({self._raw_field(name)} AS STRING)"
        own = f"{said} = {client} OR startswith({said}, {spark_text(self._client + '/')})"
        return f"CASE WHEN {own} THEN {said} ELSE concat({spark_text(self._client + '/')}, {said}) END"

    @property
    def situ_key(self) -> str:
        """The key of the event, which says where its record stands."""
        return f"concat({spark_text(self._client + '.')}, {self.incarnation}, '.', {self.seq})"

    def sealed_key(self, token: str) -> str:
        """The same with the token of its numbers in their place."""
        return f"concat({spark_text(self._client + '.')}, {token})"


def _raw_type(type: Type) -> str:
    """As what a member is read: what is a text of some form, as a text."""
    bare = plain(type)
    match bare:
        case Struct(attributes=attributes):
            fields = (f"{spark_name(each.name)}: {_raw_type(each.type)}" for each in attributes)
            return f"STRUCT<{', '.join(fields)}>"
        case ListOf(element=element):
            return f"ARRAY<{_raw_type(element)}>"
        case _ if bare in _TEXTUAL:
            return "STRING"
        case _:
            return spark_type(bare, Types(types={}))


def _struct_value(
    text: str, struct: Struct, types: Types, names: Iterator[int], given: dict[str, str] | None = None
) -> str:
    parts = []
    for column in columns(struct, types):
        attribute = struct.attribute(column.attribute)
        if attribute is None or column.name != attribute.name or column.name == TYPE_KEY:
            value = f"CAST(NULL AS {spark_type(column.type, types)})"
        else:
            read = (given or {}).get(attribute.name) or f"{text}.{spark_name(attribute.name)}"
            value = _filled(_value(read, attribute.type, types, names), attribute, types)
        parts.append(f"{spark_text(column.name)}, {value}")
    return f"CASE WHEN {text} IS NOT NULL THEN named_struct({', '.join(parts)}) END"


def _value(text: str, type: Type, types: Types, names: Iterator[int]) -> str:
    bare = plain(type)
    match bare:
        case Struct():
            return _struct_value(text, bare, types, names)
        case ListOf(element=element):
            inner = plain(element)
            if not isinstance(inner, Struct | ListOf) and inner not in (TIMESTAMP, DATE):
                return text
            item = f"_situ_p{next(names)}"
            return f"transform({text}, {item} -> {_value(item, element, types, names)})"
        case _ if bare in (TIMESTAMP, DATE):
            return f"try_cast({text} AS {'TIMESTAMP' if bare == TIMESTAMP else 'DATE'})"
        case _:
            return text


def _filled(text: str, attribute: Attribute, types: Types) -> str:
    if attribute.default is None:
        return text
    if not isinstance(attribute.default, dict | list):
        return f"coalesce({text}, {spark_literal(attribute.default, attribute.type)})"
    written = msgspec.json.encode(encode(attribute.type, attribute.default, types)).decode()
    default = f"from_json({spark_text(written)}, {spark_text(spark_type(attribute.type, types))})"
    return f"coalesce({text}, {default})"


def _missing(text: str, struct: Struct, types: Types, names: Iterator[int]) -> Iterator[str]:
    """What a value lacks that it must have."""
    for each in struct.attributes:
        place, bare = f"{text}.{spark_name(each.name)}", plain(each.type)
        if not each.optional and each.default is None:
            yield f"{place} IS NULL"
        if isinstance(bare, ListOf) and isinstance(element := plain(bare.element), Struct):
            item = f"_situ_p{next(names)}"
            inner = " OR ".join(_missing(item, element, types, names))
            if inner:
                yield f"coalesce(exists({place}, {item} -> {inner}), FALSE)"
        elif isinstance(bare, Struct):
            inner = " OR ".join(_missing(place, bare, types, names))
            if inner:
                yield f"({place} IS NOT NULL AND ({inner}))"


def _unreadable(raw: str, text: str, struct: Struct, types: Types, names: Iterator[int]) -> Iterator[str]:
    """Days that are not in the calendar, which only reading tells."""
    for each in struct.attributes:
        place, made, bare = f"{raw}.{spark_name(each.name)}", f"{text}.{spark_name(each.name)}", plain(each.type)
        if bare in (TIMESTAMP, DATE):
            yield f"({place} IS NOT NULL AND {made} IS NULL)"
            if each.default is not None:
                yield f"({place} IS NOT NULL AND {_value(place, each.type, types, names)} IS NULL)"
        elif isinstance(bare, Struct):
            inner = " OR ".join(_unreadable(place, made, bare, types, names))
            if inner:
                yield f"({place} IS NOT NULL AND ({inner}))"
        elif isinstance(bare, ListOf) and _is_dated(bare):
            yield f"coalesce(to_json(named_struct('v', {made})) RLIKE '[:,\\\\[]null', FALSE)"


def _is_dated(type: Type) -> bool:
    bare = plain(type)
    if isinstance(bare, Struct):
        return any(_is_dated(each.type) for each in bare.attributes)
    return _is_dated(bare.element) if isinstance(bare, ListOf) else bare in (TIMESTAMP, DATE)


def _quotes_of(text: str, type: Type, names: Iterator[int]) -> str:
    """The quotes of a member with its key; none if it is not there."""
    return f"CASE WHEN {text} IS NULL THEN 0 ELSE 2 + {_quotes_in(text, type, names)} END"


def _quotes_in(text: str, type: Type, names: Iterator[int]) -> str:
    bare = plain(type)
    match bare:
        case Struct(attributes=attributes):
            parts = [_quotes_of(f"{text}.{spark_name(each.name)}", each.type, names) for each in attributes]
            return f"({' + '.join(parts) or '0'})"
        case ListOf(element=element):
            inner = plain(element)
            if not isinstance(inner, Struct | ListOf):
                return f"{2 if inner in _TEXTUAL else 0} * size({text})"
            item, total = f"_situ_p{next(names)}", f"_situ_p{next(names)}"
            return f"aggregate({text}, 0, ({total}, {item}) -> {total} + {_quotes_in(item, element, names)})"
        case _:
            return "2" if bare in _TEXTUAL else "0"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Values as JSON, as msgspec writes them: no blanks, attributes in declared order, those that are null left out.


def json_text(text: str, struct: Struct, names: Iterator[int] | None = None) -> str:
    """A struct that is not null, as JSON."""
    names = count() if names is None else names
    members = []
    for each in struct.attributes:
        place = f"{text}.{spark_name(each.name)}"
        key = spark_text("," + msgspec.json.encode(each.name).decode() + ":")
        members.append(f"CASE WHEN {place} IS NULL THEN '' ELSE concat({key}, {_json(place, each.type, names)}) END")
    return f"concat('{{', substring(concat({', '.join(members)}), 2), '}}')" if members else "'{}'"


def _json(text: str, type: Type, names: Iterator[int]) -> str:
    bare = plain(type)
    match bare:
        case Struct():
            return json_text(text, bare, names)
        case ListOf(element=element):
            item = f"_situ_j{next(names)}"
            each = f"CASE WHEN {item} IS NULL THEN 'null' ELSE {_json(item, element, names)} END"
            return f"concat('[', array_join(transform({text}, {item} -> {each}), ','), ']')"
        case _ if bare == STRING:
            return string_text(text)
        case _ if bare == DOUBLE:
            return double_text(text)
        case _ if bare == TIMESTAMP:
            return f"concat('\"', {instant_text(text)}, '\"')"
        case _ if bare == DATE:
            return f"concat('\"', CAST({text} AS STRING), '\"')"
        case _:
            return f"CAST({text} AS STRING)"


def string_text(text: str) -> str:
    """A text in quotes. Only what a conversion made may have something to escape; letters of codes are small then."""
    inner = "substring(_situ_e, 6, length(_situ_e) - 6)"
    for code in (0x0B, 0x0E, 0x0F, *range(0x1A, 0x20)):
        inner = f"replace({inner}, {spark_text(f'{chr(92)}u{code:04X}')}, {spark_text(f'{chr(92)}u{code:04x}')})"
    escaped = _once(f"to_json(named_struct('v', {text}))", "_situ_e", inner)
    return f"CASE WHEN {text} RLIKE {spark_text(_NO_KEY)} THEN {escaped} ELSE concat('\"', {text}, '\"') END"


def _once(value: str, name: str, body: str) -> str:
    """What is made of a value that is worked out once. Spark does not compile a function of elements: what stands in it
    does not count for the size of Java's methods, of which the text of an event would otherwise be too much."""
    return f"element_at(transform(array({value}), {name} -> {body}), 1)"


def instant_text(text: str) -> str:
    """An instant as :func:`situ.event.instants.print_instant` has it."""
    second = f"date_format({text}, 'yyyy-MM-dd\\'T\\'HH:mm:ss')"
    micros = f"pmod(unix_micros({text}), 1000000)"
    fraction = f"concat('.', lpad(CAST({micros} AS STRING), 6, '0'), 'Z')"
    return f"concat({second}, CASE WHEN {micros} = 0 THEN 'Z' ELSE {fraction} END)"


def double_text(text: str) -> str:
    """The shortest text that is read as the same number.

    Java finds it from version 19 on. So digits are tried one after the other, of which 17 are always enough.
    """
    short, middle, long = (f"format_string('%.{digits}e', _situ_v)" for digits in (14, 15, 16))
    digits = (
        f"CASE WHEN try_cast({short} AS DOUBLE) = _situ_v THEN {short}"
        f" WHEN try_cast({middle} AS DOUBLE) = _situ_v THEN {middle} ELSE {long} END"
    )
    plain = _trimmed("CAST(try_cast(_situ_d AS DECIMAL(38,22)) AS STRING)")
    mantissa = "TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM substring_index(_situ_d, 'e', 1)))"
    exponent = "try_cast(substring_index(_situ_d, 'e', -1) AS INT)"
    written = f"CASE WHEN {exponent} BETWEEN -5 AND 15 THEN {plain} ELSE concat({mantissa}, 'e', {exponent}) END"
    return (
        f"CASE WHEN abs({text}) < 1e15D AND {text} <> 0 AND {text} = floor({text})"
        f" THEN concat(CAST(try_cast({text} AS BIGINT) AS STRING), '.0')"
        f" WHEN {text} = 0 THEN CAST({text} AS STRING)"
        f" ELSE {_once(_once(text, '_situ_v', digits), '_situ_d', written)} END"
    )


def _trimmed(text: str) -> str:
    trimmed = f"TRIM(TRAILING '0' FROM {text})"
    return f"CASE WHEN endswith({trimmed}, '.') THEN concat({trimmed}, '0') ELSE {trimmed} END"
