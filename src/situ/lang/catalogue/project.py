"""``P``: the project folder, its files, what is written in them, and how commands are called."""

from __future__ import annotations

from situ.lang.problems import Severity, define

# ── project folder and documents ──────────────────────────────────────────────────────────────────

YAML_SYNTAX = define(
    "P102",
    "YAML syntax",
    "This is not valid YAML: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
UNKNOWN_KEY = define(
    "P103",
    "unknown key",
    "There is no key `{key}` here.",
    "Did you mean {nearest}?",
    "The keys known here are {known}.",
    key=str,
    nearest=tuple,
    known=tuple,
)
MISSING_KEY = define(
    "P104",
    "missing key",
    "The key `{key}` is missing {where}.",
    "Add a line `{key}: …`.",
    key=str,
    where=str,
)
WRONG_KIND = define(
    "P105",
    "wrong kind of value",
    "Expected {expected}, found {found}.",
    "{remedy}",
    expected=str,
    found=str,
    remedy=str,
)
NAME_TWICE = define(
    "P106",
    "name twice",
    "The key `{name}` is here twice; the first is in line {line}.",
    "Rename one of the two or take it out; nothing is merged.",
    name=str,
    line=int,
)
NOT_USED = define(
    "P107",
    "YAML feature that is not used",
    "Project files do not use {feature}.",
    "{remedy}",
    feature=str,
    remedy=str,
)
DOCUMENT_TOO_LARGE = define(
    "P108",
    "document too large or too deep",
    "The document is too {much}: more than {most} {unit}.",
    "{remedy}",
    much=str,
    most=int,
    unit=str,
    remedy=str,
)
ENVIRONMENT_UNSET = define(
    "P109",
    "environment variable not set",
    "The environment variable `{name}` is not set.",
    "Set it before starting, as in `export {name}=…`; a `${{` that is meant literally is written `$${{`.",
    name=str,
)
NOT_UTF8 = define(
    "P110",
    "text that is not UTF-8",
    "The text is not UTF-8: byte {byte} has no meaning here.",
    "It looks like {likely}: save it as UTF-8.",
    "Save the file as UTF-8.",
    byte=str,
    likely=str,
)
UNKNOWN_VERSION = define(
    "P111",
    "unknown version of a file",
    "This file says version {found}, this release reads version {known}.",
    "Write `version: {known}`, or use a release that reads the file.",
    found=str,
    known=int,
)
JSON_SYNTAX = define(
    "P112",
    "JSON syntax",
    "This is not valid JSON: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
BAD_REFERENCE = define(
    "P113",
    "reference to the environment that is none",
    "`{found}` is no reference to the environment.",
    "A reference is written `${{NAME}}` with letters, digits and `_`; a `${{` that is meant literally as `$${{`.",
    found=str,
)
BAD_CHARACTER = define(
    "P114",
    "character that is not allowed",
    "The character {character} is not allowed here.",
    "Take it out, or write it as an escape in double quotes.",
    character=str,
)
NUMBER_OUT_OF_RANGE = define(
    "P115",
    "number out of range",
    "The number `{number}` is not finite or too large to compute with.",
    "Write a number below 1e308 in size and of at most 400 digits.",
    number=str,
)
TOO_MANY_PROBLEMS = define(
    "P116",
    "too many problems",
    "There are {most} problems and more in this document; what follows was not read.",
    "Is it a file of this kind? Otherwise correct these first.",
    most=int,
)
ONE_DOCUMENT = define(
    "P117",
    "more than one document",
    "A second document begins here; a file holds one.",
    "Take out the line `---`, or move what follows to a file of its own.",
)
KEY_NOT_TEXT = define(
    "P118",
    "key that is not text",
    "A key must be text, found {found}.",
    "Put the key in quotes if it is meant as a name.",
    found=str,
)
NOT_A_CHOICE = define(
    "P119",
    "not one of the choices",
    "{found} is not possible here.",
    "Did you mean {nearest}?",
    "Possible are {choices}.",
    found=str,
    nearest=tuple,
    choices=tuple,
)
BAD_QUANTITY = define(
    "P121",
    "not a quantity",
    "`{text}` is no {what}.",
    "{remedy}",
    text=str,
    what=str,
    remedy=str,
)

# ── the project folder as a whole ─────────────────────────────────────────────────────────────────

NO_PROJECT = define(
    "P101",
    "no project",
    "There is no project at `{place}`: neither it nor a folder above it has a `situ.yaml`.",
    "Make one with `situ init`, or name the folder of one with `--project PATH`.",
    place=str,
)
FOLDER_NOT_EMPTY = define(
    "P122",
    "folder not empty",
    "`{place}` is not an empty folder: there is `{found}`.",
    "Name a new folder, or take out what is there; nothing is overwritten.",
    place=str,
    found=str,
)
FILE_UNREADABLE = define(
    "P123",
    "file that cannot be read",
    "This file cannot be read: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
LEAVES_FOLDER = define(
    "P124",
    "link that leaves the project",
    "This is a link to `{target}`, which is outside of the project.",
    "Copy the file into the project: a project is complete in its folder.",
    target=str,
)
TOO_MANY_FILES = define(
    "P125",
    "too many files",
    "`{place}` has more than {most} files.",
    "Put more declarations into one file, or take out what does not belong here.",
    place=str,
    most=int,
)
CONTRADICTION = define(
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
EXECUTORS_REVERSED = define(
    "P140",
    "more executors at least than at most",
    "`executors` are at least {least} and at most {most}.",
    "Make `max` as large as `min`, or larger.",
    least=int,
    most=int,
)
EXECUTORS_WITHOUT_CLUSTER = define(
    "P141",
    "executors without a cluster",
    "`executors.max` is {most}, and `{master}` has no executors to ask for.",
    "Set `spark.master` to a cluster, or leave `executors` out: on one machine Spark uses its cores.",
    most=int,
    master=str,
)
FOLDER_IN_USE = define(
    "P120",
    "folder in use",
    "`{folder}` is in use by another run, process {pid}.",
    "Stop that run first (Ctrl-C there, or `kill {pid}`); one folder has one run.",
    folder=str,
    pid=int,
)
OTHER_LAYOUT = define(
    "P127",
    "state of another release",
    "`{folder}` was written in layout {found}, this release knows layout {known}.",
    "Use the release that wrote it, or move the folder away to start afresh without the events in it.",
    folder=str,
    found=str,
    known=int,
)
BUS_WITHOUT_CLIENTS = define(
    "P128",
    "bus that no client can reach",
    "A project cannot run on the bus `{bus}`: {reason}.",
    "Write `bus: embedded`: then `situ run` starts a server of its own. {instead}",
    bus=str,
    reason=str,
    instead=str,
)
KAFKA_NOT_SET = define(
    "P130",
    "no Kafka in the settings",
    "`{name}` {does}, but situ.yaml does not say where Kafka is.",
    "Add `kafka: {{servers: host:9092}}` to situ.yaml.",
    name=str,
    does=str,
)
TOPIC_NOT_ADVERTISED = define(
    "P131",
    "topic whose events nobody advertises",
    "The records of `{client}` are events of type `{type}`, but the client does not advertise that type.",
    "Add an advertisement of `{type}` to the client: events without one are refused.",
    client=str,
    type=str,
)
TOPIC_UNFIT = define(
    "P132",
    "topic that cannot be read or written so",
    "`{name}` cannot use `{key}`: {reason}.",
    "{remedy}",
    name=str,
    key=str,
    reason=str,
    remedy=str,
)
NO_REAL_TIME = define(
    "P134",
    "subscription that nothing reaches in real time",
    "Nothing that `{subscription}` asks for can be delivered in real time: {reason}.",
    "Leave `delivery` out, or change what is said; `situ explain subscription` tells what goes which way.",
    subscription=str,
    reason=str,
)
KAFKA_OPTION_TAKEN = define(
    "P133",
    "option of Kafka that Situ sets",
    "The option `{option}` is not for a project to set: {reason}.",
    "Take it out of `kafka.options`.",
    option=str,
    reason=str,
)
UNKNOWN_FILE = define(
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
OTHER_FILE = define(
    "P203",
    "YAML file that is not part of the project",
    "This file is not part of the project and is not read.",
    "Declarations stand in {known}.",
    severity=Severity.OBSERVATION,
    known=tuple,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``P16x`` and ``P17x``: how commands are called.

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
    "The expression uses names, but the type of its events is not given.",
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
    "Line {line} is no CloudEvent, and the type of its data is not given.",
    "Name the type, as in `{form}`, or write whole CloudEvents.",
    line=int,
    form=str,
)
NOT_OVERWRITTEN = define(
    "P172",
    "file that is not overwritten",
    "`{file}` is not overwritten: {reason}.",
    "Name a file that is not there yet, or leave out `--out`: then the credentials are in `{default}`.",
    file=str,
    reason=str,
    default=str,
)
NOT_A_CLIENT = define(
    "P173",
    "misspelt client",
    "There is no client `{name}`: nothing declares it, it has no credentials, and it was never connected.",
    "Did you mean {nearest}? Use `--new` if this is a new client with a similar name.",
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


# Maps of files of others, for `situ replay --over … --map`.

NO_MAPPED_COLUMN = define(
    "P135",
    "no such column in a file",
    "`{file}` has no column `{column}`, which the map says is {wanted}.",
    "Did you mean {nearest}?",
    "It has {known}.",
    file=str,
    column=str,
    wanted=str,
    nearest=tuple,
    known=str,
)
BAD_MAPPED_TIME = define(
    "P136",
    "time that cannot be read",
    "Times cannot be read like this: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
NO_MAPPED_FILES = define(
    "P137",
    "no files to replay",
    "No file at `{place}` is called like `{pattern}`.",
    "Look at the place and at `files` of the map: a pattern such as `*.csv`.",
    place=str,
    pattern=str,
)
NO_MAPPED_ATTRIBUTE = define(
    "P138",
    "no such attribute in a map",
    "The type `{type}` has no attribute `{name}`{where}.",
    "Did you mean {nearest}?",
    type=str,
    name=str,
    where=str,
    nearest=tuple,
)
MAPPED_FILE_UNREADABLE = define(
    "P139",
    "file that cannot be replayed",
    "`{file}` cannot be read: {reason}.",
    "Files are CSV with a header (`.csv`, `.csv.gz`) or Parquet (`.parquet`).",
    file=str,
    reason=str,
)
