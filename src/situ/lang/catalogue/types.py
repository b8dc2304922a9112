"""``INT1xx``, ``INT7xx``, ``E``, ``X``: types and units, values that do not fit them, envelopes, expressions."""

from __future__ import annotations

from situ.lang.problems import Severity, define

# ── types and units ───────────────────────────────────────────────────────────────────────────────

UNKNOWN_TYPE = define(
    "INT101",
    "unknown type",
    "There is no type `{name}`.",
    "Did you mean {nearest}?",
    "Declare it under `types:` or `events:` in a file of types/, or use a built-in one such as `double` or `string`.",
    name=str,
    nearest=tuple,
)
SUPERTYPE_CYCLE = define(
    "INT102",
    "supertype cycle",
    "`{name}` is a supertype of itself: {cycle}.",
    "Take one of these supertypes out.",
    name=str,
    cycle=str,
)
CONFLICTING_ATTRIBUTE = define(
    "INT103",
    "conflicting inherited attribute",
    "`{attribute}` of `{name}` is {found}, but {above} has {expected}.",
    "{remedy}",
    name=str,
    attribute=str,
    found=str,
    above=str,
    expected=str,
    remedy=str,
)
CONTAINS_ITSELF = define(
    "INT104",
    "struct contains itself",
    "`{name}` contains itself: {way}.",
    "Values are trees: hold an identifier of the other instead, or take this attribute out.",
    name=str,
    way=str,
)
UNKNOWN_UNIT = define(
    "INT105",
    "unknown unit",
    "There is no unit `{unit}`.",
    "Did you mean {nearest}?",
    "Physical units are written as `m`, `km/h`, `kg*m^2`, `°C`; declare others, as in `units: {{EUR: currency}}`.",
    unit=str,
    nearest=tuple,
)
DECLARED_TWICE = define(
    "INT106",
    "declared twice",
    "{what} `{name}` is declared twice; the first is at {first}.",
    "Rename one of the two or take it out.",
    what=str,
    name=str,
    first=str,
)
TOO_MANY_PATHS = define(
    "INT108",
    "too many paths in a type",
    "`{name}` has {found} places for a value, subtypes counted; at most {most} are possible.",
    "Split it, or declare attributes with types that have fewer subtypes.",
    name=str,
    found=str,
    most=int,
)
TYPE_SYNTAX = define(
    "INT109",
    "syntax of a type",
    "{found} is unexpected here; expected {expected}.",
    "Attributes are written `[optional] TYPE [UNIT]`, as in `double m`, `optional [Line]`, `decimal(18,2) EUR`; "
    "types `Name: {{…}}` or `Name(Super, Other): {{…}}`.",
    found=str,
    expected=str,
)
BAD_NAME = define(
    "INT110",
    "bad or reserved name",
    "`{name}` cannot be the name of {what}: {reason}.",
    "{remedy}",
    name=str,
    what=str,
    reason=str,
    remedy=str,
)
BAD_DEFAULT = define(
    "INT111",
    "default does not fit",
    "The default of `{attribute}` does not fit its type `{type}`.",
    "Write the default as it would be in an event.",
    attribute=str,
    type=str,
)
UNIT_NOT_POSSIBLE = define(
    "INT112",
    "unit not possible here",
    "A value of type `{type}` cannot have the unit `{unit}`.",
    "{remedy}",
    type=str,
    unit=str,
    remedy=str,
)
TYPE_LIMIT = define(
    "INT113",
    "types too large",
    "`{name}` has more than {most} {what}.",
    "Split or flatten it; no realistic data needs this many.",
    what=str,
    name=str,
    most=int,
)
BAD_SUPERTYPE = define(
    "INT114",
    "not possible as supertype",
    "`{name}` cannot have the supertype `{above}`: {reason}.",
    "A struct extends structs; a named primitive, `TagId(string): {{}}`, has one primitive as base and no attributes.",
    name=str,
    above=str,
    reason=str,
)
SCHEMA_UNSUPPORTED = define(
    "INT120",
    "JSON Schema without a corresponding type",
    "No type corresponds to this: {reason}.",
    "{remedy}",
    "Describe the data with objects, arrays, single types and references inside the document, then import again.",
    reason=str,
    remedy=str,
)
SCHEMA_REFERENCE = define(
    "INT121",
    "reference in a JSON Schema that leads nowhere",
    "The reference `{reference}` leads nowhere.",
    "Did you mean {nearest}?",
    "References point to definitions of the same document, as in `#/$defs/Name`.",
    reference=str,
    nearest=tuple,
)
SCHEMA_NOT_CHECKED = define(
    "INT122",
    "JSON Schema rules that types do not have",
    "Types do not check {keywords} here.",
    "Events that break these rules will be accepted; filter them in a subscription or policy.",
    severity=Severity.WARNING,
    keywords=str,
)

# ── values of declared types ──────────────────────────────────────────────────────────────────────

UNKNOWN_EVENT_TYPE = define(
    "INT701",
    "unknown event type",
    "There is no event type `{type}`{where}.",
    "Did you mean {nearest}?",
    "{remedy}",
    type=str,
    where=str,
    nearest=tuple,
    remedy=str,
)
NOT_EXECUTED = define(
    "INT711",
    "function that is not executed",
    "`{type}` cannot be converted in the context `{context}`: `{function}` {what}.",
    "Only deliveries can wait for what is not remembered yet: say `missing: error` or `missing: null`.",
    type=str,
    context=str,
    function=str,
    what=str,
)
UNKNOWN_EVENT_CONTEXT = define(
    "INT702",
    "unknown context",
    "The event is in the context `{context}`, which does not exist.",
    "Declare it in a file of contexts/, or have the client use another.",
    context=str,
)
VALUE_UNFIT = define(
    "INT703",
    "value does not fit its declared type",
    "`{path}` is {found}, expected `{expected}`.",
    "{remedy}",
    "Send a value of the declared type, or change the declaration.",
    path=str,
    found=str,
    expected=str,
    remedy=str,
)
FUNCTION_FAILED = define(
    "INT704",
    "function failed",
    "`{path}` cannot be converted: `{function}` failed, {reason}.",
    "The rule is `{rule}` of the context `{context}`; the value is one that the function does not take.",
    "The value is one that has no counterpart there, in the context `{context}`.",
    path=str,
    function=str,
    reason=str,
    rule=str,
    context=str,
)
NO_ROW = define(
    "INT705",
    "lookup found nothing",
    "`{path}` cannot be converted: `{function}` finds no `{name}` in the table `{source}` with {key}.",
    "Add the row to the source, or say `missing: null` or `missing: {{default: …}}`; the context is `{context}`.",
    path=str,
    function=str,
    name=str,
    source=str,
    key=str,
    context=str,
)
NO_REFERENCE = define(
    "INT706",
    "nothing remembered",
    "`{path}` cannot be converted: `{function}` remembers nothing as `{name}` for {key}{waited}.",
    "Have `{event}` published before it, or say `missing: null` or `missing: hold 5 s`; the context is `{context}`.",
    path=str,
    function=str,
    name=str,
    key=str,
    waited=str,
    event=str,
    context=str,
)
REQUIRED_MISSING = define(
    "INT707",
    "required attribute missing",
    "`{path}` of type `{type}` is missing or null.",
    "Send it, or declare it `optional` or with a default.",
    path=str,
    type=str,
)
EXTRA_ATTRIBUTE = define(
    "INT708",
    "undeclared attribute",
    "`{path}` is not declared in `{type}`.",
    "Did you mean {nearest}?",
    "Declare it, leave it out, or set `defaults: {{extra: drop}}` in situ.yaml.",
    path=str,
    type=str,
    nearest=tuple,
)
NOT_A_SUBTYPE = define(
    "INT709",
    "$type is unknown or no subtype",
    "`{path}` is {found}, which is no subtype of `{type}`.",
    "Did you mean {nearest}?",
    "Name a declared subtype, or leave `$type` out.",
    path=str,
    found=str,
    type=str,
    nearest=tuple,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``E``: what arrives as an event and is none.

NOT_JSON = define(
    "E701",
    "not JSON",
    "This is not JSON{place}: {reason}.",
    "Events are JSON in UTF-8; text stands in double quotes, numbers are finite, each key stands once.",
    reason=str,
    place=str,
)
NO_CLOUDEVENT = define(
    "E702",
    "no CloudEvent",
    "This is no CloudEvent: `{attribute}` {reason}.",
    "{remedy}",
    "An event has specversion, id, source and type, and usually time and data, as CloudEvents 1.0 says.",
    attribute=str,
    reason=str,
    remedy=str,
)
EVENT_NOT_CARRIED = define(
    "E706",
    "not carried",
    "Situ does not carry this event: `{attribute}` {reason}.",
    "{remedy}",
    attribute=str,
    reason=str,
    remedy=str,
)
FROM_THE_FUTURE = define(
    "E703",
    "from the future",
    "The event says {time}, but was received at {received}, more than {ahead} before that.",
    "Set the producer's clock, or allow more under `limits: {{ahead: …}}` in situ.yaml.",
    time=str,
    received=str,
    ahead=str,
)
EVENT_LIMIT = define(
    "E704",
    "event too large",
    "This is too large: more than {most} {what}.",
    "Split it, or send a reference to large data instead of the data; sizes are set under `limits:` in situ.yaml.",
    what=str,
    most=int,
)
EVENT_FAILED = define(
    "E705",
    "event that a stage fails on",
    "Stage `{stage}` failed unexpectedly on this event: {what}. The log of the run has it as `{id}`.",
    "This is a bug in Situ: report it with that entry of the log. All other events continue. When it is fixed, "
    "`situ dead-letters retry` publishes the event again.",
    stage=str,
    what=str,
    id=str,
)
RECORD_NO_EVENT = define(
    "E760",
    "record that is no event",
    "This record of topic `{topic}` is no event: {reason}.",
    "{remedy}",
    topic=str,
    reason=str,
    remedy=str,
)
RECORD_NOT_OF_SCHEMA = define(
    "E761",
    "record that does not fit its schema",
    "This record of topic `{topic}` cannot be read as {format} by schema {schema}: {reason}.",
    "Have its producer write it by the schema whose id it carries.",
    topic=str,
    format=str,
    schema=int,
    reason=str,
)
RECORD_WITHOUT_SCHEMA = define(
    "E762",
    "record of an unknown schema",
    "This record of topic `{topic}` has schema {schema}, which is of no use: {reason}.",
    "Register the schema that it was written by, as {format}.",
    topic=str,
    format=str,
    schema=int,
    reason=str,
)
RECORD_LACKS = define(
    "E763",
    "record without what its declaration names",
    "This record of topic `{topic}` gives no `{key}` of the event: {reason}.",
    "Have its producer write it, or take `{key}` out of the declaration of the client.",
    topic=str,
    key=str,
    reason=str,
)
EVENT_NOT_WRITTEN = define(
    "E764",
    "event that does not fit the format of a topic",
    "This event cannot be written to topic `{topic}` as {format}: {reason}.",
    "Choose another format for the topic, or correct what publishes the event.",
    topic=str,
    format=str,
    reason=str,
)
FRAME_EVENT_UNFIT = define(
    "E751",
    "event of another kind than its DataFrame",
    "This is {found}; its DataFrame has {expected}.",
    "Decode each type by itself; rows of other types are left out with a `where` before `decode`.",
    found=str,
    expected=str,
)
ROW_FAILED = define(
    "E752",
    "row that Spark could not work on",
    "Stage `{stage}` cannot make {target} of this row.",
    "`Project.dead_letters` says which value is to blame.",
    stage=str,
    target=str,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``X``: what is wrong inside an expression, and what an expression meets in an event.

SYNTAX = define(
    "X101",
    "syntax of an expression",
    "This is not an expression: {found} is unexpected here.",
    "Expressions are written as in SQL: `at.x < 5 m AND name LIKE 'a%'`; text stands in single quotes.",
    found=str,
)
NOT_IN_LANGUAGE = define(
    "X107",
    "not allowed here",
    "{found} is not allowed here.",
    "Only the operators and functions of the expression language can be used: see the reference of functions.",
    found=str,
)
TOO_LARGE = define(
    "X108",
    "expression too large",
    "The expression is too large: more than {limit} {what}.",
    "Split it into several, or raise the limit under `limits:` in situ.yaml.",
    what=str,
    limit=int,
)
UNKNOWN_NAME = define(
    "X102",
    "unknown name",
    "There is no {kind} `{name}` here.",
    "Did you mean {nearest}?",
    "{instead}",
    kind=str,
    name=str,
    nearest=tuple,
    instead=str,
)
WRONG_TYPE = define(
    "X103",
    "types do not fit",
    "{what}: found {found}, expected {expected}.",
    "{remedy}",
    what=str,
    found=str,
    expected=str,
    remedy=str,
)
WRONG_UNIT = define(
    "X104",
    "units do not fit",
    "{what}: {found} and {expected} do not go together.",
    "{remedy}",
    what=str,
    found=str,
    expected=str,
    remedy=str,
)
ALWAYS_FAILS = define(
    "X105",
    "always fails",
    "This fails for every event: {reason}.",
    "A value that cannot be computed would make a dead letter of every event; correct the constant.",
    reason=str,
)
WRONG_CALL = define(
    "X106",
    "function called wrongly",
    "`{name}` cannot be called like this: {reason}.",
    "It is called as {forms}.",
    "See the reference of functions.",
    name=str,
    reason=str,
    forms=tuple,
)
