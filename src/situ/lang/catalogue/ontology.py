"""``S``: ontologies, enrichment, how policies are spread, actions that failed, and sources.

How policies are written and checked is :mod:`situ.lang.catalogue.policies`.
"""

from __future__ import annotations

from situ.lang.problems import Severity, define

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``S12x``, ``S13x``, ``S203`` and ``S204``: ontologies, and what policies lack of them.

NO_IDENTITY = define(
    "S120",
    "concept without identity",
    "The concept `{concept}` has no identity: {reason}.",
    "Every concept has an attribute `id` that is a text, as in `{concept}: {{id: string}}`.",
    concept=str,
    reason=str,
)
UNKNOWN_CONCEPT = define(
    "S121",
    "unknown concept",
    "There is no concept `{name}`.",
    "Did you mean {nearest}?",
    "Concepts are declared under `concepts:` in `ontology.yaml`.",
    name=str,
    nearest=tuple,
)
UNKNOWN_CONCEPT_ATTRIBUTE = define(
    "S122",
    "unknown attribute of a concept",
    "The concept `{concept}` has no attribute `{name}`.",
    "Did you mean {nearest}?",
    "Its attributes are {known}.",
    concept=str,
    name=str,
    nearest=tuple,
    known=tuple,
)
CONCEPT_CYCLE = define(
    "S123",
    "concepts in a circle",
    "`{name}` {what} itself: {cycle}.",
    "{remedy}",
    name=str,
    what=str,
    cycle=str,
    remedy=str,
)
CONCEPT_DEFAULT = define(
    "S124",
    "attribute of a concept with a default",
    "`{attribute}` of `{concept}` has a default, but an attribute that no source provides is unknown.",
    "Give the default to the column of the source that provides it.",
    concept=str,
    attribute=str,
)
BAD_ENDS = define(
    "S125",
    "relationship without two ends",
    "`{name}` is not declared between two attributes: {reason}.",
    "Write `between: [person.position, room.area]`.",
    name=str,
    reason=str,
)
UNKNOWN_RELATIONSHIP_FUNCTION = define(
    "S126",
    "unknown function of a relationship",
    "There is no function `{function}` for `{name}`.",
    "Did you mean {nearest}?",
    "It is one of {known}, or a function of `functions/*.yaml`.",
    name=str,
    function=str,
    nearest=tuple,
    known=tuple,
)
RELATIONSHIP_UNFIT = define(
    "S127",
    "function that does not fit its ends",
    "`{function}` cannot be used for `{name}` between `{left}` ({left_type}) and `{right}` ({right_type}).",
    "{remedy}",
    name=str,
    function=str,
    left=str,
    left_type=str,
    right=str,
    right_type=str,
    remedy=str,
)
RELATIONSHIP_AMBIGUOUS = define(
    "S128",
    "two relationships for the same concepts",
    "`{name}` between `{left}` and `{right}` exists already for the same concepts, at {first}.",
    "A policy names relationships by concepts alone: give one of the two another name.",
    name=str,
    left=str,
    right=str,
    first=str,
)
UNFIT_FOR_FUNCTION = define(
    "S129",
    "parameter that does not go with its function",
    "`{name}` cannot be declared like this: {reason}.",
    "{remedy}",
    name=str,
    reason=str,
    remedy=str,
)
MEASURE_UNFIT = define(
    "S130",
    "measure that gives no single value",
    "`{name}` gives {found}, which cannot be compared with anything.",
    "A measure gives a number, a text, a time or a boolean.",
    name=str,
    found=str,
)
CONTAINER_UNFIT = define(
    "S131",
    "attribute that cannot name a container",
    "`{part}` is part of `{container}`, but its attribute `{container}` is of type `{type}`.",
    "An attribute with the name of the container is the identity of the container, a text; or leave it out.",
    part=str,
    container=str,
    type=str,
)
NOBODY_PROVIDES = define(
    "S203",
    "attribute that nobody provides",
    "The policy `{policy}` uses `{attribute}` of `{concept}`, which no source provides: it is unknown.",
    "Add a column for it to a pull source with `concept: {concept}`; unknown values meet no condition.",
    severity=Severity.WARNING,
    policy=str,
    concept=str,
    attribute=str,
)
POLICY_STOPPED = define(
    "S204",
    "policy that no longer fits",
    "The policy `{policy}` is stopped: it does not fit the current declarations.",
    "Its text stays: run `situ get policy {policy}`, then `situ alter policy {policy}` with another.",
    severity=Severity.WARNING,
    policy=str,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``S245`` and ``S246``: what enrichment notices while it joins events to what sources know.

UNKNOWN_IDENTITIES = define(
    "S245",
    "identities that no source knows",
    "{count} observations through `{push}` are of instances of `{concept}` that no source knows, such as `{sample}`.",
    "Only their identity is known, so constraints on them do not hold. Check the key of the pull source, and the "
    "path of the identity in the push source.",
    severity=Severity.WARNING,
    push=str,
    concept=str,
    count=int,
    sample=str,
)
TEST_FAILED = define(
    "S246",
    "relation that cannot be evaluated",
    "`{test}` failed {count} times, as with {sample}; it does not hold there.",
    "Let the function of the relationship handle such values.",
    severity=Severity.WARNING,
    test=str,
    count=int,
    sample=str,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``S240`` and ``S241``: how a policy is spread over partitions. ``S72x``: actions that failed.

ONE_PARTITION = define(
    "S240",
    "policy detected in one place",
    "The policy `{policy}` cannot be spread over partitions: {reason}.",
    "{remedy}",
    severity=Severity.WARNING,
    policy=str,
    reason=str,
    remedy=str,
)

EVERYTHING_EVERYWHERE = define(
    "S241",
    "policy whose events go everywhere",
    "The policy `{policy}` is spread by `{alias}`, but all events go everywhere: none counts for `{alias}` alone.",
    "Each partition needs as much memory and time as all in one place. If you can, relate the aliases through "
    "something that events identify, as in `A is in R` and `B is in R`.",
    severity=Severity.OBSERVATION,
    policy=str,
    alias=str,
)

# ── what was to be done and failed ────────────────────────────────────────────────────────────────

ACTION_FAILED = define(
    "S721",
    "action failed",
    "`{action}` of the policy `{policy}` was not done: {target} {reason}.",
    "{remedy}",
    action=str,
    policy=str,
    target=str,
    reason=str,
    remedy=str,
)
ACTION_NOT_DECLARED = define(
    "S722",
    "action that nobody declares any more",
    "`{action}` of the policy `{policy}` was not done: neither the policy nor `actions.yaml` declares it any more.",
    "The registry no longer has the version that asked for it. Drop it with `situ actions drop {key}`.",
    action=str,
    policy=str,
    key=str,
)
ACTION_LACKS = define(
    "S723",
    "action that lacks something from the environment",
    "`{action}` of the policy `{policy}` was not done: the environment of the run has no `{name}`.",
    "Start `situ run` where it is set, then run `situ actions retry {key}`.",
    action=str,
    policy=str,
    name=str,
    key=str,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``S101`` to ``S104``, ``S111`` to ``S113``, ``S14x``, ``S20x``: sources, which are tables that others keep, and push
# sources.

ONE_PLACE = define(
    "S101",
    "source in no place or several",
    "The source `{name}` names {found} as the place of its rows.",
    "Write exactly one of {choices}.",
    name=str,
    found=str,
    choices=tuple,
)
BAD_STATEMENT = define(
    "S102",
    "statement that is no query",
    "This does not read a table: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
UNKNOWN_COLUMN = define(
    "S103",
    "unknown column of a source",
    "{where} has no column `{column}`.",
    "Did you mean {nearest}?",
    "Its columns are {known}.",
    where=str,
    column=str,
    nearest=tuple,
    known=tuple,
)
COLUMN_UNFIT = define(
    "S104",
    "column that cannot find rows",
    "`{column}` of type `{type}` cannot be {use}.",
    "{remedy}",
    column=str,
    type=str,
    use=str,
    remedy=str,
)
SOURCE_UNREADABLE = define(
    "S111",
    "source that cannot be read",
    "The source `{source}` cannot be read: {reason}{place}.",
    "{remedy}",
    source=str,
    reason=str,
    place=str,
    remedy=str,
)
NO_SUCH_FILE = define(
    "S206",
    "source whose file is not there",
    "The source `{source}` is the file `{file}`, which does not exist: no run that needs it starts.",
    "Put it there, or correct the name: it is taken from the project folder.",
    severity=Severity.WARNING,
    source=str,
    file=str,
)
CELL_UNFIT = define(
    "S112",
    "cell does not fit its column",
    "Row {row} of the source `{source}`, column `{column}`: {found}, expected `{expected}`.",
    "{remedy}",
    "Correct the table, or declare another type for the column.",
    source=str,
    row=int,
    column=str,
    found=str,
    expected=str,
    remedy=str,
)
KEY_TWICE = define(
    "S113",
    "two rows for one key",
    "Rows {first} and {second} of the source `{source}` both have {key}.",
    "A key finds one row: take one of the two out, or look rows up by more columns.",
    source=str,
    first=int,
    second=int,
    key=str,
)
CONCEPT_KEY = define(
    "S140",
    "table of a concept without its key",
    "The source `{source}` is a table of the concept `{concept}`, but {reason}.",
    "{remedy}",
    source=str,
    concept=str,
    reason=str,
    remedy=str,
)
BAD_XPATH = define(
    "S141",
    "path into XML that is not understood",
    "`{path}` is no path to {what}: {reason}.",
    "{remedy}",
    path=str,
    what=str,
    reason=str,
    remedy=str,
)
GROUP_FED = define(
    "S142",
    "source of a group",
    "`{group}` is a group and has no instances of its own, so `{source}` cannot be a source of them.",
    "Name one of its members: {members}.",
    group=str,
    source=str,
    members=tuple,
)
COLUMN_NOT_ATTRIBUTE = define(
    "S143",
    "column that is not what its attribute is",
    "The column `{column}` of `{source}` is `{found}`, but `{attribute}` of `{concept}` is `{expected}`.",
    "{remedy}",
    source=str,
    column=str,
    found=str,
    concept=str,
    attribute=str,
    expected=str,
    remedy=str,
)
PUSH_EVENT = define(
    "S144",
    "push source of an unknown event type",
    "There is no event type `{name}` for the push source `{push}`.",
    "Did you mean {nearest}?",
    "Event types are declared under `events:` in `types/*.yaml`.",
    push=str,
    name=str,
    nearest=tuple,
)
PUSH_PATH = define(
    "S145",
    "path that leads nowhere in an event",
    "`{path}` is not in events of type `{event}`: {type} has no attribute `{step}`.",
    "Did you mean {nearest}?",
    "It has {known}.",
    path=str,
    event=str,
    type=str,
    step=str,
    nearest=tuple,
    known=tuple,
)
PUSH_UNFIT = define(
    "S146",
    "event that does not bring what its attribute is",
    "`{path}` of `{event}` is `{found}`, but `{attribute}` of `{concept}` is `{expected}`.",
    "{remedy}",
    path=str,
    event=str,
    found=str,
    concept=str,
    attribute=str,
    expected=str,
    remedy=str,
)
IDENTITY_FED = define(
    "S147",
    "push source of an identity",
    "The push source `{push}` feeds the identity of `{concept}`, which never changes.",
    "Name another attribute; `id` is the path of the identity in the event.",
    push=str,
    concept=str,
)
PUSH_TIME = define(
    "S148",
    "time of a push source that is no timestamp",
    "`{path}` of `{event}` is `{found}` and cannot say when something happened.",
    "Name an attribute of type `timestamp`, or leave `time` out: then the time of the event is used.",
    path=str,
    event=str,
    found=str,
)
PUSH_TIME_OF_SITUATION = define(
    "S149",
    "time of a push source of situations",
    "`{event}` comes from policies, whose events count by their own time.",
    "Leave `time` out: policies that read what others conclude wait for those by the time of the event.",
    event=str,
)
SOURCE_AGED = define(
    "S201",
    "source not read again",
    "The source `{source}` cannot be read again; what was read {age} ago stays in use.",
    severity=Severity.WARNING,
    source=str,
    age=str,
)
FED_AND_READ = define(
    "S202",
    "attribute from events and from a table",
    "`{attribute}` of `{concept}` comes with events, through `{push}`; its column in `{source}` is not used.",
    "Remove the column from the source, or rename it.",
    severity=Severity.WARNING,
    concept=str,
    attribute=str,
    push=str,
    source=str,
)
SOURCE_OUTSIDE = define(
    "S205",
    "source outside of the project",
    "The source `{source}` reads `{file}`, which is outside of the project.",
    "Copy it into the project, or allow its folder: `outside: [{folder}]` in situ.yaml.",
    severity=Severity.WARNING,
    source=str,
    file=str,
    folder=str,
)
