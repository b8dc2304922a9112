"""Scopes at a router: what clients say of them, what they would have them be, and what they lose with them.

A client is whoever the bus has proved it to be. What it may name is decided by the registry; what is no tag set at all
is refused here. A change of scopes is pending until every engine works with it. Declarations that their client has no
right to any more are its own no more, and it is told so.
"""

from __future__ import annotations

from situ.catalogue import NOT_UNDERSTOOD
from situ.overlay.effects import Adopted, Answer, Received, Rescope, Rescoped, Send, Suspended
from situ.overlay.messages import ChangeScopes, Nack, Offered, ScopeAck, Tags
from situ.overlay.refusing import refuse
from situ.overlay.state import Child, Effects, Rescoping, State, next_ticket
from situ.subscription.model import Advertisement, Subscription
from situ.tags import TagSet, tags_told
from situ.visibility.operation_form import operation_from_json

PENDING, COMPLETE = "pending", "complete"


def advertisement_of(client: str, name: str, offered: str | Offered) -> Advertisement:
    """What a client offers; :class:`SituError` with V007 or V016 if what it says of scopes is no tag set."""
    if isinstance(offered, str):
        return Advertisement(client=client, name=name, type=offered)
    tags = tags_told(offered.scopes)
    return Advertisement(client=client, name=name, type=offered.type, where=offered.filter, scopes=tags)


def offered_by(ad: Advertisement) -> str | Offered:
    """What an advertisement says, as its client is told."""
    scopes = told(ad.scopes)
    return Offered(type=ad.type, filter=ad.where, scopes=scopes) if ad.where or scopes else ad.type


def told(tags: TagSet) -> Tags:
    """Tags as a message has them."""
    return dict(tags.as_json())


def change_scopes(state: State, child: Child, given: Received, message: ChangeScopes) -> Effects:
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
    state.rescoping[ticket] = Rescoping(given.client, given.session, message, given.ticket)
    yield Rescope(ticket=ticket, client=given.client, operation=operation, epoch=message.epoch)


def rescoped(state: State, given: Rescoped, now: float) -> Effects:
    asked = state.rescoping.pop(given.ticket, None)
    if asked is None:
        return
    done = given.version <= state.adopted
    if not done:
        state.rescoped.append((given.version, given.epoch, asked))
    word = COMPLETE if done else PENDING
    yield answer(
        state, asked, ScopeAck(req=asked.req, epoch=given.epoch, state=word, version=given.version, said=given.said)
    )


def answer(state: State, asked: Rescoping, message: ScopeAck | Nack) -> Answer:
    """Tell what came of a change, and remember it for who asks again because the answer was lost."""
    if asked.client in state.children:
        state.outcomes[asked.client] = asked.session, asked.asked, message
    return Answer(ticket=asked.answer, message=message)


def confirmed(state: State, given: Adopted) -> Effects:
    """Those who changed scopes are told when every engine works with them, and as long as not which ones lag."""
    held: list[tuple[int, int, Rescoping]] = []
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


def suspend(state: State, suspended: tuple[Suspended, ...]) -> Effects:
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
