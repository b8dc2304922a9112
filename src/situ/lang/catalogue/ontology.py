"""``S``: tables that others keep."""

from __future__ import annotations

from situ.catalogue.defining import define
from situ.errors import Severity

ONE_PLACE = define(
    "S101",
    "source in no place or several",
    "The source `{name}` says {found} of where its rows are.",
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
    "The source `{source}` is the file `{file}`, which is not there: no run that needs it starts.",
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
    "The source `{source}` tells of the concept `{concept}`, but {reason}.",
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
    "`{group}` is a group and has no instances of its own, so `{source}` cannot tell of them.",
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
    "Name an attribute of type `timestamp`, or leave `time` out: then the time of the event counts.",
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
    "`{attribute}` of `{concept}` comes with events, through `{push}`; what `{source}` says of it is not used.",
    "Take the column out of the source, or let its name be another.",
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
