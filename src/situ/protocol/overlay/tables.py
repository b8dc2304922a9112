"""Tables between neighbours: what somebody wants, and what is advertised where, told only to those whom it concerns.

There are five: of interest and of scopes among the routers of a zone, what other zones want from the gateway to its
routers, and of interest and of scopes among gateways. All are told in the same way. The teller counts versions for each
neighbour; a difference says which version it follows, and whoever lacks that one pulls the whole table. While a version
is unconfirmed further changes wait and go together, so a storm of subscriptions is a few messages.

A subscription goes only where something is advertised that it may see. Whoever begins to advertise is told who is
interested, *before* its table of scopes is confirmed: the confirmation says from which version of the interest on that
holds. What is not eligible any more is withdrawn later, as it often comes back.

Nothing learnt from a peer is told to a peer. Only the gateway tells what it heard inside to other zones, and what it
heard of them inside.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from situ.lang.catalogue import OUT_OF_PLACE
from situ.lang.tags import TagSet
from situ.protocol.overlay.messages import (
    Confirmed,
    Entry,
    External,
    ExternalAck,
    ExternalFull,
    InterestAck,
    InterestDelta,
    InterestFull,
    OverlayMessage,
    Pull,
    Row,
    SltAck,
    SltDelta,
    SltFull,
    TableAck,
    TableDelta,
    TableFull,
    Want,
    ZoneInterest,
    ZoneInterestAck,
    ZoneInterestFull,
    ZonePull,
    ZoneSlt,
    ZoneSltAck,
    ZoneSltFull,
)
from situ.protocol.overlay.state import (
    EXTERNAL,
    GATEWAY,
    INTEREST,
    SLT,
    ZONE_INTEREST,
    ZONE_SLT,
    ZONE_TABLES,
    OverlayState,
    SentTable,
    Wait,
)

KINDS: dict[str, tuple[type[TableDelta], type[TableFull], type[TableAck]]] = {
    INTEREST: (InterestDelta, InterestFull, InterestAck),
    SLT: (SltDelta, SltFull, SltAck),
    EXTERNAL: (External, ExternalFull, ExternalAck),
    ZONE_INTEREST: (ZoneInterest, ZoneInterestFull, ZoneInterestAck),
    ZONE_SLT: (ZoneSlt, ZoneSltFull, ZoneSltAck),
}
TABLE_OF: dict[type, str] = {kind: name for name, kinds in KINDS.items() for kind in kinds}
ANSWERED_BY = {INTEREST: SLT, EXTERNAL: SLT, ZONE_INTEREST: ZONE_SLT}
"""A table of wants → the table of scopes that it answers: without that one it would be empty by mistake."""


def key_of(entry: Entry) -> Any:
    return entry.id if isinstance(entry, Want) else entry


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Telling: what is due goes out, to whoever can hear it.


def tell(state: OverlayState, table: str, to: str, now: float, *, at_once: bool = False) -> None:
    """Tell a neighbour what changed, unless something is unconfirmed and can be waited for."""
    sent = state.sent.get((table, to))
    if sent is None or state.learning or not sent.due or not _hears(state, table, to, now):
        return
    delta, full, _ = KINDS[table]
    term, zone = (0, "") if table in (INTEREST, SLT) else (state.term, state.zone)
    if sent.whole or at_once or sent.acked >= sent.version:
        sent.told = now
    if sent.whole:
        sent.version += 1
        sent.whole = False
        sent.add.clear()
        sent.remove.clear()
        entries: tuple[Any, ...] = tuple(sent.entries.values())
        if table == INTEREST:
            state.send(to, InterestFull(sent.version, entries, adopted=_adopted(state)))
        else:
            _send(state, table, to, full(sent.version, entries, term, zone))
    elif at_once or sent.acked >= sent.version:
        sent.version += 1
        add: tuple[Any, ...] = tuple(sent.add.values())
        remove = tuple(sent.remove)
        sent.add.clear()
        sent.remove.clear()
        if table == INTEREST:
            state.send(to, InterestDelta(sent.version - 1, sent.version, add, remove, adopted=_adopted(state)))
        else:
            _send(state, table, to, delta(sent.version - 1, sent.version, add, remove, term, zone))


def _adopted(state: OverlayState) -> tuple[str, ...]:
    """Routers that were adopted here of late: what waits for them comes before what is wanted on their account."""
    return tuple(state.adopting)


def _hears(state: OverlayState, table: str, to: str, now: float) -> bool:
    if table in ZONE_TABLES:
        if not state.acts(now) or not state.zones[to].term or not is_ready(state, now):
            return False
        if table == ZONE_INTEREST and not state.zones[to].asked:
            return False
    elif not state.peers[to].live or (
        table == EXTERNAL
        and not (
            # Half a table would be taken for the whole: until all zones have spoken, everything comes to the gateway.
            state.gateway == state.me
            and all(state.table_held(ZONE_INTEREST, zone).version >= 0 for zone in state.zones)
        )
    ):
        return False
    answers = ANSWERED_BY.get(table)
    return answers is None or state.table_held(answers, to).version >= 0


def _send(state: OverlayState, table: str, to: str, message: OverlayMessage) -> None:
    if table in ZONE_TABLES:
        state.send_zone(to, message)
    else:
        state.send(to, message)


def is_ready(state: OverlayState, now: float) -> bool:
    """Whether this router knows what all others of its zone want, or that they are away: before, it routes nothing."""
    if not state.is_ready:
        waited = now - state.booted >= state.timing.removed
        state.is_ready = all(
            (state.table_held(INTEREST, name).version >= 0 and state.table_held(SLT, name).version >= 0)
            or (waited and not peer.live)
            for name, peer in state.peers.items()
        )
    return state.is_ready


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What changed here, and whom it concerns.


def is_eligible(state: OverlayState, table: str, to: str, tags: TagSet) -> bool:
    """Whether a neighbour is told of a want with these tags: something that it may see is advertised there."""
    if state.flood:
        return True
    return state.document.eligible(state.table_held(ANSWERED_BY[table], to).entries, tags)


def own_want(state: OverlayState, want: Want, now: float) -> None:
    """A want of the children came or went."""
    present = want.id in state.own
    (state.matches.add if present else state.matches.remove)(want, state.me)
    for name in state.peers:
        _offer(state, INTEREST, name, want, present, now)
    if state.gateway == state.me:
        zone_want(state, want, now)


def zone_want(state: OverlayState, want: Want, now: float) -> None:
    """As gateway: a want of the zone may have come or gone."""
    present = any(to != GATEWAY for to in state.matches.destinations(want))
    for zone in state.zones:
        _offer(state, ZONE_INTEREST, zone, want, present, now)


def outside_want(state: OverlayState, want: Want, now: float) -> None:
    """As gateway: a want of other zones may have come or gone."""
    present = bool(state.outside.destinations(want))
    for name in state.peers:
        _offer(state, EXTERNAL, name, want, present, now)


def _offer(state: OverlayState, table: str, to: str, want: Want, present: bool, now: float) -> None:
    sent = state.table_sent(table, to)
    if not present:
        if want.id in sent.entries:
            sent.take(want.id)
            tell(state, table, to, now)
    elif want.id not in sent.entries and is_eligible(state, table, to, want.tags):
        sent.put(want.id, want)
        tell(state, table, to, now)


def wants_for(state: OverlayState, table: str) -> Iterable[Want]:
    """All wants that a table is chosen from."""
    if table == INTEREST:
        return [want for want, _ in state.own.values()]
    if table == EXTERNAL:
        return list(state.outside.every())
    return [want for want in state.matches.every() if any(to != GATEWAY for to in state.matches.destinations(want))]


def choose(state: OverlayState, table: str, to: str, now: float, *, withdraw: bool = False) -> None:
    """Choose anew which wants a neighbour is told; those not eligible any more wait for their withdrawal."""
    sent = state.table_sent(table, to)
    wants = {want.id: want for want in wants_for(state, table)}
    for id, want in wants.items():
        if id not in sent.entries and is_eligible(state, table, to, want.tags):
            sent.put(id, want)
    stale = False
    for id, entry in tuple(sent.entries.items()):
        if id not in wants:
            sent.take(id)
        elif isinstance(entry, Want) and not is_eligible(state, table, to, entry.tags):
            stale = True
            if withdraw:
                sent.take(id)
    if stale and not withdraw:
        state.sweeps.setdefault((table, to), now + state.timing.withdrawal)
    tell(state, table, to, now)


def sweep(state: OverlayState, now: float) -> None:
    """Withdraw what has not been eligible for long."""
    for key, due in tuple(state.sweeps.items()):
        if now >= due:
            del state.sweeps[key]
            choose(state, *key, now, withdraw=True)


def rows_changed(state: OverlayState, now: float) -> None:
    """Tags began or ceased to be advertised: bring every table of scopes up to date."""
    inside: dict[Row, None] = dict.fromkeys((*state.rows, *state.recovered))
    is_gateway = state.gateway == state.me
    told = dict(inside)
    if is_gateway:
        for zone in state.zones:
            told |= dict.fromkeys(state.table_held(ZONE_SLT, zone).entries)
    for name in state.peers:
        _bring(state, SLT, name, told, now)
    if is_gateway:
        for name, peer in state.peers.items():
            if peer.live:
                inside |= dict.fromkeys(state.table_held(SLT, name).entries)
        for zone in state.zones:
            _bring(state, ZONE_SLT, zone, inside, now)


def _bring(state: OverlayState, table: str, to: str, rows: dict[Row, None], now: float) -> None:
    sent = state.table_sent(table, to)
    if sent.entries.keys() != rows.keys():
        for row in rows:
            sent.put(row, row)
        for row in [row for row in sent.entries if row not in rows]:
            sent.take(row)
            state.settled.clear()
    tell(state, table, to, now)


def refresh(state: OverlayState, now: float) -> None:
    """Everything may be eligible for others: scopes changed, or this router became the gateway or ceased to be it."""
    rows_changed(state, now)
    for name in state.peers:
        choose(state, INTEREST, name, now)
        if state.gateway == state.me:
            choose(state, EXTERNAL, name, now)
    if state.gateway == state.me:
        for zone in state.zones:
            choose(state, ZONE_INTEREST, zone, now)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Hearing.


def on_table(state: OverlayState, sender: str, message: TableDelta | TableFull, now: float) -> None:
    """A neighbour told a table, or what changed in it."""
    table = TABLE_OF[type(message)]
    of = message.zone if table in ZONE_TABLES else sender
    held = state.table_held(table, of)
    if message.version <= held.version:
        reason = f"version {message.version} is here, or a later one"
        _out_of_place(state, sender, message, reason)
        if message.version == held.version:
            _confirm(state, table, of, sender, now)
        return
    before = held.entries
    if isinstance(message, TableFull):
        after: dict[Any, Entry] = {key_of(entry): entry for entry in message.entries}
    elif message.base != held.version:
        pull(state, table, of, now)
        return
    else:
        after = dict(before)
        for key in message.remove:
            after.pop(key, None)
        for entry in message.add:
            after[key_of(entry)] = entry
    held.version = message.version
    held.entries = after
    added = [entry for key, entry in after.items() if key not in before]
    removed = [entry for key, entry in before.items() if key not in after]
    # What follows for others is told as one: a part of a table would be taken for the whole.
    state.learning = True
    _LEARNT[table](state, of, added, removed, now)
    state.learning = False
    for key, sent in state.sent.items():
        if sent.due:
            tell(state, *key, now)
    _confirm(state, table, of, sender, now)


def pull(state: OverlayState, table: str, of: str, now: float) -> None:
    """Ask a neighbour for its table: something of it was lost. Not again before it can have answered."""
    held = state.table_held(table, of)
    have = held.version
    if have == held.asked[0] and now < held.asked[1] + state.timing.heartbeat / 2:
        return
    held.asked = (have, now)
    if table in ZONE_TABLES:
        state.send_zone(of, ZonePull(table, have, state.term, state.zone))
    else:
        state.send(of, Pull(table, have))


def _out_of_place(state: OverlayState, sender: str, message: OverlayMessage, reason: str) -> None:
    problem = OUT_OF_PLACE(kind=type(message).__name__, router=sender, reason=reason)
    state.report(sender, problem.code.code, problem.message)


def _learnt_interest(state: OverlayState, of: str, added: list[Any], removed: list[Any], now: float) -> None:
    for want in removed:
        state.matches.remove(want, of)
    for want in added:
        state.matches.add(want, of)
    if state.gateway == state.me:
        for want in (*added, *removed):
            zone_want(state, want, now)


def _learnt_rows(state: OverlayState, of: str, added: list[Any], removed: list[Any], now: float) -> None:
    choose(state, INTEREST, of, now)
    if state.gateway == state.me:
        choose(state, EXTERNAL, of, now)
        rows_changed(state, now)


def _learnt_external(state: OverlayState, of: str, added: list[Any], removed: list[Any], now: float) -> None:
    for want in removed:
        state.matches.remove(want, GATEWAY)
    for want in added:
        state.matches.add(want, GATEWAY)


def _learnt_zone_interest(state: OverlayState, of: str, added: list[Any], removed: list[Any], now: float) -> None:
    for want in removed:
        state.outside.remove(want, of)
    for want in added:
        state.outside.add(want, of)
    for want in (*added, *removed):
        outside_want(state, want, now)


def _learnt_zone_rows(state: OverlayState, of: str, added: list[Any], removed: list[Any], now: float) -> None:
    choose(state, ZONE_INTEREST, of, now)
    rows_changed(state, now)


_LEARNT = {
    INTEREST: _learnt_interest,
    SLT: _learnt_rows,
    EXTERNAL: _learnt_external,
    ZONE_INTEREST: _learnt_zone_interest,
    ZONE_SLT: _learnt_zone_rows,
}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Confirming. What a confirmation promises is kept before it is sent, over the same ordered link.


def _confirm(state: OverlayState, table: str, of: str, sender: str, now: float) -> None:
    version = state.table_held(table, of).version
    if table == EXTERNAL:
        state.send(sender, ExternalAck(version, 0, state.term, state.zone))
    elif table == INTEREST:
        state.send(sender, InterestAck(version))
        if state.gateway == state.me:
            needs = {(ZONE_INTEREST, zone): state.table_sent(ZONE_INTEREST, zone).needed for zone in state.zones}
            wait_for(state, needs, ("confirmed", of, INTEREST, version), now)
    elif table == SLT:
        tell(state, INTEREST, of, now, at_once=True)
        state.send(sender, SltAck(version, state.table_sent(INTEREST, of).version))
        if state.gateway == state.me:
            needs = {(ZONE_SLT, zone): state.table_sent(ZONE_SLT, zone).needed for zone in state.zones}
            wait_for(state, needs, ("confirmed", of, SLT, version), now)
    elif table == ZONE_SLT:
        # The wants of all routers here that this makes eligible are with the other zone before it is confirmed.
        needs = {(SLT, name): state.table_sent(SLT, name).needed for name in state.peers}
        wait_for(state, needs, ("zone slt ack", of, state.zones[of].term, version), now)
    else:
        # Another zone may rely on it only when the routers here do: from then on they send what it wants.
        needs = {
            (EXTERNAL, name): sent.needed
            for name, peer in state.peers.items()
            for sent in [state.table_sent(EXTERNAL, name)]
            # Who knows this gateway and was told nothing by it sends it everything.
            if not (sent.whole and peer.term >= state.term)
        }
        wait_for(state, needs, ("zone ack", of, state.zones[of].term, version), now)


def on_ack(state: OverlayState, sender: str, message: TableAck, now: float) -> None:
    table = TABLE_OF[type(message)]
    to = message.zone if table in ZONE_TABLES else sender
    if table not in (INTEREST, SLT) and message.term != state.term:
        _out_of_place(state, sender, message, f"it is of term {message.term}")
        return
    sent = state.sent.get((table, to))
    if sent is None or message.version > sent.version:
        _out_of_place(state, sender, message, "nothing like that was told")
        return
    if table in (SLT, ZONE_SLT):
        answer = INTEREST if table == SLT else ZONE_INTEREST
        if state.table_held(answer, to).version < message.interest:
            pull(state, answer, to, now)
            return
    acked(state, table, to, sent, message.version, now)


def acked(state: OverlayState, table: str, to: str, sent: SentTable, version: int, now: float) -> None:
    """A neighbour has a version, however that came to be known."""
    if version > sent.acked:
        sent.acked = version
        tell(state, table, to, now)
        check_waits(state, now)


def on_pull(state: OverlayState, sender: str, message: Pull, now: float) -> None:
    if message.table in (f"confirmed {INTEREST}", f"confirmed {SLT}"):
        if state.gateway == state.me:
            confirmed_now(state, sender, message.table.removeprefix("confirmed "), now)
        return
    to = message.zone if isinstance(message, ZonePull) else sender
    sent = state.sent.get((message.table, to))
    if sent is None or (message.table in ZONE_TABLES and not isinstance(message, ZonePull)):
        _out_of_place(state, sender, message, f"there is no table `{message.table[:32]}`")
        return
    if message.have < sent.version:
        sent.restart()
        tell(state, message.table, to, now)


def on_confirmed(state: OverlayState, sender: str, message: Confirmed, now: float) -> None:
    if message.term != state.term or sender != state.gateway or message.table not in (INTEREST, SLT):
        _out_of_place(state, sender, message, f"the gateway is `{state.gateway}` of term {state.term}")
        return
    if state.table_held(EXTERNAL, sender).version < message.external:
        pull(state, EXTERNAL, sender, now)
        return
    known = state.confirmed.get((message.table, sender))
    if known is None or message.version >= known[0]:
        state.confirmed[message.table, sender] = (message.version, message.missing)
        check_waits(state, now)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Waiting until others have confirmed. What is away is not waited for, or named as missing.


def wait_for(state: OverlayState, needs: dict[tuple[str, str], int], then: tuple[Any, ...], now: float) -> None:
    if not any(wait.then == then for wait in state.waits):
        state.waits.append(Wait(needs, then, now))
    check_waits(state, now)


def installation(state: OverlayState, table: str, then: tuple[Any, ...], now: float, want: Want | None = None) -> None:
    """Wait until everybody who is there works with a declaration: with a want where it was told, or with tags."""
    needs = {
        (table, name): sent.needed
        for name, peer in state.peers.items()
        if peer.live and (want is None or name == state.gateway or _concerns(state, table, name, want))
        for sent in [state.table_sent(table, name)]
    }
    if state.gateway == state.me:
        outer = ZONE_INTEREST if table == INTEREST else ZONE_SLT
        for zone in state.zones:
            sent = state.table_sent(outer, zone)
            if want is None or _concerns(state, outer, zone, want):
                needs[outer, zone] = sent.needed
    last = state.waits[-1] if state.waits else None
    if last is not None and last.needs == needs and last.then[0] == then[0] == "installed":
        last.then = then  # with the one before it
        return
    wait_for(state, needs, then, now)


def _concerns(state: OverlayState, table: str, to: str, want: Want) -> bool:
    """Whether a neighbour was told a want, or it is not known yet what is advertised there."""
    return want.id in state.table_sent(table, to).entries or state.table_held(ANSWERED_BY[table], to).version < 0


def check_waits(state: OverlayState, now: float) -> None:
    """Do what was waited for, as far as it is confirmed now."""
    waits = state.waits
    if not waits or state.checking:
        return
    state.checking = True
    kept: list[Wait] = []
    blocked = False
    try:
        while waits:
            state.waits = []
            for wait in waits:
                installs = wait.then[0] == "installed"
                missing = _missing(state, wait, now)
                if missing is None or (installs and blocked):
                    kept.append(wait)
                    blocked = blocked or installs
                    continue
                if not missing:
                    _DONE[wait.then[0]](state, wait, missing, now)
                    continue
                if now - wait.since < state.timing.install:
                    kept.append(wait)
                    blocked = blocked or installs
                elif missing != wait.told or wait.then[0] == "rows":
                    wait.told = missing
                    if not _DONE[wait.then[0]](state, wait, missing, now):
                        kept.append(wait)
                        blocked = blocked or installs
                else:
                    kept.append(wait)
                    blocked = blocked or installs
            waits = state.waits
    finally:
        state.waits = kept
        state.checking = False


def _missing(state: OverlayState, wait: Wait, now: float) -> tuple[str, ...] | None:
    """None: somebody who is there has not confirmed; else who is away, and would have to."""
    missing: list[str] = []
    away = state.timing.removed
    sent_tables = state.sent
    for key, version in wait.needs.items():
        if key[0] == "feed":
            value = state.keys.get(f"feed/{key[1]}")
            if value is not None and not value[3]:
                missing.append(value[0])
            continue
        sent = sent_tables.get(key)
        if sent is None or sent.acked >= version or (sent.acked == sent.version and not sent.due):
            continue
        table, to = key
        if table in ZONE_TABLES:
            if state.zones[to].is_live(now, away) and now - wait.since < state.timing.install:
                return None
            missing.append(to)
        elif state.peers[to].live:
            return None
    table = wait.then[2] if wait.then[0] in ("installed", "rows") else "feed"
    if table != "feed" and state.gateway != state.me and state.zones:
        needed = wait.needs.get((table, state.gateway)) if state.gateway else 0
        if needed is not None:
            known = state.confirmed.get((table, state.gateway))
            mine = state.sent.get((table, state.gateway))
            if mine is not None and not mine.due:
                needed = min(needed, mine.version)
            if known is None or known[0] < needed:
                missing.append("gateway")
            else:
                missing += known[1]
    return tuple(missing)


def _installed(state: OverlayState, wait: Wait, missing: tuple[str, ...], now: float) -> bool:
    state.installed(wait.then[1], missing, now)
    for id, version in tuple(state.unconfirmed.items()) if not missing else ():
        if version <= wait.then[1]:
            del state.unconfirmed[id]
            key = f"feed/{id}"
            value = state.keys.get(key)
            if value is not None and value[0] == state.me and not value[3]:
                state.write_key(key, (*value[:3], True), ("feed", key))
    return not missing


def _tell_confirmed(state: OverlayState, wait: Wait, missing: tuple[str, ...], now: float) -> bool:
    _, of, table, version = wait.then
    if state.gateway != state.me or not state.peers[of].live:
        return True
    tell(state, EXTERNAL, of, now, at_once=True)
    external = state.table_sent(EXTERNAL, of).version
    state.send(of, Confirmed(table, version, state.term, external, missing))
    return not missing


def _zone_ack(state: OverlayState, wait: Wait, missing: tuple[str, ...], now: float) -> bool:
    _, zone, term, version = wait.then
    if state.acts(now) and state.zones[zone].term == term:
        state.send_zone(zone, ZoneInterestAck(version, 0, term, state.zone))
    return True


def _zone_slt_ack(state: OverlayState, wait: Wait, missing: tuple[str, ...], now: float) -> bool:
    _, zone, term, version = wait.then
    if state.acts(now) and state.zones[zone].term == term:
        state.zones[zone].asked = True
        tell(state, ZONE_INTEREST, zone, now, at_once=True)
        interest = state.table_sent(ZONE_INTEREST, zone).version
        state.send_zone(zone, ZoneSltAck(version, interest, term, state.zone))
    return True


def _rows_settled(state: OverlayState, wait: Wait, missing: tuple[str, ...], now: float) -> bool:
    key = wait.then[1]
    if missing and key[0]:
        return False  # what waits for a zone can wait until that zone is there
    state.settling.discard(key)
    rows = state.document.rows(key[1])
    told = [state.table_sent(ZONE_SLT, key[0])] if key[0] else [state.table_sent(SLT, name) for name in state.peers]
    if any(row not in sent.entries for row in rows for sent in told):
        return True  # the advertisement went while it was waited for: it is told anew for what is left of it
    state.settled.add(key)
    if missing:
        state.unsure.add(key[1])
    return True


def is_told(state: OverlayState, zone: str, tags: TagSet) -> bool:
    """Whether another zone knows that events with these tags come from here, so that what it wants of them is known."""
    sent = state.table_sent(ZONE_SLT, zone)
    return sent.acked == sent.version and not sent.due and all(row in sent.entries for row in state.document.rows(tags))


def check_unsure(state: OverlayState) -> None:
    """On every tick: whether other zones have confirmed the tags that they were not waited for."""
    if state.unsure and state.gateway != state.me:
        sent = state.sent.get((SLT, state.gateway))
        known = state.confirmed.get((SLT, state.gateway))
        if sent is not None and known is not None and not sent.due and known[0] >= sent.version and not known[1]:
            state.unsure.clear()


_DONE = {
    "installed": _installed,
    "confirmed": _tell_confirmed,
    "zone ack": _zone_ack,
    "zone slt ack": _zone_slt_ack,
    "rows": _rows_settled,
}


def confirmed_now(state: OverlayState, of: str, table: str, now: float) -> None:
    """Answer a router that missed a confirmation: as things stand, if nothing is under way."""
    outer = ZONE_INTEREST if table == INTEREST else ZONE_SLT
    held = state.table_held(table, of).version
    if held < 0:
        return
    missing = []
    for zone in state.zones:
        sent = state.table_sent(outer, zone)
        if sent.due or sent.acked < sent.version:
            missing.append(zone)
    _tell_confirmed(state, Wait({}, ("confirmed", of, table, held), now), tuple(missing), now)


def settle(state: OverlayState, scope: str, tags: TagSet, now: float) -> bool:
    """Whether all who could want events with these tags were asked, so that such an event can be routed.

    Normally the advertisement saw to it. Of an event that was stored before its router, or its gateway, was lost, the
    advertisement may not be here: then its tags are told first. ``scope``: a zone, or empty for all neighbours.
    """
    key = (scope, tags)
    if key in state.settled or state.flood or not state.document.dimensions:
        return True
    if key in state.settling:
        check_waits(state, now)
        return key in state.settled
    rows = state.document.rows(tags)
    fresh = [row for row in rows if row not in state.rows and row not in state.recovered]
    if scope:
        told = state.table_sent(ZONE_SLT, scope).entries
        fresh = [row for row in fresh if row not in told]
    elif state.gateway == state.me:
        outside = [state.table_held(ZONE_SLT, zone).entries for zone in state.zones]
        fresh = [row for row in fresh if not any(row in each for each in outside)]
    if fresh:
        state.recovered |= dict.fromkeys(fresh)
        rows_changed(state, now)
    state.settling.add(key)
    if scope:
        wait_for(state, {(ZONE_SLT, scope): state.table_sent(ZONE_SLT, scope).needed}, ("rows", key, SLT), now)
    else:
        installation(state, SLT, ("rows", key, SLT), now)
    return key in state.settled
