"""Why something was detected or was not, as it is told: as data, with all of it in lines of text.

`situ.explain.policy_match` finds it out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from situ.event.instants import print_instant
from situ.explain.policy_match import (
    ExplainedAbsence,
    ExplainedCondition,
    ExplainedDetection,
    ExplainedMiss,
    FailedCondition,
    Lack,
    LackReason,
    ReportedDetection,
    UnreadEvent,
    UnreadReason,
)
from situ.lang.json_form import Explanation
from situ.policies.logic_tree import duration_text, literal_text, part_text
from situ.policies.model import Cause, ConditionPart, Disjunction, Observation, Policy, SequenceLiteral
from situ.policies.reference import Bindings, Occurrence

Moment = Callable[[int], str]
"""How an instant reads."""
MET, NOT_MET = "met", "not met"


class EventSource(Explanation, frozen=True, kw_only=True):
    """An event, by who published it and the id it had."""

    source: str
    id: str


class MetClause(Explanation, frozen=True, kw_only=True):
    """How a clause of the policy was met."""

    clause: str
    by: str | None
    """What occurred; null where it is met by what is absent alone."""
    absent: tuple[str, ...]
    """What did not occur."""


class DetectionExplanation(Explanation, frozen=True, kw_only=True):
    """Why a policy detected something."""

    detection: str
    policy: str
    bindings: dict[str, str]
    time: str
    """When it was settled."""
    activation: str
    """When the last of its events happened."""
    causes: tuple[EventSource, ...]
    clauses: tuple[MetClause, ...]
    text: tuple[str, ...]
    """All of it in words, line by line."""


class MissingPart(Explanation, frozen=True, kw_only=True):
    """A part of a clause that was not met."""

    literal: str
    why: LackReason


class FailedClause(Explanation, frozen=True, kw_only=True):
    """A clause of the policy that was not met by what came nearest."""

    clause: str
    refuted: tuple[str, ...]
    """What should have been absent, and was not."""
    lacks: tuple[MissingPart, ...]


class OverlookedEvent(Explanation, frozen=True, kw_only=True):
    """An event that the policy did not look at."""

    why: UnreadReason
    source: str
    id: str
    time: str
    problem: str
    """What is wrong with a dead letter."""


class MissExplanation(Explanation, frozen=True, kw_only=True):
    """Why a policy did not detect something, or that it did after all."""

    policy: str
    bindings: dict[str, str]
    detected: tuple[str, ...]
    """Detections that there are after all; then nothing has failed."""
    undecided: tuple[str, ...]
    """Those that there will be if nothing more comes."""
    untold: tuple[str, ...]
    """Those that there would be by the policy and the tables as they are now."""
    suspended: bool
    settled: str | None
    """How far the policy has decided; null if that is not known, or nothing is."""
    waits_for: str
    """Whom it waits for before it decides."""
    unread: tuple[OverlookedEvent, ...]
    nearest: dict[str, str]
    """Whom the nearest thing to a match is about."""
    activation: str | None
    failed: tuple[FailedClause, ...]
    text: tuple[str, ...]
    """All of it in words, line by line."""


def report_detection(policy: Policy, why: ExplainedDetection, moment: Moment = print_instant) -> DetectionExplanation:
    """A detection, as it is told; ``moment`` says how instants read in the text."""
    found = why.detection
    return DetectionExplanation(
        detection=found.id,
        policy=found.policy,
        bindings=dict(found.bindings),
        time=print_instant(found.time),
        activation=print_instant(found.activation),
        causes=tuple(EventSource(source=each.source, id=each.id) for each in found.causes),
        clauses=tuple(
            MetClause(
                clause=part_text(each.part),
                by=" and ".join(literal_text(met.literal) for met in each.met) or None,
                absent=tuple(literal_text(absent.literal) for absent in each.absent),
            )
            for each in why.conditions
        ),
        text=tuple(detection_lines(policy, why, moment)),
    )


def report_miss(policy: Policy, why: ExplainedMiss, moment: Moment = print_instant) -> MissExplanation:
    """A miss, as it is told; ``moment`` says how instants read in the text."""
    facts = why.facts
    return MissExplanation(
        policy=policy.name,
        bindings=dict(why.bindings),
        detected=tuple(each.id for each in why.detected),
        undecided=tuple(each.id for each in why.undecided),
        untold=tuple(each.id for each in why.untold),
        suspended=facts.suspended,
        settled=None if facts.settled is None else print_instant(facts.settled),
        waits_for=facts.waits_for,
        unread=tuple(
            OverlookedEvent(
                why=each.why,
                source=each.cause.source,
                id=each.cause.id,
                time=print_instant(each.time),
                problem=each.problem,
            )
            for each in facts.unread
        ),
        nearest=dict(why.nearest),
        activation=None if why.activation is None else print_instant(why.activation),
        failed=tuple(
            FailedClause(
                clause=part_text(each.part),
                refuted=tuple(literal_text(literal) for literal, _ in each.refuted),
                lacks=tuple(MissingPart(literal=literal_text(lack.literal), why=lack.why) for lack in each.lacks),
            )
            for each in why.failed
        ),
        text=tuple(miss_lines(policy, why, moment)),
    )


def detection_lines(policy: Policy, why: ExplainedDetection, moment: Moment = print_instant) -> list[str]:
    """A detection: whom it binds, what its events said, how each condition was met."""
    return list(_Telling(policy, moment).detection(why))


def miss_lines(policy: Policy, why: ExplainedMiss, moment: Moment = print_instant) -> list[str]:
    """A miss: the nearest thing to a match, and what failed in it."""
    return list(_Telling(policy, moment).miss(why))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The words.


class _Telling:
    def __init__(self, policy: Policy, moment: Moment) -> None:
        self.policy, self.moment = policy, moment

    def detection(self, why: ExplainedDetection) -> Iterator[str]:
        found = why.detection
        yield f"{found.policy}: {_identities(dict(found.bindings))}"
        yield f"  detection {found.id}"
        waited = f", settled at {self.moment(found.time)}" if found.time != found.activation else ""
        yield f"  activated at {self.moment(found.activation)}{waited}"
        yield "because"
        for cause, said in why.said.items():
            yield from (f"  {self._observation(each)}" for each in said)
            if not said:
                yield f"  {_event(cause)}, which is not here any more"
        yield "so that"
        for explained in why.conditions:
            yield from self._met(explained)

    def miss(self, why: ExplainedMiss) -> Iterator[str]:
        asked = _identities(why.bindings) or "anything"
        yield f"{self.policy.name}: {asked} around {self.moment(why.at)}"
        for found in why.detected:
            yield f"  was detected: {self._report(found)}"
        if why.detected:
            return
        yield from self._facts(why)
        if why.undecided or why.untold:
            return
        if why.activation is None:
            yield "  nothing of it happened around that time"
        else:
            yield f"  nearest to it: {_identities(why.nearest)}, activated at {self.moment(why.activation)}"
        failed = {each.place: each for each in why.failed}
        for place, part in enumerate(self.policy.conditions):
            if place in failed:
                yield from self._failed(failed[place])
            elif place in why.met:
                yield from self._met(why.met[place])
            else:
                yield f"  not judged: {self._part(part)}"

    def _facts(self, why: ExplainedMiss) -> Iterator[str]:
        """What detection itself came to."""
        facts = why.facts
        if facts.suspended:
            yield "  the policy is suspended: it decides nothing"
        for each in why.undecided:
            yield f"  is not decided yet, and would be detected if nothing more came: {self._report(each)}"
        if why.undecided:
            settled = (
                "nothing is decided yet" if facts.settled is None else f"decided up to {self.moment(facts.settled)}"
            )
            yield f"    {settled}" + (f"; it waits for {facts.waits_for}" if facts.waits_for else "")
        for each in why.untold:
            yield f"  was not detected, though the policy and the tables of now say so: {self._report(each)}"
        for unread in facts.unread:
            yield f"  {self._unread(unread)}"

    def _unread(self, unread: UnreadEvent) -> str:
        match unread.why:
            case UnreadReason.LATE:
                return f"late, not looked at: {self._said(unread)}"
            case UnreadReason.HIDDEN:
                return f"not visible to the policy: {self._said(unread)}"
            case UnreadReason.DEAD:
                return f"a dead letter: {self.moment(unread.time)}  {_event(unread.cause)}: {unread.problem}"

    def _said(self, unread: UnreadEvent) -> str:
        if unread.said is None:
            return f"{self.moment(unread.time)}  {_event(unread.cause)}"
        return self._observation(unread.said)

    def _report(self, report: ReportedDetection) -> str:
        return f"{report.id}, {_identities(dict(report.bindings))}, at {self.moment(report.time)}"

    # ── conditions ──

    def _part(self, part: ConditionPart) -> str:
        return part_text(part, self.policy.window)

    def _met(self, explained: ExplainedCondition) -> Iterator[str]:
        yield f"  {MET}: {self._part(explained.part)}"
        for each in explained.met:
            by = literal_text(each.literal, self.policy.window)
            shown = f"{by}: " if isinstance(explained.part, Disjunction) else ""
            yield f"    {shown}{self._occurrence(each.occurrence)}"
            for step, part in each.occurrence.parts:
                yield f"      {step.relation.text}: {self._occurrence(part)}"
        for absent in explained.absent:
            yield from self._absent(absent, alone=len(explained.absent) == 1)

    def _absent(self, absent: ExplainedAbsence, *, alone: bool) -> Iterator[str]:
        span = f"from {self.moment(absent.start)} to {self.moment(absent.end)}"
        text = literal_text(absent.literal, self.policy.window)
        if not absent.close:
            yield f"    {text}: nothing to the contrary {span}"
            return
        yield f"    {text}: to the contrary{'' if alone else ', but not together with the rest,'}"
        for occurrence in absent.close:
            yield f"      {self._occurrence(occurrence)}"

    def _failed(self, failed: FailedCondition) -> Iterator[str]:
        yield f"  {NOT_MET}: {self._part(failed.part)}"
        for literal, occurrence in failed.refuted:
            yield f"    {literal_text(literal, self.policy.window)}: refuted, {self._occurrence(occurrence)}"
        for lack in failed.lacks:
            yield f"    {literal_text(lack.literal, self.policy.window)}: {self._lack(lack)}"
            yield from (f"      {self._observation(each)}" for each in lack.seen)

    def _lack(self, lack: Lack) -> str:
        who = f"{lack.alias} = {lack.identity}" if lack.identity else lack.alias
        part = f"`{lack.relation.text}`" if lack.relation is not None else ""
        nearest = self._occurrence(lack.occurrence) if lack.occurrence is not None else ""
        match lack.why:
            case LackReason.OTHER_TIME:
                return f"it occurred {duration_text(lack.apart)} away, {nearest}"
            case LackReason.OTHER_IDENTITY:
                return f"not for {who}; it occurred for others, {nearest}"
            case LackReason.OTHER_OCCURRENCE:
                return f"it occurred, {nearest}, but not at the time another sequence is about"
            case LackReason.UNSEEN:
                return f"no event said anything about {who} that {part} looks at"
            case LackReason.UNKNOWN:
                return f"no pull source knows {who}"
            case LackReason.CONSTRAINT:
                return f"{who} does not satisfy `{self.policy.alias(lack.alias).text}`"
            case LackReason.APART:
                return f"both sides were seen, but {duration_text(lack.apart)} apart"
            case LackReason.SPENT:
                return f"it would have been true, but an event was spent on another pair ({self.policy.consumption})"
            case LackReason.UNTRUE:
                return f"{part} was not true of what was seen"
            case LackReason.FIRST:
                return f"{part}, which comes first, was not true of what was seen"
            case LackReason.SECOND:
                return f"{part}, which follows, was not true of what was seen"
            case LackReason.ORDER:
                if lack.apart <= 0:
                    return f"both occurred, but the second {duration_text(-lack.apart)} before the first"
                early = isinstance(lack.literal, SequenceLiteral) and lack.apart <= lack.literal.gaps
                return f"both occurred, but {'only ' * early}{duration_text(lack.apart)} apart"
            case LackReason.BROKEN:
                return f"{part} should have been absent, but was not, {nearest}"

    # ── what happened ──

    def _occurrence(self, occurrence: Occurrence) -> str:
        when = "at any time" if occurrence.time is None else f"at {self.moment(occurrence.time)}"
        by = ", ".join(_event(cause) for cause in sorted(occurrence.causes))
        return f"{_identities(occurrence.bindings)} {when}" + (f", by {by}" if by else "")

    def _observation(self, observation: Observation) -> str:
        value = json.dumps(observation.value, ensure_ascii=False, default=str)
        said = f"{observation.concept} {observation.identity}, {observation.attribute} = {value}"
        return f"{self.moment(observation.time)}  {_event(observation.cause)}: {said} ({observation.push})"


def _identities(bindings: Bindings) -> str:
    return ", ".join(f"{alias} = {identity}" for alias, identity in sorted(bindings.items()))


def _event(cause: Cause) -> str:
    return f"{cause.source}/{cause.id}"
