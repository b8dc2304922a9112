"""What the project declares comes in: what is new, what is another, what is gone, and who can get what of whom.

A declaration counts when it is made and when it changes; in between, the client that it is about may change what it
says as if it had registered it itself. What is declared for a publisher waits for it; what is declared for a
subscription waits for that, and for its client once that has left.
"""

from __future__ import annotations

import json
from typing import Any

from situ.lang.records import replace
from situ.quality.model.allocation_problem import PublisherActions
from situ.quality.model.declarations import Expectation, Quality
from situ.quality.model.json_form import expectation_as_json, profile_as_json
from situ.quality.negotiation.calls import change_profile, is_away
from situ.quality.negotiation.feedback import StateChange
from situ.quality.negotiation.inputs_and_effects import DeployedQuality, NotifyClient
from situ.quality.negotiation.persistence import (
    GONE,
    HERE,
    PRESENCE,
    declared_for,
    follow_levels,
    levels_of,
    read_expectation,
    read_profile,
)
from situ.quality.negotiation.presence import (
    drop_expectation,
    drop_profile,
    note_presence,
    put_expectations,
    release_claims,
)
from situ.quality.negotiation.state import ExpectationRecord, NegotiatorState, ProfileRecord, StepWork


def deploy(state: NegotiatorState, work: StepWork, given: DeployedQuality, *, first: bool = False) -> None:
    """Take over what is declared now; ``first``: all of it has to be compared with what was kept."""
    former = state.quality
    another = first or given.quality != former
    state.deployed, state.actions = given, PublisherActions(given.quality.actions)
    if given.quality.properties != former.properties:
        _read_again(state, work)
    if another:
        _declare_expectations(state, work, given.quality)
        _declare_profiles(state, work, given.quality)
    _drop_what_left(state, work)
    rematch_waiting(state, work, list(state.expectations.values()))
    state.absent = {}
    for id, known in state.profiles.items():
        note_presence(state, known)
        if another or known.pool != state.pool_of(id):
            work.profiles.add(id)
    if another and (clients := declared_for(state)):
        work.keep.add(PRESENCE)
        for client in clients & (state.here | state.heard) - state.noted:
            _note(state, work, client)
    if given.quality.strategies != former.strategies:
        work.pools |= state.in_pool.keys()


def _is_elsewhere(state: NegotiatorState, held: ExpectationRecord) -> bool:
    """Whether an expectation is to be matched against others than it is; notes whether anybody is there for it."""
    before = held.active
    held.away = held.declared and is_away(state, held.expectation)
    pools = state.pools_of(held.expectation) if held.active else frozenset()
    return held.active != before or held.pools != pools


def _read_again(state: NegotiatorState, work: StepWork) -> None:
    """Properties are others: what is said of them has to be read as that, or means nothing."""
    known = state.quality.known
    for id, held in list(state.expectations.items()):
        expectation = read_expectation(expectation_as_json(held.expectation), known)
        if expectation is None:
            drop_unowned(state, work, id, held)
            drop_expectation(state, work, id)
        elif expectation != held.expectation:
            release_claims(state, work, id)
            held.expectation = expectation
            put_expectations(state, work, (held,))
    for id, each in list(state.profiles.items()):
        profile = read_profile(profile_as_json(each.profile), known)
        if profile is None:
            drop_profile(state, work, id)
        else:
            before, each.profile = levels_of(each.profile), profile
            claimants = set(each.ledger.claims)
            follow_levels(each, before)
            for claimant in claimants - each.ledger.claims.keys():
                state.claimed[claimant].discard(id)
                work.expectations.add(claimant)


def drop_unowned(state: NegotiatorState, work: StepWork, id: str, held: ExpectationRecord) -> None:
    """Tell a client that an expectation of its is no more, though nobody revoked it."""
    message = StateChange(
        expectation=id,
        version=held.expectation.version,
        number=state.next_number(held.expectation.client, work.now),
        state="revoked",
        why="missing",
        since=work.now,
    )
    work.tells.append(NotifyClient(client=held.expectation.client, kind="sub", id=id, message=message))
    work.keep_expectation(id)


# ── declarations ──


def _declare_expectations(state: NegotiatorState, work: StepWork, quality: Quality) -> None:
    for id in [id for id, held in state.expectations.items() if held.declared and id not in quality.expectations]:
        drop_expectation(state, work, id)
    _forget_declarations(state, work, "expectation", quality.expectations.keys())
    new = []
    for id, expectation in quality.expectations.items():
        if _is_news(state, work, f"expectation/{id}", expectation_as_json(replace(expectation, order=0))):
            new.append(_declared_expectation(state, work, expectation))
    put_expectations(state, work, new)


def _declared_expectation(state: NegotiatorState, work: StepWork, expectation: Expectation) -> ExpectationRecord:
    held = state.expectations.get(expectation.id)
    if held is None:
        state.order += 1
        held = ExpectationRecord(expectation=replace(expectation, order=state.order, version=1), declared=True)
        state.expectations[expectation.id] = held
    else:
        release_claims(state, work, expectation.id)
        former = held.expectation
        if former.subscription != expectation.subscription:
            drop_expectation(state, work, expectation.id)
            state.expectations[expectation.id] = held
        held.expectation = replace(expectation, order=former.order, version=former.version + 1)
        held.declared = True
    held.away = is_away(state, held.expectation)
    work.keep_expectation(expectation.id)
    return held


def _declare_profiles(state: NegotiatorState, work: StepWork, quality: Quality) -> None:
    for id in [id for id, known in state.profiles.items() if known.declared and id not in quality.profiles]:
        drop_profile(state, work, id)
    _forget_declarations(state, work, "profile", quality.profiles.keys())
    for id, profile in quality.profiles.items():
        if not _is_news(state, work, f"profile/{id}", profile_as_json(profile)):
            continue
        known = state.profiles.get(id)
        if known is None:
            state.profiles[id] = known = ProfileRecord(profile=replace(profile, version=1))
            work.keep_profile(id)
        else:
            known.course.heard(profile.properties | known.profile.properties, mode=True)
            change_profile(state, work, known, replace(profile, version=known.profile.version + 1))
        known.declared = True


def _is_news(state: NegotiatorState, work: StepWork, key: str, value: Any) -> bool:
    text = json.dumps(value, sort_keys=True)
    if state.declarations.get(key) == text:
        return False
    state.declarations[key] = text
    work.keep.add(f"declaration/{key}")
    return True


def _forget_declarations(state: NegotiatorState, work: StepWork, kind: str, declared: Any) -> None:
    for key in [key for key in state.declarations if key.startswith(f"{kind}/")]:
        if key.partition("/")[2] not in declared:
            del state.declarations[key]
            work.keep.add(f"declaration/{key}")


# ── who is there ──


def _drop_what_left(state: NegotiatorState, work: StepWork) -> None:
    """Without its subscription an expectation is revoked, without its advertisement a profile."""
    for id, held in list(state.expectations.items()):
        if not held.declared and held.expectation.subscription not in state.relevance.relevant:
            drop_expectation(state, work, id)
    for id, known in list(state.profiles.items()):
        if not known.declared and state.pool_of(id) is None:
            drop_profile(state, work, id)


def client_connected(state: NegotiatorState, work: StepWork, client: str) -> None:
    if client in state.here and client not in state.gone:
        return
    state.here.add(client)
    state.gone.discard(client)
    state.heard.discard(client)
    state.left_at.pop(client, None)
    if _is_declared(state, client):
        work.keep.add(GONE)
        _note(state, work, client)
        _turn(state, work, client)


def _note(state: NegotiatorState, work: StepWork, client: str) -> None:
    """Keep whether somebody is here."""
    work.keep.add(f"{HERE}/{client}")
    if state.is_there(client):
        state.noted.add(client)
    else:
        state.noted.discard(client)


def publisher_active(state: NegotiatorState, work: StepWork, client: str, last: int) -> None:
    """Events of a publisher came, the last of this time in µs. Not everybody who publishes is connected: who is not, is
    there as long as nobody says that it is gone."""
    if state.is_there(client) or last <= state.left_at.get(client, 0.0) * 1_000_000:
        return
    if any(known.declared for known in state.profiles.of(client).values()):
        state.heard.add(client)
        _note(state, work, client)
        _turn(state, work, client)


def client_left(state: NegotiatorState, work: StepWork, client: str) -> None:
    """A client is gone: with what it registered, and for the time being with what is declared for it."""
    was_there = state.is_there(client)
    state.here.discard(client)
    state.heard.discard(client)
    if client in state.noted:
        _note(state, work, client)
    for id, held in state.expectations.of(client).items():
        if not held.declared:
            drop_expectation(state, work, id)
    for id, known in state.profiles.of(client).items():
        if not known.declared:
            drop_profile(state, work, id)
        elif was_there:
            drop_profile(state, work, id)
            # Whoever comes back begins with what is declared, not with what it was advised to do before.
            declared = state.quality.profiles.get(id, known.profile)
            state.profiles[id] = ProfileRecord(
                profile=replace(declared, version=known.profile.version + 1), declared=True
            )
    if was_there and _is_declared(state, client):
        state.gone.add(client)
        state.left_at[client] = work.now
        work.keep.add(GONE)
        _turn(state, work, client)


def _is_declared(state: NegotiatorState, client: str) -> bool:
    """Whether anything waits for a client; names that come and go for ever are not remembered."""
    mine: list[ExpectationRecord | ProfileRecord] = [
        *state.expectations.of(client).values(),
        *state.profiles.of(client).values(),
    ]
    return any(each.declared for each in mine)


def _turn(state: NegotiatorState, work: StepWork, client: str) -> None:
    """Declared things of a client wait for it, or wait no longer."""
    for known in state.profiles.of(client).values():
        if known.declared:
            note_presence(state, known)
            work.profiles.add(known.profile.id)
            work.keep_profile(known.profile.id)
    rematch_waiting(state, work, [each for each in state.expectations.of(client).values() if each.declared])


def rematch_waiting(state: NegotiatorState, work: StepWork, some: list[ExpectationRecord]) -> None:
    """Match those elsewhere that are to be; what is not there for the time being wants nothing and hears nothing."""
    changed = [held for held in some if _is_elsewhere(state, held)]
    for held in changed:
        if not held.active:
            release_claims(state, work, held.expectation.id)
            held.told = held.told_at = None
            state.set_alarm(("tell", held.expectation.id), None)
            work.keep_expectation(held.expectation.id)
    put_expectations(state, work, changed)
