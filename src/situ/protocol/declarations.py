"""Advertisements and subscriptions on their way into force.

A declaration is checked and stored by the registry (``accepted``, with a version), and in force when every engine works
with that version (``installed``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from situ.overlay.effects import (
    Adopted,
    Answer,
    Declaration,
    Declare,
    Declared,
    Defined,
    Deployed,
    Received,
    Refused,
    Send,
    Withdraw,
)
from situ.overlay.messages import (
    Ack,
    AdAck,
    ContextAck,
    FromRouter,
    FullListAck,
    Nack,
    SubAck,
    Wanted,
)
from situ.overlay.refusing import bad_name, refuse, unknown_declaration
from situ.overlay.scoping import answer, confirmed, offered_by, told
from situ.overlay.state import Effects, Pending, State, next_ticket
from situ.subscription.model import NAME, ROOT, Advertisement, Client, Subscription
from situ.tags import tags_told

ACCEPTED, INSTALLED = "accepted", "installed"

T = TypeVar("T")


def declare_anew(state: State, given: Received, what: Declaration, req: int) -> Effects:
    if not NAME.fullmatch(what.name):
        yield from refuse(given.ticket, verb_of(what), req, bad_name(what.name))
        return
    pending = Pending(given.client, what, verb_of(what), req, given.ticket)
    if standing(state, what) == what and not any(_same(each.what, what) for each in state.declaring.values()):
        yield Answer(ticket=given.ticket, message=stand(state, pending))
        return
    yield from declare(state, pending)


def stand(state: State, pending: Pending) -> FromRouter:
    """What to say of something that is declared already: installed, if all engines work with what is deployed."""
    deployed = state.deployed.version if state.deployed is not None else 0
    version = max([deployed, *(each[0] for each in state.waiting if _same(each[1].what, pending.what))])
    if version <= state.adopted:
        return _acknowledged(pending, INSTALLED, state.adopted)
    if not any(_same(each[1].what, pending.what) for each in state.waiting):
        state.waiting.append((version, pending))
    return _acknowledged(pending, ACCEPTED, version)


def use_context(state: State, given: Received, context: str, req: int) -> Effects:
    """The client goes over to a context; what it declared goes with it."""
    what = Client(name=given.client, context=context)
    pending = Pending(given.client, what, verb_of(what), req, given.ticket)
    if context_of(state, given.client) == context and not any(
        _same(each.what, what) for each in state.declaring.values()
    ):
        yield Answer(ticket=given.ticket, message=stand(state, pending))
        return
    yield from declare(state, pending)


def context_of(state: State, client: str) -> str:
    """The context that a client is in: the one it went over to, or as it is deployed."""
    own = state.owned.get(client, {}).get((Client, client))
    if isinstance(own, Client):
        return own.context
    left = (Client, client) in state.withdrawing
    return ROOT if state.deployed is None or left else state.deployed.contexts.get(client, ROOT)


def _go_over(state: State, client: Client, kept: tuple[str, ...]) -> tuple[str, ...]:
    """What a client declared in the terms of its context is now in those of another; gives what is no more."""
    before = context_of(state, client.name)
    gone: list[str] = []
    for key, what in tuple(state.owned.get(client.name, {}).items()):
        if isinstance(what, Subscription) and what.context == before:
            state.owned[client.name][key] = replace(what, context=client.context)
        elif isinstance(what, Advertisement) and what.id not in kept:
            disown(state, what)
            gone.append(what.name)
    return tuple(gone)


def defined(state: State, given: Defined, now: float) -> Effects:
    pending = state.defining.pop(given.ticket, None)
    if pending is not None:
        word = INSTALLED if given.version <= state.adopted else ACCEPTED
        message = ContextAck(req=pending.req, context=given.context, state=word, version=given.version, said=given.said)
        yield Answer(ticket=pending.answer, message=message)


def declare(state: State, pending: Pending) -> Effects:
    ticket = next_ticket(state)
    state.declaring[ticket] = pending
    yield Declare(ticket=ticket, what=pending.what)


def take_back(state: State, given: Received, of: type[Declaration], name: str, req: int) -> Effects:
    what = state.owned.get(given.client, {}).get((of, name))
    verb = "Unadvertise" if of is Advertisement else "Unsubscribe"
    if what is None:
        kind = "advertisement" if of is Advertisement else "subscription"
        problem = unknown_declaration(given.client, kind, name)
        yield from refuse(given.ticket, verb, req, problem)
        return
    ticket = next_ticket(state)
    state.declaring[ticket] = Pending(given.client, what, verb, req, given.ticket, withdrawn=True)
    yield Withdraw(ticket=ticket, what=(what,))


def declared(state: State, given: Declared, now: float) -> Effects:
    pending = state.declaring.pop(given.ticket, None)
    if pending is None:
        return
    if pending.withdrawn:
        disown(state, pending.what)
        state.waiting = [each for each in state.waiting if not _same(each[1].what, pending.what)]
        if pending.answer is not None:
            yield Answer(ticket=pending.answer, message=Ack(req=pending.req))
        return
    gone = _go_over(state, pending.what, given.kept) if isinstance(pending.what, Client) else ()
    if not _is_over(state, pending.what, given.version):
        own(state, given.what or pending.what, given.version)
    installed = given.version <= state.adopted
    message = _acknowledged(pending, INSTALLED if installed else ACCEPTED, given.version)
    if isinstance(message, ContextAck):
        message = replace(message, gone=gone)
    if isinstance(message, AdAck | SubAck):
        message = replace(message, said=given.said)
    if not installed:
        state.waiting.append((given.version, pending))
    if pending.answer is not None:
        yield Answer(ticket=pending.answer, message=message)
    elif pending.client in state.children:
        yield Send(client=pending.client, message=message)
    # Who left in the meantime cannot take it back any more.
    if pending.client not in state.children and not is_durable(pending.what):
        yield from withdraw_passing(state, pending.client)


def refused(state: State, given: Refused, now: float) -> Effects:
    if (asked := state.rescoping.pop(given.ticket, None)) is not None:
        refusal = Nack(of="ChangeScopes", req=asked.req, code=given.code, message=given.message, hint=given.hint)
        yield answer(state, asked, refusal)
        return
    if (defining := state.defining.pop(given.ticket, None)) is not None:
        refusal = Nack(of="DefineContext", req=defining.req, code=given.code, message=given.message, hint=given.hint)
        yield Answer(ticket=defining.answer, message=refusal)
        return
    pending = state.declaring.pop(given.ticket, None)
    if pending is None:
        return
    nack = Nack(
        of=pending.of,
        req=pending.req,
        code=given.code,
        message=given.message,
        hint=given.hint,
        name=pending.what.name,
    )
    if pending.answer is not None:
        yield Answer(ticket=pending.answer, message=nack)
    else:
        yield Send(client=pending.client, message=nack)


def adopted(state: State, given: Adopted, now: float) -> Effects:
    state.adopted = max(state.adopted, given.version) if not given.missing else state.adopted
    held: list[tuple[int, Pending]] = []
    for version, pending in state.waiting:
        if version > given.version:
            held.append((version, pending))
            continue
        if given.missing:
            held.append((version, pending))
        if pending.client in state.children:
            word = ACCEPTED if given.missing else INSTALLED
            yield Send(client=pending.client, message=_acknowledged(pending, word, version, given.missing))
    state.waiting = held
    yield from confirmed(state, given)


def withdraw_passing(state: State, client: str) -> Effects:
    gone = tuple(what for what in state.owned.get(client, {}).values() if not is_durable(what))
    for what in gone:
        disown(state, what)
    gone += tuple(what for what in state.lost.pop(client, ()) if what not in gone)
    if gone:
        state.waiting = [each for each in state.waiting if not any(_same(each[1].what, what) for what in gone)]
        yield Withdraw(ticket=None, what=gone)


def known_of(state: State, client: str) -> FullListAck:
    deployed = state.deployed
    if deployed is None:
        return FullListAck()
    left = state.withdrawing
    ads = _of_client(deployed.advertisements, client)
    subs = _of_client(deployed.subscriptions, client)
    return FullListAck(
        version=deployed.version,
        ads={ad.name: offered_by(ad) for ad in ads if (Advertisement, ad.id) not in left},
        subs={
            sub.name: Wanted(
                types=sub.types, filter=sub.where, durable=sub.durable, context=sub.context, scopes=told(sub.scopes)
            )
            for sub in subs
            if (Subscription, sub.id) not in left
        },
    )


def standing(state: State, what: Declaration) -> Declaration | None:
    """What is declared under this name, by the client or by the project."""
    own = state.owned.get(what.client, {}).get((type(what), what.name))
    if own is not None or state.deployed is None or (type(what), what.id) in state.withdrawing:
        return own
    if isinstance(what, Client):
        return Client(name=what.name, context=context_of(state, what.name))
    return table_of(state.deployed, type(what)).get(what.id)


def subscription_of(state: State, client: str, name: str, wanted: Wanted) -> Subscription:
    """What a client asks for, in the terms of the context it names, or is in; :class:`SituError` for wrong tags."""
    return Subscription(
        client=client,
        name=name,
        types=tuple(sorted(set(wanted.types))),
        where=wanted.filter,
        durable=wanted.durable,
        context=wanted.context or context_of(state, client),
        scopes=tags_told(wanted.scopes),
    )


def _acknowledged(pending: Pending, word: str, version: int, missing: tuple[str, ...] = ()) -> FromRouter:
    what = pending.what
    if isinstance(what, Client):
        return ContextAck(req=pending.req, context=what.context, state=word, version=version, missing=missing)
    if isinstance(what, Advertisement):
        return AdAck(req=pending.req, ad=what.name, state=word, version=version, missing=missing)
    return SubAck(req=pending.req, sub=what.name, state=word, version=version, missing=missing)


def verb_of(what: Declaration) -> str:
    return {Advertisement: "Advertise", Subscription: "Subscribe", Client: "UseContext"}[type(what)]


def _same(one: Declaration, other: Declaration) -> bool:
    return type(one) is type(other) and one.id == other.id


def is_durable(what: Declaration) -> bool:
    return isinstance(what, Subscription) and what.durable


def _is_over(state: State, what: Declaration, version: int) -> bool:
    """Whether a later version, which is here already, lacks again what this one has."""
    if state.deployed is None or version >= state.deployed.version or isinstance(what, Client):
        return False
    return what.id not in table_of(state.deployed, type(what))


def forget_gone(state: State, former: Deployed, deployed: Deployed) -> None:
    """What somebody else took out of the registry is the client's no more: it has to be declared anew."""
    for of in (Advertisement, Subscription):
        for id in table_of(former, of).keys() - table_of(deployed, of).keys():
            client, _, name = id.partition("/")
            things = state.owned.get(client, {})
            if (of, name) in things and state.since.get((of, id), 0) < deployed.version:
                del things[of, name]
                state.since.pop((of, id), None)
                if not things:
                    del state.owned[client]


def own(state: State, what: Declaration, version: int = 0) -> None:
    state.since[type(what), what.id] = version
    state.withdrawing.discard((type(what), what.id))
    state.owned.setdefault(what.client, {})[type(what), what.name] = what


def disown(state: State, what: Declaration) -> None:
    state.withdrawing.add((type(what), what.id))
    state.since.pop((type(what), what.id), None)
    own = state.owned.get(what.client, {})
    own.pop((type(what), what.name), None)
    if not own:
        state.owned.pop(what.client, None)


def table_of(deployed: Deployed, of: type) -> Mapping[str, Declaration]:
    if of is Client:
        return {name: Client(name=name, context=context) for name, context in deployed.contexts.items()}
    return deployed.advertisements if of is Advertisement else deployed.subscriptions


def _of_client(table: Mapping[str, T], client: str) -> list[T]:
    return [what for id, what in table.items() if id.startswith(client + "/")]
