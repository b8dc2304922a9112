"""Explanations of quality in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from situ.quality.explanation.model import (
    AdviceExplanation,
    CandidateExplanation,
    ClaimExplanation,
    ExpectationExplanation,
    NeedExplanation,
    NeedRelaxation,
    NeedVerdict,
    ProfileAdaptation,
    ProfileExplanation,
    PublisherExplanation,
    RefusalExplanation,
    Value,
)

_GAP = "  "
_WHY = {
    "no-publisher": "nobody is there who publishes such events",
    "missing": "nobody tells all that is asked for",
    "out-of-reach": "nobody can do that",
    "declined": "those who could would not",
    "violated": "somebody does less than it said",
}


def as_text(found: ExpectationExplanation) -> str:
    """All about an expectation, for people."""
    return "\n".join(_lines(found))


def _lines(found: ExpectationExplanation) -> Iterator[str]:
    yield f"{found.expectation} ({found.subscription}, utility {found.utility:g}): {_state(found)}"
    if found.profiles:
        yield from _table(found)
    if found.absent:
        yield f"{_GAP}declared, not connected: {_absent(found)}"
    if ways := [*(_change_way(each) for each in found.changes), *_relaxed_ways(found.relaxations)]:
        yield f"{_GAP}to satisfy {found.expectation}: {' | or '.join(ways)}"
    if decided := _decided(found):
        yield f"{_GAP}{decided}"
    if found.shape:
        dropped = ", ".join(f"{count} {reason}" for reason, count in sorted(found.drops.items()))
        yield f"{_GAP}shaped: {_shape(found.shape)}{f'; dropped: {dropped}' if dropped else ''}"


# ── how it stands ──


def _state(found: ExpectationExplanation) -> str:
    if found.state == "satisfied":
        in_force = ", in force" if found.in_force == found.expectation else ""
        return f"satisfied by {_and(found.by)}{in_force}"
    if found.declined is not None:
        return f"{found.state}, declined by {found.declined.strategy}: {_why(found, found.declined)}"
    if found.adapting:
        return f"{found.state}, adapting: {', '.join(_change_way(each) for each in found.adapting)}"
    reason = _WHY.get(found.why or "", found.why)
    return f"{found.state}: {reason}" if reason else found.state


def _why(found: ExpectationExplanation, declined: RefusalExplanation) -> str:
    change, cost = declined.change, declined.change.cost
    match declined.why:
        case "alternative":
            costs = "" if cost is None else f", {found.expectation} costs {cost:g} more"
            return f"alternative {declined.alternative} is satisfied ({_and(declined.alternative_by)}){costs}"
        case "harm":
            return f"{_change_way(change)} would take from others what they have"
        case "conflict":
            return f"{_change_way(change)} would take from others what is worth more"
        case "budget":
            return f"{_change_way(change)} is more than the budget leaves"
        case "worth":
            return f"{_change_way(change)} is more than it is worth"


def _decided(found: ExpectationExplanation) -> str:
    parts = []
    if found.since:
        verb = "decided" if found.declined or found.adapting else "so since"
        parts.append(f"{verb} {found.since}{f' after {found.after}' if found.after else ''}")
    if found.declined is not None:
        if found.declined.tipped:
            parts.append(f"would be adopted if {found.declined.tipped}")
        if not found.declined.exact:
            parts.append("there were too many plans to go through: searched greedily")
    return "; ".join(parts)


def _absent(found: ExpectationExplanation) -> str:
    if not found.absent_by:
        return f"{found.absent} {'profile' if found.absent == 1 else 'profiles'}"
    more = found.absent - len(found.absent_by)
    return ", ".join(found.absent_by) + (f", and {more} more" if more > 0 else "")


# ── the table ──


def _table(found: ExpectationExplanation) -> Iterator[str]:
    rows = [["profile", *(_need(each) for each in found.needs), ""]]
    widths = [max(len(_value(one.needs[place])) for one in found.profiles) for place in range(len(found.needs))]
    for each in found.profiles:
        cells = [f"{_value(one):{width}}  {_verdict(one)}" for one, width in zip(each.needs, widths, strict=True)]
        rows.append([_profile(each), *cells, _changed(found, each)])
    columns = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        yield (_GAP + _GAP.join(f"{cell:{width}}" for cell, width in zip(row, columns, strict=True))).rstrip()


def _need(need: NeedExplanation) -> str:
    ends = ("" if each is None else _shown(each) for each in (need.lb, need.ub))
    floor = "" if need.floor is None else f" (floor {_shown(need.floor)})"
    return f"{need.property} {'..'.join(ends)}{floor}"


def _profile(viewed: CandidateExplanation) -> str:
    return f"{viewed.name} [{viewed.mode}]" if viewed.mode else viewed.name


def _value(judged: NeedVerdict) -> str:
    if judged.verdict == "missing":
        return "–"
    shown = "any" if judged.effective is None else _shown(judged.effective)
    if judged.declared is not None and judged.declared != judged.effective:
        shown += f" (said {_shown(judged.declared)})"
    return shown


def _verdict(judged: NeedVerdict) -> str:
    if judged.verdict in ("ok", "missing"):
        return judged.verdict
    short = "short" if judged.short_by is None else f"short by {judged.short_by:g}"
    if judged.verdict == "short":
        return short
    return f"{short}, best {'–' if judged.best is None else _shown(judged.best)}: out of reach"


def _changed(found: ExpectationExplanation, viewed: CandidateExplanation) -> str:
    change = viewed.change
    if viewed.satisfies or change is None:
        return ""
    met = {1: "it", 2: "both"}.get(len(found.needs), "all")
    values = ", ".join(f"{id} {_shown(value)}" for id, value in change.values.items())
    mode = f"mode {change.mode}: " if change.mode else ""
    return f"{mode}{values}: meets {met}{'' if change.cost is None else f', {change.cost:+g}'}"


# ── ways to satisfy it ──


def _change_way(change: ProfileAdaptation) -> str:
    cost = "" if change.cost is None else f" ({change.cost:+g})"
    return f"{change.profile} to {_target(change)}{cost}"


def _target(change: ProfileAdaptation) -> str:
    if change.mode:
        return f"mode {change.mode}"
    return ", ".join(f"{id} {_shown(value)}" for id, value in change.values.items())


def _relaxed_ways(relaxations: Sequence[NeedRelaxation]) -> Iterator[str]:
    """What is the same as in the one before is not said again."""
    verb = before = ""
    for each in relaxations:
        words = [f"to {_shown(each.to)}"]
        if each.property != before:
            words.insert(0, f"its {each.property}")
        now = "lower" if each.maximise else "raise"
        if now != verb:
            words.insert(0, now)
        verb, before = now, each.property
        yield " ".join(words) + _with(each.change)


def _with(change: ProfileAdaptation) -> str:
    if not change.mode and not change.values:
        return ""
    cost = "" if change.cost is None else f" ({change.cost:+g})"
    return f" with {change.profile} {f'in mode {change.mode}' if change.mode else 'raised'}{cost}"


# ── a publisher ──


def publisher_as_text(found: PublisherExplanation) -> str:
    """What is claimed of a publisher, and what is advised, for people."""
    return "\n".join(line for each in found.profiles for line in _profile_lines(each))


def _profile_lines(found: ProfileExplanation) -> Iterator[str]:
    mode = f" [{found.mode}]" if found.mode else ""
    yield f"{found.profile}{mode}: {_pairs(found.values)}"
    if found.baseline or found.baseline_mode:
        base = [f"mode {found.baseline_mode}"] if found.baseline_mode else []
        yield f"{_GAP}before anybody asked: {', '.join([*base, *([_pairs(found.baseline)] if found.baseline else [])])}"
    if not found.claims:
        yield f"{_GAP}nobody claims anything"
    for each in found.claims:
        yield f"{_GAP}claimed: {_claim(each)}"
    if found.advice is not None:
        yield f"{_GAP}advice {found.advice.id}: {_advice(found.advice)}"
    if found.held_back:
        yield f"{_GAP}{found.held_back}"
    if found.violated:
        yield f"{_GAP}does less than it says: {', '.join(found.violated)}"


def _claim(claim: ClaimExplanation) -> str:
    cost = "" if claim.change.cost is None else f", {claim.change.cost:+g}"
    return f"{_target(claim.change)} for {claim.expectation} ({claim.subscription}, utility {claim.utility:g}){cost}"


def _advice(advice: AdviceExplanation) -> str:
    target = f"mode {advice.mode}" if advice.mode else _pairs(advice.values)
    return f"{target}, {advice.status} {advice.since}"


# ── words ──


def _pairs(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{id} {_shown(value)}" for id, value in values.items())


def _shape(shape: Mapping[str, Any]) -> str:
    return ", ".join(_SHAPED[what](part) for what, part in shape.items())


def _thinned(part: Mapping[str, Any]) -> str:
    last = part["limits"][-1]
    minutes = last["minutes"]
    return f"at most {last['events']} {'a minute' if minutes == 1 else f'in {minutes} minutes'}"


_SHAPED: Mapping[str, Callable[[Any], str]] = {
    "sources": lambda part: f"only from {_and(part)}",
    "each": lambda part: f"only events with enough {' and '.join(each['about'] for each in part)}",
    "aggregate": lambda part: f"{part['fn']} of {part['of']} over {part['window']}",
    "suppress": lambda part: ", ".join(f"{each['of']} within {each['delta']:g} left out" for each in part),
    "thin": _thinned,
}


def _shown(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _and(names: Sequence[str]) -> str:
    return ", ".join(names) or "nobody"
