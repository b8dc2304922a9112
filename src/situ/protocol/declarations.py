"""What clients declare at a router: advertisements, subscriptions, their context, and changes of scopes.

These are steps of the state machine in :mod:`situ.protocol.router_machine`: they change the state of the router and
yield effects. Changes of scopes come first, then declarations on their way into force and out of it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from situ.lang.catalogue import NOT_UNDERSTOOD
from situ.lang.records import replace
from situ.lang.tags import TagSet, parse_tags
from situ.protocol.effects import (
    Adopted,
    Answer,
    Declaration,
    Declare,
    Declared,
    Defined,
    Deployed,
    Received,
    Refused,
    Rescope,
    Rescoped,
    Send,
    Suspended,
    Withdraw,
)
from situ.protocol.messages import (
    Ack,
    AdAck,
    ChangeScopes,
    ContextAck,
    FromRouter,
    FullListAck,
    Nack,
    OfferedAdvertisement,
    ScopeAck,
    SubAck,
    Tags,
    WantedSubscription,
)
from situ.protocol.router_state import (
    Child,
    Effects,
    PendingDeclaration,
    PendingScopes,
    RouterState,
    bad_name,
    next_ticket,
    refuse,
    unknown_declaration,
)
from situ.routing.model import NAME, ROOT, Advertisement, ClientDeclaration, Subscription
from situ.scopes.operations import operation_from_json

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Scopes: what clients say of them, how clients change them, and which declarations clients lose with them.
#
# A client is whoever the bus has proved it to be. What it may name is decided by the registry; what is no tag set at
# all is refused here. A change of scopes is pending until every engine works with it. Declarations that their client
# has no right to any more are taken from it, and it is told so.

PENDING, COMPLETE = "pending", "complete"


def advertisement_of(client: str, name: str, offered: str | OfferedAdvertisement) -> Advertisement:
    """What a client offers; :class:`SituError` with V007 or V016 if what it says of scopes is no tag set."""
    if isinstance(offered, str):
        return Advertisement(client=client, name=name, type=offered)
    tags = parse_tags(offered.scopes)
    return Advertisement(client=client, name=name, type=offered.type, where=offered.filter, scopes=tags)


def offered_by(ad: Advertisement) -> str | OfferedAdvertisement:
    """What an advertisement says, as its client is told."""
    scopes = tags_as_message(ad.scopes)
    return OfferedAdvertisement(type=ad.type, filter=ad.where, scopes=scopes) if ad.where or scopes else ad.type


def tags_as_message(tags: TagSet) -> Tags:
    """Tags as a message has them."""
    return dict(tags.as_json())


def change_scopes(state: RouterState, child: Child, given: Received, message: ChangeScopes) -> Effects:
    """Have scopes changed for the client, whose rights the registry knows. What is asked again is done once."""
    session, asked, outcome = state.outcomes.get(given.client, (0, None, None))
    if outcome is not None and (session, asked) == (given.session, message):
        yield Answer(ticket=given.ticket, message=outcome)
        return
    for each in state.rescoping.values():
        if (each.client, each.session, each.asked) == (given.client, given.session, message):
            each.answer = given.ticket
            return
    try:
        operation = operation_from_json(message.operation)
    except ValueError as error:
        problem = NOT_UNDERSTOOD(kind="ChangeScopes", reason=str(error)[:200])
        yield from refuse(given.ticket, "ChangeScopes", message.req, problem)
        return
    ticket = next_ticket(state)
    state.rescoping[ticket] = PendingScopes(given.client, given.session, message, given.ticket)
    yield Rescope(ticket=ticket, client=given.client, operation=operation, epoch=message.epoch)


def on_rescoped(state: RouterState, given: Rescoped, now: float) -> Effects:
    asked = state.rescoping.pop(given.ticket, None)
    if asked is None:
        return
    done = given.version <= state.adopted
    if not done:
        state.rescoped.append((given.version, given.epoch, asked))
    word = COMPLETE if done else PENDING
    yield answer_scopes(
        state, asked, ScopeAck(req=asked.req, epoch=given.epoch, state=word, version=given.version, said=given.said)
    )


def answer_scopes(state: RouterState, asked: PendingScopes, message: ScopeAck | Nack) -> Answer:
    """Tell what came of a change, and remember it for who asks again because the answer was lost."""
    if asked.client in state.children:
        state.outcomes[asked.client] = asked.session, asked.asked, message
    return Answer(ticket=asked.answer, message=message)


def confirm_scopes(state: RouterState, given: Adopted) -> Effects:
    """Those who changed scopes are told when every engine works with them, and as long as not which ones lag."""
    held: list[tuple[int, int, PendingScopes]] = []
    for version, epoch, asked in state.rescoped:
        if version > given.version:
            held.append((version, epoch, asked))
            continue
        if given.missing:
            held.append((version, epoch, asked))
        if asked.client in state.children:
            word = PENDING if given.missing else COMPLETE
            message = ScopeAck(req=asked.req, epoch=epoch, state=word, version=version, missing=given.missing)
            yield Send(client=asked.client, message=message)
    state.rescoped = held


def suspend_declarations(state: RouterState, suspended: tuple[Suspended, ...]) -> Effects:
    """What is suspended since the last look belongs to its client no more; joining again needs a new declaration."""
    known = state.suspended
    state.suspended = frozenset((type(each.what), each.what.id, each.version) for each in suspended)
    for each in suspended:
        what = each.what
        if (type(what), what.id, each.version) in known:
            continue
        if isinstance(what, Advertisement) or not what.durable:
            state.lost.setdefault(what.client, []).append(what)
        own = state.owned.get(what.client, {})
        own.pop((type(what), what.name), None)
        if not own:
            state.owned.pop(what.client, None)
        state.waiting = [one for one in state.waiting if (type(one[1].what), one[1].what.id) != (type(what), what.id)]
        if what.client in state.children:
            of = "Subscribe" if isinstance(what, Subscription) else "Advertise"
            nack = Nack(of=of, code=each.code, message=each.message, hint=each.hint, name=what.name)
            yield Send(client=what.client, message=nack)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Advertisements, subscriptions and contexts on their way into force.
#
# A declaration is checked and stored by the registry (``accepted``, with a version), and in force when every engine
# works with that version (``installed``).

ACCEPTED, INSTALLED = "accepted", "installed"

T = TypeVar("T")


def declare_new(state: RouterState, given: Received, what: Declaration, req: int) -> Effects:
    if not NAME.fullmatch(what.name):
        yield from refuse(given.ticket, verb_of(what), req, bad_name(what.name))
        return
    pending = PendingDeclaration(given.client, what, verb_of(what), req, given.ticket)
    if current_declaration(state, what) == what and not any(
        _same(each.what, what) for each in state.declaring.values()
    ):
        yield Answer(ticket=given.ticket, message=acknowledge_existing(state, pending))
        return
    yield from declare(state, pending)


def acknowledge_existing(state: RouterState, pending: PendingDeclaration) -> FromRouter:
    """What to say of something that is declared already: installed, if all engines work with what is deployed."""
    deployed = state.deployed.version if state.deployed is not None else 0
    version = max([deployed, *(each[0] for each in state.waiting if _same(each[1].what, pending.what))])
    if version <= state.adopted:
        return _acknowledged(pending, INSTALLED, state.adopted)
    if not any(_same(each[1].what, pending.what) for each in state.waiting):
        state.waiting.append((version, pending))
    return _acknowledged(pending, ACCEPTED, version)


def use_context(state: RouterState, given: Received, context: str, req: int) -> Effects:
    """The client goes over to a context; what it declared goes with it."""
    what = ClientDeclaration(name=given.client, context=context)
    pending = PendingDeclaration(given.client, what, verb_of(what), req, given.ticket)
    if context_of(state, given.client) == context and not any(
        _same(each.what, what) for each in state.declaring.values()
    ):
        yield Answer(ticket=given.ticket, message=acknowledge_existing(state, pending))
        return
    yield from declare(state, pending)


def context_of(state: RouterState, client: str) -> str:
    """The context that a client is in: the one it went over to, or as it is deployed."""
    own = state.owned.get(client, {}).get((ClientDeclaration, client))
    if isinstance(own, ClientDeclaration):
        return own.context
    left = (ClientDeclaration, client) in state.withdrawing
    return ROOT if state.deployed is None or left else state.deployed.contexts.get(client, ROOT)


def _switch_context(state: RouterState, client: ClientDeclaration, kept: tuple[str, ...]) -> tuple[str, ...]:
    """What a client declared in the terms of its context is now in those of another; gives what is no more."""
    before = context_of(state, client.name)
    gone: list[str] = []
    for key, what in tuple(state.owned.get(client.name, {}).items()):
        if isinstance(what, Subscription) and what.context == before:
            state.owned[client.name][key] = replace(what, context=client.context)
        elif isinstance(what, Advertisement) and what.id not in kept:
            remove_owned(state, what)
            gone.append(what.name)
    return tuple(gone)


def on_defined(state: RouterState, given: Defined, now: float) -> Effects:
    pending = state.defining.pop(given.ticket, None)
    if pending is not None:
        word = INSTALLED if given.version <= state.adopted else ACCEPTED
        message = ContextAck(req=pending.req, context=given.context, state=word, version=given.version, said=given.said)
        yield Answer(ticket=pending.answer, message=message)


def declare(state: RouterState, pending: PendingDeclaration) -> Effects:
    ticket = next_ticket(state)
    state.declaring[ticket] = pending
    yield Declare(ticket=ticket, what=pending.what)


def withdraw_declaration(state: RouterState, given: Received, of: type[Declaration], name: str, req: int) -> Effects:
    what = state.owned.get(given.client, {}).get((of, name))
    verb = "Unadvertise" if of is Advertisement else "Unsubscribe"
    if what is None:
        kind = "advertisement" if of is Advertisement else "subscription"
        problem = unknown_declaration(given.client, kind, name)
        yield from refuse(given.ticket, verb, req, problem)
        return
    ticket = next_ticket(state)
    state.declaring[ticket] = PendingDeclaration(given.client, what, verb, req, given.ticket, withdrawn=True)
    yield Withdraw(ticket=ticket, what=(what,))


def on_declared(state: RouterState, given: Declared, now: float) -> Effects:
    pending = state.declaring.pop(given.ticket, None)
    if pending is None:
        return
    if pending.withdrawn:
        remove_owned(state, pending.what)
        state.waiting = [each for each in state.waiting if not _same(each[1].what, pending.what)]
        if pending.answer is not None:
            yield Answer(ticket=pending.answer, message=Ack(req=pending.req))
        return
    gone = _switch_context(state, pending.what, given.kept) if isinstance(pending.what, ClientDeclaration) else ()
    if not _is_over(state, pending.what, given.version):
        add_owned(state, given.what or pending.what, given.version)
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
        yield from withdraw_transient(state, pending.client)


def on_refused(state: RouterState, given: Refused, now: float) -> Effects:
    if (asked := state.rescoping.pop(given.ticket, None)) is not None:
        refusal = Nack(of="ChangeScopes", req=asked.req, code=given.code, message=given.message, hint=given.hint)
        yield answer_scopes(state, asked, refusal)
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


def on_adopted(state: RouterState, given: Adopted, now: float) -> Effects:
    state.adopted = max(state.adopted, given.version) if not given.missing else state.adopted
    held: list[tuple[int, PendingDeclaration]] = []
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
    yield from confirm_scopes(state, given)


def withdraw_transient(state: RouterState, client: str) -> Effects:
    gone = tuple(what for what in state.owned.get(client, {}).values() if not is_durable(what))
    for what in gone:
        remove_owned(state, what)
    gone += tuple(what for what in state.lost.pop(client, ()) if what not in gone)
    if gone:
        state.waiting = [each for each in state.waiting if not any(_same(each[1].what, what) for what in gone)]
        yield Withdraw(ticket=None, what=gone)


def full_list_of(state: RouterState, client: str) -> FullListAck:
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
            sub.name: WantedSubscription(
                types=sub.types,
                filter=sub.where,
                durable=sub.durable,
                context=sub.context,
                scopes=tags_as_message(sub.scopes),
            )
            for sub in subs
            if (Subscription, sub.id) not in left
        },
    )


def current_declaration(state: RouterState, what: Declaration) -> Declaration | None:
    """What is declared under this name, by the client or by the project."""
    own = state.owned.get(what.client, {}).get((type(what), what.name))
    if own is not None or state.deployed is None or (type(what), what.id) in state.withdrawing:
        return own
    if isinstance(what, ClientDeclaration):
        return ClientDeclaration(name=what.name, context=context_of(state, what.name))
    return table_of(state.deployed, type(what)).get(what.id)


def subscription_of(state: RouterState, client: str, name: str, wanted: WantedSubscription) -> Subscription:
    """What a client asks for, in the terms of the context it names, or is in; :class:`SituError` for wrong tags."""
    return Subscription(
        client=client,
        name=name,
        types=tuple(sorted(set(wanted.types))),
        where=wanted.filter,
        durable=wanted.durable,
        context=wanted.context or context_of(state, client),
        scopes=parse_tags(wanted.scopes),
    )


def _acknowledged(pending: PendingDeclaration, word: str, version: int, missing: tuple[str, ...] = ()) -> FromRouter:
    what = pending.what
    if isinstance(what, ClientDeclaration):
        return ContextAck(req=pending.req, context=what.context, state=word, version=version, missing=missing)
    if isinstance(what, Advertisement):
        return AdAck(req=pending.req, ad=what.name, state=word, version=version, missing=missing)
    return SubAck(req=pending.req, sub=what.name, state=word, version=version, missing=missing)


def verb_of(what: Declaration) -> str:
    return {Advertisement: "Advertise", Subscription: "Subscribe", ClientDeclaration: "UseContext"}[type(what)]


def _same(one: Declaration, other: Declaration) -> bool:
    return type(one) is type(other) and one.id == other.id


def is_durable(what: Declaration) -> bool:
    return isinstance(what, Subscription) and what.durable


def _is_over(state: RouterState, what: Declaration, version: int) -> bool:
    """Whether a later version, which is here already, lacks again what this one has."""
    if state.deployed is None or version >= state.deployed.version or isinstance(what, ClientDeclaration):
        return False
    return what.id not in table_of(state.deployed, type(what))


def forget_gone(state: RouterState, former: Deployed, deployed: Deployed) -> None:
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


def add_owned(state: RouterState, what: Declaration, version: int = 0) -> None:
    state.since[type(what), what.id] = version
    state.withdrawing.discard((type(what), what.id))
    state.owned.setdefault(what.client, {})[type(what), what.name] = what


def remove_owned(state: RouterState, what: Declaration) -> None:
    state.withdrawing.add((type(what), what.id))
    state.since.pop((type(what), what.id), None)
    own = state.owned.get(what.client, {})
    own.pop((type(what), what.name), None)
    if not own:
        state.owned.pop(what.client, None)


def table_of(deployed: Deployed, of: type) -> Mapping[str, Declaration]:
    if of is ClientDeclaration:
        return {name: ClientDeclaration(name=name, context=context) for name, context in deployed.contexts.items()}
    return deployed.advertisements if of is Advertisement else deployed.subscriptions


def _of_client(table: Mapping[str, T], client: str) -> list[T]:
    return [what for id, what in table.items() if id.startswith(client + "/")]
