"""``INT2xx`` to ``INT5xx``: contexts, their patterns and rules, functions of a project, and rules between contexts."""

from __future__ import annotations

from situ.lang.problems import Severity, define

# ── patterns and rules of contexts ────────────────────────────────────────────────────────────────

ATTRIBUTE_AND_TYPE = define(
    "INT107",
    "name of both an attribute and a type",
    "`{name}` is an attribute of `{left}` and also a type; the attribute is used.",
    "Write `:{name}` for the type, `{name}({type})` for the attribute.",
    severity=Severity.WARNING,
    name=str,
    left=str,
    type=str,
)
PATTERN_SYNTAX = define(
    "INT201",
    "syntax of a pattern",
    "{found} is unexpected in a pattern here; expected {expected}.",
    "Patterns are written `Type`, `Event.attribute`, `Event.attribute(Type)`, `Event.list[].Type`, `[Type]`.",
    found=str,
    expected=str,
)
PATTERN_UNKNOWN = define(
    "INT202",
    "unknown type or attribute in a pattern",
    "There is no {what} `{name}`{where}.",
    "Did you mean {nearest}?",
    "A pattern begins with a type, followed by attributes of the type to the left, or types inside it.",
    what=str,
    name=str,
    where=str,
    nearest=tuple,
)
QUALIFIER_IMPOSSIBLE = define(
    "INT203",
    "qualifier that cannot occur",
    "`{qualifier}` cannot occur here: {reason}.",
    "{remedy}",
    qualifier=str,
    reason=str,
    remedy=str,
)
QUALIFIER_NO_SUBTYPE = define(
    "INT204",
    "type of an attribute qualifier that is no subtype",
    "`{type}` is no subtype of `{declared}`, which `{left}` declares for `{attribute}`.",
    "Possible types are {possible}; `{attribute}` alone means any of them.",
    type=str,
    declared=str,
    left=str,
    attribute=str,
    possible=tuple,
)
RULE_MATCHES_NOTHING = define(
    "INT205",
    "rule that matches nothing",
    "The rule `{rule}` matches no place of any event type ({direction}).",
    "{remedy}",
    severity=Severity.WARNING,
    rule=str,
    direction=str,
    remedy=str,
)
RULE_NEVER_APPLIES = define(
    "INT206",
    "rule that never applies",
    "The rule `{rule}` matches, but is never applied: {reason}.",
    "Take it out, or make its pattern more specific than the other.",
    severity=Severity.WARNING,
    rule=str,
    reason=str,
)
PATTERN_TWICE = define(
    "INT207",
    "identical patterns in one context",
    "The rule `{rule}` has no effect: {later}, declared later in the same context, has the identical pattern.",
    "Take one of the two out; the last one declared is applied.",
    severity=Severity.WARNING,
    rule=str,
    later=str,
)
LOSES_TO_SUBTYPE = define(
    "INT211",
    "rule that loses to one about a subtype",
    "The rule `{rule}` is not applied at {places}: `{winner}` is about a subtype.",
    "If the exception is meant for the subtype as well, add the rule `{remedy}`.",
    severity=Severity.WARNING,
    rule=str,
    places=str,
    winner=str,
    remedy=str,
)

# ── functions of a project ────────────────────────────────────────────────────────────────────────

FUNCTION_INVALID = define(
    "INT401",
    "function does not parse or type",
    "The function `{name}` cannot be used.",
    name=str,
)
SIGNATURE_SYNTAX = define(
    "INT416",
    "syntax of a function",
    "{found} is unexpected here; expected {expected}.",
    "Functions are written `(a: Point m, limit: double m) -> boolean = EXPRESSION`, "
    "conversions `double m -> double yd = EXPRESSION` over `value`.",
    found=str,
    expected=str,
)
FUNCTION_CYCLE = define(
    "INT417",
    "functions that call each other in a circle",
    "`{name}` calls itself: {cycle}.",
    "Take one of these calls out: functions are put in where they are called, so none can call itself.",
    name=str,
    cycle=str,
)

# ── contexts ──────────────────────────────────────────────────────────────────────────────────────

UNKNOWN_FUNCTION = define(
    "INT208",
    "unknown function in a context",
    "There is no function `{name}` in the context `{context}`.",
    "Did you mean {nearest}?",
    "Declare it under `functions:` of the context or of one above it, or use `identity`.",
    name=str,
    context=str,
    nearest=tuple,
)
PARAMETER_UNFIT = define(
    "INT209",
    "function for another type",
    "`{function}` converts `{parameter}`, but the pattern leads to values of type `{type}`.",
    "Name a function from `{type}` or from one of its supertypes, or a pattern that ends with `{parameter}`.",
    function=str,
    parameter=str,
    type=str,
)
DIRECTION_MISSING = define(
    "INT210",
    "rules without direction",
    "These rules of `{context}` do not say which way they convert: {reason}.",
    "Group them: `rules: {{out: [ … ], in: [ … ]}}`; `out` is from root to clients, `in` from clients to root.",
    context=str,
    reason=str,
)
UNKNOWN_MAPPED_TYPE = define(
    "INT301",
    "unknown type in a mapping",
    "`{name}` is no event type of {side}.",
    "Did you mean {nearest}?",
    "{remedy}",
    name=str,
    side=str,
    nearest=tuple,
    remedy=str,
)
MAPPED_TWICE = define(
    "INT302",
    "two mappings of one type",
    "`{source}` is mapped twice in the direction `{direction}`; the first is at {first}, and this one is used.",
    "Take one of the two out.",
    severity=Severity.WARNING,
    source=str,
    direction=str,
    first=str,
)
BAD_MAPPED_ATTRIBUTE = define(
    "INT308",
    "bad entry of a mapping's attributes",
    "`{entry}` cannot be mapped like this: {reason}.",
    "{remedy}",
    entry=str,
    reason=str,
    remedy=str,
)
TIME_MISSING = define(
    "INT405",
    "currency function without time",
    "`{name}` converts {source} to {target}, but does not say of which time the rate should be.",
    "Add `time: event`, `time: now` (when the event came in) or an instant.",
    name=str,
    source=str,
    target=str,
)
TIME_IS_NOW = define(
    "INT406",
    "function of the present",
    "`{name}` uses the time at which an event was received, not the time at which it happened.",
    "Write `time: event` unless that is meant: late events then get the value of their own time.",
    severity=Severity.WARNING,
    name=str,
)
UNITS_TWICE = define(
    "INT408",
    "two functions between the same units",
    "`{name}` and `{other}` both convert `{type}` from {source} to {target}; where units decide, `{name}` is used.",
    "Leave the unit out of one signature, or name the function in a rule.",
    severity=Severity.WARNING,
    name=str,
    other=str,
    type=str,
    source=str,
    target=str,
)
STATE_UNBOUNDED = define(
    "INT410",
    "state without bounds",
    "The state `{state}` of `{name}` lacks {missing}.",
    "State is bounded: give the function a `key:`, and each state `key:`, `ttl:` and `max_keys:`.",
    name=str,
    state=str,
    missing=str,
)
CODE_FROM_CLIENT = define(
    "INT411",
    "code from a client",
    "`{name}` is more than an expression: clients declare functions as expressions, without code, tables or memory.",
    "Write it as one, as in `conv_function('mi', 'km', expr='value * 1.609344')`.",
    name=str,
)
UNKNOWN_PYTHON = define(
    "INT419",
    "Python function that is not there",
    "`{name}` names the Python function `{python}`, but {reason}.",
    "Define it in `functions/{file}.py` as a function of one array, and write `python: file.function`.",
    name=str,
    python=str,
    reason=str,
    file=str,
)
BAD_PYTHON = define(
    "INT420",
    "Python function that cannot be used",
    "`{name}` cannot be used: {reason}.",
    "{remedy}",
    name=str,
    reason=str,
    remedy=str,
)
UNKNOWN_SOURCE = define(
    "INT412",
    "unknown source or column of a lookup",
    "`{name}` looks up in `{source}`, but there is no {what}.",
    "Did you mean {nearest}?",
    "{remedy}",
    name=str,
    source=str,
    what=str,
    nearest=tuple,
    remedy=str,
)
OTHER_SIGNATURE = define(
    "INT414",
    "override with another signature",
    "`{name}` is `{found}`, but in `{context}`, which it overrides, `{expected}`.",
    "Rules above may use it: keep the signature, or take another name.",
    name=str,
    found=str,
    expected=str,
    context=str,
)
UNKNOWN_CONTEXT = define(
    "INT501",
    "unknown or invalid context",
    "The context `{name}` cannot be used here: {reason}.",
    "Did you mean {nearest}?",
    "{remedy}",
    name=str,
    reason=str,
    nearest=tuple,
    remedy=str,
)
CONTEXT_CYCLE = define(
    "INT502",
    "contexts that extend each other",
    "`{name}` extends itself: {cycle}.",
    "Let one of them extend `root`.",
    name=str,
    cycle=str,
)
BAD_CONTEXT_NAME = define(
    "INT503",
    "bad or reserved identifier of a context",
    "`{name}` cannot be the identifier of a context: {reason}.",
    "Use small letters, digits, `_` and `-`, in parts with dots between them, as in `acme.us`.",
    name=str,
    reason=str,
)
CONTEXT_IN_USE = define(
    "INT504",
    "context in use",
    "The context `{name}` cannot be changed like this, because it is in use ({users}): {outcome}.",
    "Clients that want the change can use `{fork}`.",
    "{remedy}",
    name=str,
    users=str,
    outcome=str,
    fork=str,
    remedy=str,
)
RULE_KEPT = define(
    "INT505",
    "rule put in",
    "`{context}` now has `{rule}`, so that a new rule of `{above}` changes nothing there: {instead} applies, as "
    "before.",
    "To apply the new rule there, run `situ apply --propagate`, or remove it from `kept:` of the context.",
    severity=Severity.OBSERVATION,
    context=str,
    rule=str,
    above=str,
    instead=str,
)
LACKS_ATTRIBUTES = define(
    "INT506",
    "replaced type lacks attributes",
    "`{type}` of root lacks attributes that it had in `{former}`: {attributes}.",
    "A type that replaces another must have all of its attributes: add them, at least as optional ones.",
    type=str,
    attributes=str,
    former=str,
)
NO_WAY_BACK = define(
    "INT507",
    "replaced type without conversions",
    "`{type}` of root cannot become another type without a conversion from the old one to the new one and back "
    "({users}).",
    "Declare the type as it was in a context `{former}`, with a function for each direction and the rule `{rule}`.",
    type=str,
    former=str,
    rule=str,
    users=str,
)
NOT_INVERSE = define(
    "INT508",
    "values change when converted forth and back",
    "A `{type}` converted by `{forth}` and back by `{back}` is not the same, for example {sample}.",
    "Nothing needs to be done if that is meant; else correct one of the two.",
    severity=Severity.WARNING,
    type=str,
    forth=str,
    back=str,
    sample=str,
)
XML_NOT_UNDERSTOOD = define(
    "INT509",
    "XML not understood",
    "This XML is not understood: {found}; expected {expected}.",
    "Did you mean {nearest}?",
    "{remedy}",
    found=str,
    expected=str,
    nearest=tuple,
    remedy=str,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``INT3xx`` and ``INT4xx``: rules between contexts, where a transformation is made of them.

RESULT_UNFIT = define(
    "INT303",
    "what a mapping gives does not fit the mapped type",
    "`{target}` of `{type}` would be {found}, expected `{expected}`.",
    "{remedy}",
    target=str,
    type=str,
    found=str,
    expected=str,
    remedy=str,
)
NOT_SUPPLIED = define(
    "INT304",
    "attribute that nothing supplies",
    "Nothing supplies `{target}` of `{type}`: `{source}` has no attribute of that name.",
    "Name its source under `attributes:` of the mapping, or declare it `optional` or with a default.",
    target=str,
    type=str,
    source=str,
)
ATTRIBUTE_DROPPED = define(
    "INT305",
    "attribute that is dropped",
    "`{path}` of `{source}` has no counterpart in `{target}` and is dropped.",
    "If it is wanted, declare it there, or map it under `attributes:` of the mapping.",
    severity=Severity.OBSERVATION,
    path=str,
    source=str,
    target=str,
)
PASSES_UNMAPPED = define(
    "INT306",
    "event type without mapping that passes",
    "`{type}` has no mapping in `{context}` ({direction}) and passes under its own type.",
    "Add a mapping if it should become something else.",
    severity=Severity.OBSERVATION,
    type=str,
    context=str,
    direction=str,
)
NO_WAY = define(
    "INT307",
    "event type without mapping that is not available",
    "`{type}` is not available in `{context}` ({direction}): {reason}.",
    "Add a mapping for it, or `derive: true` to the context.",
    severity=Severity.OBSERVATION,
    type=str,
    context=str,
    direction=str,
    reason=str,
)
READS_UNCONVERTED = define(
    "INT309",
    "expression that reads what a rule would convert",
    "The expression for `{target}` reads the original `{path}`; the rule `{rule}` does not apply to it.",
    "Map `{target}` to the path alone if the converted value is wanted.",
    severity=Severity.WARNING,
    target=str,
    path=str,
    rule=str,
)
OPTIONAL_FEEDS_REQUIRED = define(
    "INT310",
    "optional attribute that feeds a required one",
    "`{target}` of `{type}` is required, but its source may be missing: such events become dead letters.",
    "Declare it `optional`, or with a default.",
    severity=Severity.WARNING,
    target=str,
    type=str,
)
EVENT_LACKS_ATTRIBUTE = define(
    "INT402",
    "function reads what the event does not have",
    "`{function}` reads `event.{attribute}`, which `{type}` does not have; it converts `{path}` there.",
    "Except these places by a rule of their own, or read an attribute that all these events have.",
    function=str,
    attribute=str,
    type=str,
    path=str,
)
INCOMPATIBLE_DIMENSIONS = define(
    "INT403",
    "units of different dimensions",
    "`{target}` of `{type}` is in {expected}, its source in {found}: they measure different things.",
    "Correct one of the units, or write a rule with a function that makes one of the other.",
    target=str,
    type=str,
    found=str,
    expected=str,
)
NO_FUNCTION_BETWEEN = define(
    "INT404",
    "no function between units",
    "No function converts `{path}` from {found} to {expected}.",
    "Units that are not physical convert by a function only: declare one, as in `{form}`.",
    path=str,
    found=str,
    expected=str,
    form=str,
)
LEFT_IN_UNIT = define(
    "INT407",
    "rule that leaves another unit",
    "The rule `{rule}` leaves `{target}` of `{type}` in {found}, declared is {expected}.",
    "Use a function that gives {expected}, or take the rule out where units convert by themselves.",
    severity=Severity.WARNING,
    rule=str,
    target=str,
    type=str,
    found=str,
    expected=str,
)
FRACTIONAL_RESULT = define(
    "INT409",
    "whole number from a fractional conversion",
    "`{target}` of `{type}` is a whole number in {expected}; a value in {found} does not stay whole.",
    "Declare it `double` or `decimal`, or write a rule with a function that rounds.",
    target=str,
    type=str,
    found=str,
    expected=str,
)
LOSSY = define(
    "INT413",
    "conversion that loses something",
    "`{target}` of `{type}` loses information: {reason}.",
    "Nothing to do if that is meant; it cannot be undone.",
    severity=Severity.OBSERVATION,
    target=str,
    type=str,
    reason=str,
)
UNIT_ON_ONE_SIDE = define(
    "INT415",
    "unit on one side only",
    "`{target}` of `{type}` is copied: {reason}.",
    "Declare the unit on both sides, or on none.",
    severity=Severity.WARNING,
    target=str,
    type=str,
    reason=str,
)
WILL_NOT_BE_EXECUTED = define(
    "INT418",
    "function that will not be executed",
    "Events of type `{type}` will be dead letters in the context `{context}`: `{function}` {what}.",
    "Only deliveries can wait for what is not remembered yet: say `missing: error` or `missing: null`.",
    severity=Severity.WARNING,
    type=str,
    context=str,
    function=str,
    what=str,
)
