"""``R``: what a router answers a client, and what the client library says by itself."""

from __future__ import annotations

from situ.catalogue.defining import define

NOT_CONNECTED = define(
    "R001",
    "not connected",
    "`{client}` is not connected to router `{router}`.",
    "Connect first; the client library does so by itself and tries again.",
    client=str,
    router=str,
)
QUEUE_FULL = define(
    "R004",
    "queue full",
    "{events} events wait to be stored, and for {seconds} s there was no room for another.",
    "Publish more slowly, or see with `situ status` what holds up the router.",
    events=int,
    seconds=str,
)
OLD_SESSION = define(
    "R005",
    "old session",
    "Session {session} of `{client}` is over: session {known} has taken its place.",
    "Only one process connects under a client's name; give the other one a name of its own.",
    client=str,
    session=int,
    known=int,
)
SEQUENCE_GAP = define(
    "R006",
    "sequence gap",
    "The next event of `{client}` is number {expected}, not {found}.",
    "Send again from the number expected on; the client library does so by itself.",
    client=str,
    expected=int,
    found=int,
)
ZONE_UNREACHABLE = define(
    "R008",
    "zone unreachable",
    "No router of zone `{zone}` answers `{client}`: {reason}.",
    "Start the project with `situ run`, or name the zone that is meant.",
    zone=str,
    client=str,
    reason=str,
)
NO_RIGHT = define(
    "R011",
    "no right",
    "`{client}` may not do this: {reason}.",
    "A client speaks for itself only; connect under the name that is meant.",
    client=str,
    reason=str,
)
NOT_INSTALLED = define(
    "R012",
    "not installed in time",
    "The {what} `{name}` was accepted, but after {seconds} s not all engines work with it{missing}.",
    "It takes effect as soon as they do; `situ status` shows what runs.",
    what=str,
    name=str,
    seconds=str,
    missing=str,
)
STORE_UNAVAILABLE = define(
    "R016",
    "store unavailable",
    "The event cannot be stored now: {reason}.",
    "It is sent again until it is stored; `situ status` shows what holds it up.",
    reason=str,
)
TOO_MUCH_AT_ONCE = define(
    "R018",
    "too much at once",
    "`{client}` sends faster than its router answers: {waiting}. This message was not looked at.",
    "Wait for answers before sending more, as the client library does, and send this again.",
    client=str,
    waiting=str,
)
NOT_AVAILABLE = define(
    "R102",
    "not available",
    "{what} is not available here.",
    "{remedy}",
    what=str,
    remedy=str,
)
NOT_UNDERSTOOD = define(
    "R101",
    "message not understood",
    "This is no `{kind}` a router understands: {reason}.",
    "Use the client library of the same release, or write the message as the reference says.",
    kind=str,
    reason=str,
)
NO_SUCH_DECLARATION = define(
    "R002",
    "unknown advertisement or subscription",
    "The client `{client}` {reason}.",
    "{remedy}",
    client=str,
    reason=str,
    remedy=str,
)
NOT_AS_ADVERTISED = define(
    "R003",
    "event does not match its advertisement",
    "The event {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
EVENT_TOO_LARGE = define(
    "R007",
    "event too large",
    "The event has {size} bytes, more than the {most} allowed.",
    "Split it, or send a reference to large data instead of the data; "
    "the limit is set under `limits: {{event: …}}` in situ.yaml.",
    size=int,
    most=int,
)
NAME_OF_POLICY = define(
    "R017",
    "client with the name of a policy",
    "`{client}` is a policy, and no client can speak in its name.",
    "Give the client or the policy another name: policies publish under their names, as clients do.",
    client=str,
)
