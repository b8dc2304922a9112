"""Scopes in force: how routers learn of a new epoch, confirm it, and when nobody hands over by the one before.

The home zone's gateway speaks for the scope document. Every router confirms its epoch every heartbeat to its gateway,
that one to the home zone's, and is granted the right to hand over events in closed dimensions for a while, counted from
when it asked, by its own clock. Who works with an older epoch is granted nothing. So once the last grant of the former
epoch has run out, or everybody has confirmed the new one, a change is complete.
"""

from __future__ import annotations

from situ.lang.catalogue import OUT_OF_PLACE
from situ.protocol.overlay import forwarding
from situ.protocol.overlay.effects import DocumentFetched, EpochComplete, FetchDocument
from situ.protocol.overlay.messages import EpochConfirm, EpochLease, EpochNotice
from situ.protocol.overlay.state import OverlayState
from situ.protocol.overlay.tables import refresh

EPOCH = "epoch"
_DRIFT = 1.25
"""Clocks run alike within a tenth each: so much longer a grant may last by another one's."""


def on_epoch_seen(state: OverlayState, sender: str, epoch: int, now: float) -> None:
    """Another router works with this epoch."""
    if epoch > state.document.epoch:
        fetch(state, epoch, now)
    elif epoch < state.document.epoch and sender:
        state.send(sender, EpochNotice(state.document.epoch))


def fetch(state: OverlayState, epoch: int, now: float) -> None:
    if now - state.fetching.get(epoch, -1e9) >= state.timing.heartbeat:
        state.fetching[epoch] = now
        state.out.append(FetchDocument(epoch))


def on_document(state: OverlayState, given: DocumentFetched, now: float) -> None:
    document = given.document
    state.documents[document.epoch] = document
    state.fetching.pop(document.epoch, None)
    if document.epoch > state.document.epoch:
        state.document = document
        state.changed_at = now
        take_effect(state, now)
        for name in state.peers:
            state.send(name, EpochNotice(document.epoch))
        if state.acts(now):
            for zone in state.zones:
                state.send_zone(zone, EpochNotice(document.epoch))
        confirm(state, now)
    for stream in tuple(state.queues):
        forwarding.pump(state, stream, now)


def take_effect(state: OverlayState, now: float) -> None:
    """Everything that depends on scopes is chosen anew."""
    state.rows.clear()
    for ad in state.ads.values():
        for row in state.document.rows(ad.scopes):
            state.rows[row] = state.rows.get(row, 0) + 1
    state.settled.clear()
    refresh(state, now)


def on_notice(state: OverlayState, sender: str, message: EpochNotice, now: float) -> None:
    if message.epoch > state.document.epoch:
        fetch(state, message.epoch, now)
    elif message.epoch < state.document.epoch:
        problem = OUT_OF_PLACE(kind="EpochNotice", router=sender, reason=f"epoch {state.document.epoch} is in force")
        state.report(sender, problem.code.code, problem.message)


def confirm(state: OverlayState, now: float) -> None:
    """Say which epoch this router works with, to whoever grants it the right to hand over."""
    epoch = state.document.epoch
    if state.acts(now):
        if state.zone == state.layout.home:
            state.epoch_until = state.lease.written + state.timing.stop
            return
        missing = tuple(name for name, peer in state.peers.items() if peer.live and peer.epoch < epoch)
        state.send_zone(state.layout.home, EpochConfirm(epoch, now, state.zone, missing))
    elif state.gateway and state.gateway != state.me:
        state.send(state.gateway, EpochConfirm(epoch, now))


def on_confirm(state: OverlayState, sender: str, message: EpochConfirm, now: float) -> None:
    epoch = state.document.epoch
    if message.epoch != epoch or not state.acts(now):
        on_epoch_seen(state, sender, message.epoch, now)
        return
    if message.zone:
        remote = state.zones.get(message.zone)
        if remote is None or state.zone != state.layout.home:
            problem = OUT_OF_PLACE(kind="EpochConfirm", router=sender, reason="this is not the home zone")
            state.report(sender, problem.code.code, problem.message)
            return
        remote.epoch, remote.missing, remote.granted = message.epoch, message.missing, now
    elif (peer := state.peers.get(sender)) is not None:
        peer.epoch, peer.confirmed = message.epoch, now
    left = state.timing.epoch_lease
    if state.zone != state.layout.home:
        left = min(left, state.epoch_until - now)
    if left > 0:
        state.send(sender, EpochLease(epoch, message.at, left))


def on_lease(state: OverlayState, sender: str, message: EpochLease, now: float) -> None:
    if message.epoch != state.document.epoch or message.at > now:
        problem = OUT_OF_PLACE(kind="EpochLease", router=sender, reason=f"epoch {state.document.epoch} is in force")
        state.report(sender, problem.code.code, problem.message)
        return
    # A tenth for each of two clocks: what is granted ends here before it ends there.
    state.epoch_until = max(state.epoch_until, message.at + message.left * 0.8)


def on_tick(state: OverlayState, now: float) -> None:
    confirm(state, now)
    for epoch in tuple(state.fetching):
        fetch(state, epoch, now)
    if state.zone != state.layout.home or not state.acts(now) or state.completed >= state.document.epoch:
        return
    epoch = state.document.epoch
    waited = now - max(state.changed_at, state.booted) > state.timing.epoch_lease * _DRIFT
    everybody = all(peer.live and peer.epoch >= epoch for peer in state.peers.values()) and all(
        remote.epoch >= epoch and not remote.missing and remote.is_live(now, state.timing.suspected)
        for remote in state.zones.values()
    )
    if waited or everybody:
        state.completed = epoch
        state.out.append(EpochComplete(epoch))
