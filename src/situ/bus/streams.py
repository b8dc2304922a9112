"""The streams and buckets of a zone as the settings want them, as configurations of JetStream.

Making them is repeatable: what is there is changed to what the settings say, and keeps its content.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from situ.bus.link import Link
from situ.bus.names import Names
from situ.bus.reading import failure
from situ.catalogue import BUS_FAILED
from situ.errors import SituError
from situ.settings import Settings

_NOT_FOUND, _NAME_IN_USE = 10059, 10058
_HISTORY = 1
_TOLD = timedelta(hours=1)  # how long feedback about quality is kept
_CHANGEABLE = (
    "subjects",
    "retention",
    "max_bytes",
    "max_age",
    "max_msgs_per_subject",
    "discard",
    "duplicate_window",
    "allow_direct",
    "allow_rollup_hdrs",
)


def nanoseconds(time: timedelta) -> int:
    return time // timedelta(microseconds=1) * 1000


def configurations(names: Names, settings: Settings) -> tuple[dict[str, Any], ...]:
    """Everything the zone needs."""
    log, groups = settings.log, settings.overlay.groups
    window = settings.overlay.duplicate_window

    def stream(name: str, age: timedelta | None, size: int, **more: Any) -> dict[str, Any]:
        return {
            "name": name,
            "subjects": [names.subjects_of(name)],
            "retention": "limits",
            "storage": "file",
            "discard": "old",
            "max_age": nanoseconds(age) if age is not None else 0,
            "max_bytes": size,
            "max_msgs_per_subject": -1,
            # The server refuses a window that is longer than messages are kept.
            "duplicate_window": nanoseconds(min(window, age) if age is not None else window),
            "allow_direct": True,
            "allow_rollup_hdrs": False,
            **more,
        }

    return (
        stream(names.in_stream, None, log.size, discard="new"),
        stream(names.root_stream, log.age, log.size),
        stream(names.out_stream, groups.age, groups.size, retention="interest"),
        stream(names.dead_stream, log.dead.age, log.dead.size),
        stream(names.late_stream, log.dead.age, log.dead.size),
        stream(names.feed_stream, _TOLD, log.dead.size),
        *(_bucket(f"KV_{bucket}", [f"$KV.{bucket}.>"], _HISTORY) for bucket in names.buckets),
        *(_bucket(f"OBJ_{store}", [f"$O.{store}.C.>", f"$O.{store}.M.>"], -1) for store in names.object_stores),
    )


def _bucket(name: str, subjects: list[str], history: int) -> dict[str, Any]:
    """As the tools of NATS make them, so that they can be looked into with those."""
    return {
        "name": name,
        "subjects": subjects,
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "max_age": 0,
        "max_bytes": -1,
        "max_msgs_per_subject": history,
        "duplicate_window": nanoseconds(timedelta(minutes=2)),
        "allow_direct": True,
        "allow_rollup_hdrs": True,
    }


async def make(link: Link, configuration: dict[str, Any]) -> None:
    """The stream is there, and as configured."""
    name = configuration["name"]
    answer = await link.ask_server(f"STREAM.INFO.{name}")
    if answer.get("error", {}).get("err_code") == _NOT_FOUND:
        answer = await link.ask_server(f"STREAM.CREATE.{name}", configuration)
        if answer.get("error", {}).get("err_code") == _NAME_IN_USE:  # another one made it meanwhile
            answer = await link.ask_server(f"STREAM.INFO.{name}")
    if "error" in answer:
        raise failure(answer["error"], "stream", name)
    there = answer["config"]
    if all(there.get(key, _absent(key)) == configuration[key] for key in _CHANGEABLE):
        return
    answer = await link.ask_server(f"STREAM.UPDATE.{name}", {**there, **configuration})
    if "error" in answer:
        reason = str(answer["error"].get("description", answer["error"]))
        raise SituError(BUS_FAILED(what=f"change the stream `{name}` to what the settings say", reason=reason))


def _absent(key: str) -> Any:
    return {"max_age": 0, "max_bytes": -1, "max_msgs_per_subject": -1}.get(key, False)
