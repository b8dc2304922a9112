"""``E``: what arrives as an event and is none."""

from __future__ import annotations

from situ.catalogue.defining import define

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
    "Stage `{stage}` failed on this event in a way that nobody foresaw: {what}. The log of the run has it as `{id}`.",
    "This is a mistake of Situ: report it with what the log says there. All other events go on. When it is mended, "
    "`situ dead-letters retry` publishes the event again.",
    stage=str,
    what=str,
    id=str,
)
