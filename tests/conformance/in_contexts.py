"""The same input, half of the publishers and subscribers in another context: they send and ask in its terms."""

from __future__ import annotations

from typing import Any

from situ.lang.records import replace
from situ.routing.model import Subscription
from tests.conformance.generated import Generated, Send

CONTEXT = "works"
IN_CONTEXT = ("press-3", "press-4", "wall", "board")
WORKS = """
version: 1
context: works
events:
  Measured: {probe: string, value: double, unit: {type: string, default: C}, by: optional Probe}
  Measurable: {probe: string, value: double, unit: optional string, by: optional Probe}
  Warning: {text: string, level: double}
maps:
  - both: Reading <-> Measurable
    attributes: {probe: sensor}
  - in: Measured -> Reading
    attributes: {sensor: probe}
  - out: Alarm -> Warning
  - in: Warning -> Alarm
    attributes: {level: {default: 3}, text: {expr: "text || to_string(to_long(60 / level))"}}
rules:
  out: [Reading.value -> times, Alarm.level -> share, Probe.depth -> times, Fine -> graded, Coarse.grade -> loud]
  in: [Measurable.value -> through, Measured.value -> through]
functions:
  times: double -> double = value * 4
  through: double -> double = value / 4
  share: int -> double = 60 / value
  loud: string -> string = upper(value)
  graded: Fine -> Probe = struct(value.depth + value.grade AS depth)
"""
_THEIRS = "{context: works, advertisements: {readings: {type: Measurable}, alarms: {type: Warning}}}"
_OURS = "{advertisements: {readings: {type: Reading}, alarms: {type: Alarm}}}"
FILES = {
    "contexts/works.yaml": WORKS,
    "clients/all.yaml": "version: 1\nclients:\n"
    + "".join(f"  press-{number}: {_OURS if number < 3 else _THEIRS}\n" for number in range(1, 5))
    + "".join(f"  {name}: {{context: works}}\n" for name in ("wall", "board")),
}


class GeneratedInContexts(Generated):
    """Who is in the context sends and asks in its terms. Zeros cannot be converted, in either direction."""

    def _good(self, client: str) -> dict[str, Any]:
        event = super()._good(client)
        if client not in IN_CONTEXT:
            return event
        data = event["data"]
        if event["type"] == "Reading":
            data["probe"] = data.pop("sensor")
            event["type"] = "Measured" if self._chance.random() < 0.3 and "situad" not in event else "Measurable"
        else:
            event["type"] = "Warning"
            data.pop("floor", None)
            data["level"] = float(data["level"])
        return event

    def _again(self) -> Send:
        """Not what nobody sent: none of it is in the log, by which the edge knows what it had before."""
        sent = super()._again()
        return self._message() if sent.key.client == "nobody" else sent

    def _subscription(self) -> Subscription:
        made = super()._subscription()
        theirs = "situ.deadletter" not in made.types and self._chance.random() < 0.5
        if made.client not in IN_CONTEXT or not theirs:
            return made
        kind, where = self._asked()
        return replace(made, types=(kind,), where=where, context=CONTEXT)

    def _asked(self) -> tuple[str, str]:
        chance = self._chance
        value, other = sorted((chance.randint(-80, 480), chance.randint(-80, 480)))
        probe, level = f"s{chance.randrange(12)}", chance.choice((12, 15, 20, 30))
        return chance.choice(
            (
                ("Measurable", ""),
                ("Measurable", f"value > {value}"),
                ("Measurable", f"value BETWEEN {value} AND {other}"),
                ("Measurable", f"probe IN ('{probe}', 's1') OR value = {other}"),
                ("Measurable", f"NOT (unit = 'C' AND value > {value})"),
                ("Measurable", "event.source LIKE 'press-4/%'"),
                ("Measurable", f"by.depth > {value / 4}"),
                ("Measurable", f"by.depth > {level} OR value = {other}"),
                ("Measurable", f"by IS Coarse AND by.depth <= {level}"),
                ("Measurable", f"NOT by IS Fine AND value > {value}"),
                ("Warning", ""),
                ("Warning", f"level >= {level} AND text <> 'hot'"),
                ("Warning", f"level = {level}"),
            )
        )
