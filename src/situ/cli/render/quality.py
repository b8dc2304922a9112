"""How quality stands, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from situ.cli.output import visible
from situ.cli.render.text import count

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {"satisfied": "green", "unsatisfied": "yellow"}


def show_quality(found: Mapping[str, Any]) -> Iterator[RenderableType]:
    expectations, profiles = found.get("expectations", ()), found.get("profiles", ())
    if not expectations and not profiles:
        yield Text("Nobody says anything of quality.")
        return
    if expectations:
        yield _expectations(expectations)
        yield Text()
    if profiles:
        yield _profiles(profiles)
        yield Text()
    satisfied = sum(each["state"] == "satisfied" for each in expectations)
    yield Text(
        f"{count(len(expectations), 'expectation')}, {satisfied} satisfied · {count(len(profiles), 'profile')}"
        if "profiles" in found
        else f"{count(len(expectations), 'expectation')}, {satisfied} satisfied"
    )


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for title in titles:
        table.add_column(title)
    return table


def _expectations(expectations: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("expectation", "subscription", "needs", "state", "why")
    for each in expectations:
        table.add_row(
            visible(each.get("id", each.get("expectation", ""))),
            visible(each.get("subscription", "")),
            "\n".join(f"{name} {_range(need)}" for name, need in each.get("need", {}).items()),
            Text(_state(each), _STYLES.get(each["state"], "dim")),
            visible(_why(each)),
        )
    return table


def _state(each: Mapping[str, Any]) -> str:
    # Several expectations of a subscription are alternatives: the best that is satisfied is in force.
    return f"{each['state']}, in force" if each.get("in_force") is True else str(each["state"])


def _why(each: Mapping[str, Any]) -> str:
    if each["state"] == "satisfied":
        return f"by {', '.join(each['by'])}" if each.get("by") else ""
    absent = each.get("absent", 0)
    if each.get("why") == "no-publisher":
        return f"no-publisher: {count(absent, 'profile')} declared, not connected" if absent else "no-publisher"
    short = [f"{reason['property']} {_reason(reason)}" for reason in each.get("reasons", ())]
    if absent:
        short.append(f"{count(absent, 'profile')} declared, not connected")
    return ": ".join(part for part in (each.get("why", ""), "; ".join(short)) if part)


def _reason(reason: Mapping[str, Any]) -> str:
    if reason["current"] is None:
        return "is missing"
    return f"is {_value(reason['current'])}, {_value(reason['reachable'])} at best"


def _profiles(profiles: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("profile", "values", "used by", "advice")
    for each in profiles:
        table.add_row(
            visible(each["id"] + (f" [{each['mode']}]" if each["mode"] else "")),
            "\n".join(f"{name} {_operates(value)}" for name, value in each["values"].items()),
            _used(each),
            _advice(each),
        )
    return table


def _used(profile: Mapping[str, Any]) -> str:
    if profile["state"] == "there":
        return count(profile["expectations"], "expectation")
    return "declared, not connected" if profile["state"] == "away" else str(profile["state"])


def _advice(profile: Mapping[str, Any]) -> str:
    if profile["violated"]:
        return f"keeps less than it says: {', '.join(profile['violated'])}"
    if profile["frozen"]:
        return "frozen"
    return "" if profile["advice"] is None else str(profile["advice"]["status"])


def _operates(value: Mapping[str, Any]) -> str:
    said = f"{_value(value['declared'])} of {_range(value)}"
    measured = value["measured"]
    return said if measured is None else f"{said}, measured {_value(measured)}"


def _range(bounds: Mapping[str, Any]) -> str:
    lb, ub, unit = bounds["lb"], bounds["ub"], bounds["unit"]
    if lb is None or ub is None:
        text = f"at least {_value(lb)}" if lb is not None else "any" if ub is None else f"at most {_value(ub)}"
    else:
        text = _value(lb) if lb == ub else f"{_value(lb)}..{_value(ub)}"
    return f"{text} {unit}".strip()


def _value(value: float | str | None) -> str:
    return "nothing" if value is None else value if isinstance(value, str) else f"{value:g}"
