"""``P16x``: how commands are called."""

from __future__ import annotations

from situ.catalogue.defining import define

OTHER_EVENT = define(
    "P161",
    "event of another type",
    "The event is a `{found}`, but the expression is about `{wanted}`.",
    "Take an event of type {fitting}, or name the type of this event with `--type {found}`.",
    found=str,
    wanted=str,
    fitting=tuple,
)
UNKNOWN_CODE = define(
    "P162",
    "unknown code",
    "There is no code `{name}`.",
    "Did you mean {nearest}?",
    "Codes are letters and three digits, as in `X103`; `situ explain code` lists them.",
    name=str,
    nearest=tuple,
)
FILE_EXISTS = define(
    "P163",
    "file exists already",
    "There is a file of this name already.",
    "Name another with `--out`, or overwrite it with `--force`.",
)
UNKNOWN_SUBSCRIPTION = define(
    "P164",
    "unknown subscription",
    "There is no subscription `{name}`.",
    "Did you mean {nearest}?",
    "Subscriptions are named `client/name`, as declared in clients/*.yaml; for a division put blanks around the `/`.",
    name=str,
    nearest=tuple,
)
WITHOUT_TYPE = define(
    "P165",
    "expression about no type",
    "The expression has names in it, but nothing says of which events.",
    "Name the type of the events with `--type TYPE`, or give an event with `--event FILE`.",
)
NOT_OF_PROJECT = define(
    "P166",
    "file of no project",
    "This file is not one of the files of the project `{project}`.",
    "Files of a project are {known}.",
    project=str,
    known=tuple,
)
UNKNOWN_LETTER = define(
    "P167",
    "unknown dead letter",
    "There is no dead letter `{id}`.",
    "Take an id that `situ dead-letters list` shows; letters older than `log.dead.age` in situ.yaml are gone.",
    id=str,
)
NOT_PUBLISHED_AGAIN = define(
    "P168",
    "dead letter not published again",
    "The event of dead letter `{id}` is refused: {reason}.",
    "Correct what it is about, or publish the event corrected with `situ publish`.",
    id=str,
    reason=str,
)
UNKNOWN_EVENT = define(
    "P169",
    "unknown event",
    "There is no event with the id, key or position `{name}`.",
    "Look at the spelling; the root log keeps events for as long as `log.age` in situ.yaml says.",
    name=str,
)
NOTHING_TO_PUBLISH = define(
    "P170",
    "data without a type",
    "Line {line} is no CloudEvent, and nothing says of which type its data is.",
    "Name the type, as in `{form}`, or write whole CloudEvents.",
    line=int,
    form=str,
)
NOT_OVERWRITTEN = define(
    "P172",
    "file that is not overwritten",
    "`{file}` is not overwritten: {reason}.",
    "Name a file that is not there yet, or leave `--out` away: then the credentials are in `{default}`.",
    file=str,
    reason=str,
    default=str,
)
NOT_A_CLIENT = define(
    "P173",
    "misspelt client",
    "There is no client `{name}`: nothing declares it, it has no credentials, and it was never connected.",
    "Did you mean {nearest}? Say `--new` if a new client is to have a name so much like another.",
    name=str,
    nearest=tuple,
)
UNKNOWN_KEPT_ACTION = define(
    "P171",
    "unknown action to do",
    "There is no action `{key}` that {state}.",
    "Take a key that `situ actions list` shows.",
    key=str,
    state=str,
)
