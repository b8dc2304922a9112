"""What may be changed of contexts that somebody uses, and what becomes of a change that may not.

A context can always be augmented; those below it go on as they did. Any other change is allowed as long as nobody who
uses the context, or one below it, notices: otherwise it stays as it is, and a fork of it has the change. This module
decides; it knows contexts and who uses them, not where they come from or where they are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from situ.catalogue import CONTEXT_IN_USE, NO_WAY_BACK, RULE_KEPT
from situ.errors import Location, Problem, SituError
from situ.interpretation.contexts import Contexts
from situ.interpretation.differing import differing
from situ.interpretation.forking import Unforkable, fork, fork_of
from situ.interpretation.keeping import Kept, descends, keep_below, parents_first
from situ.interpretation.model import ROOT, former_root
from situ.types.model import Struct, Type

Body = Mapping[str, Any]
"""What a context declares, in the canonical form."""
Load = Callable[[Mapping[str, Body]], Contexts]
"""The contexts of these bodies; :class:`SituError` if they are none."""

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """How far changes may go.

    ``propagate``: new rules take effect below as well. Without ``fork`` what cannot be changed is refused.
    """

    propagate: bool = False
    fork: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The contexts that come into force. ``forks`` are new among them; ``refused`` say what is not, and why."""

    contexts: Contexts
    forks: tuple[str, ...] = ()
    refused: tuple[Problem, ...] = ()
    kept: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Work:
    bodies: dict[str, Body]
    contexts: Contexts
    forks: list[str] = field(default_factory=list)
    refused: list[Problem] = field(default_factory=list)


def declared(body: Body) -> Body:
    """What somebody wrote of it: without the rules that were put in, and below root, whichever root it goes on with."""
    result = {key: value for key, value in body.items() if key != "kept"}
    return {**result, "extends": ROOT} if former_root(result.get("extends", "")) else result


def carried(former: Mapping[str, Body], wanted: Mapping[str, Body], *, propagate: bool = False) -> dict[str, Body]:
    """The wanted contexts with what contexts of theirs have that nobody wrote.

    Rules that were put in stay as long as there is what they were put in against. A context that nobody edited goes on
    with the root that it knows, also if that is replaced just now; edited, it moves to the root of now.
    """
    newest = max(filter(former_root, wanted), key=former_root, default=ROOT)
    result = dict(wanted)
    for id, body in wanted.items():
        before = former.get(id)
        if before is None or former_root(id) or id == ROOT:
            continue
        if declared(before) == declared(body) and body.get("extends") == ROOT:
            known = before.get("extends", ROOT)
            body = {**body, "extends": newest if known == ROOT and newest not in former else known}
        result[id] = body
    for id, body in result.items():
        kept = former.get(id, {}).get("kept")
        if kept and "kept" not in body and not propagate and (left := _still_needed(kept, id, result)):
            result[id] = {**body, "kept": left}
    return result


def _still_needed(kept: Mapping[str, Any], id: str, bodies: Mapping[str, Body]) -> dict[str, list[str]]:
    own = bodies[id]
    above: list[Body] = []
    parent = own.get("extends")
    while parent is not None:
        body = bodies.get(parent, {})
        above.append(body)
        parent = body.get("extends")
    result: dict[str, list[str]] = {}
    for direction, rules in kept.items():
        there = {_pattern(rule) for body in above for rule in body.get("rules", {}).get(direction, ())}
        overridden = {_pattern(rule) for rule in own.get("rules", {}).get(direction, ())}
        if left := [rule for rule in rules if _pattern(rule) in there - overridden]:
            result[direction] = left
    return result


def augments(before: Body, after: Body) -> bool:
    """Whether everything that was declared still is, and what is new overrides none of it."""
    old, new = declared(before), declared(after)
    if any(old.get(key) != new.get(key) for key in ("extends", "derive")):
        return False
    for key in ("units", "types"):
        if any(new.get(key, {}).get(name) != each for name, each in old.get(key, {}).items()):
            return False
    if not set(old.get("events", ())) <= set(new.get("events", ())):
        return False
    functions = {each["name"]: each for each in new.get("functions", ())}
    if any(functions.get(each["name"]) != each for each in old.get("functions", ())):
        return False
    rules = [(old.get("rules", {}).get(way, []), new.get("rules", {}).get(way, [])) for way in ("in", "out")]
    if any(_overridden(was, now, _pattern) for was, now in rules):
        return False
    return not _overridden(old.get("maps", ()), new.get("maps", ()), _source)


def _overridden(before: Sequence[Any], after: Sequence[Any], about: Callable[[Any], Any]) -> bool:
    added = [each for each in after if each not in before]
    if any(each not in after for each in before):
        return True
    return bool({about(each) for each in before} & {about(each) for each in added})


def _pattern(rule: str) -> str:
    return rule.rpartition(" -> ")[0]


def _source(mapping: Mapping[str, Any]) -> tuple[str, str]:
    direction = "in" if "in" in mapping else "out"
    return direction, str(mapping[direction]).partition(" -> ")[0]


def settle(
    old: Contexts,
    wanted: Contexts,
    uses: Mapping[str, Sequence[str]],
    load: Load,
    allowed: Allowed = Allowed(),  # noqa: B008 - it is frozen
    places: Mapping[str, Location] | None = None,
) -> Settled:
    """What comes into force when the wanted contexts are to take the place of the old ones.

    ``uses`` are context → who uses it, in words; ``places`` where contexts are declared. :class:`SituError` if those
    who use something would notice a change that cannot be kept from them.
    """
    places = places or {}
    work = _Work(bodies=dict(wanted.as_json()), contexts=wanted)
    former = old.as_json()
    while True:
        edited = _edited(old, work)
        contexts, kept = (work.contexts, ()) if allowed.propagate else keep_below(old, work.contexts, edited)
        if kept:
            contexts = load(contexts.as_json())  # types may be derived by rules
        culprit = _culprit(old, contexts, edited, uses, work, allowed)
        if culprit is None:
            observed = tuple(_observation(each, places) for each in kept)
            return Settled(contexts=contexts, forks=tuple(work.forks), refused=tuple(work.refused), kept=observed)
        _set_back(culprit, former, old, uses, load, work, allowed, places.get(culprit))


def _edited(old: Contexts, work: _Work) -> set[str]:
    """Contexts that were there before and declare something else; root also if its types or functions are others."""
    former = old.as_json()
    found = {
        id
        for id in old.by_id.keys() & work.contexts.by_id.keys()
        if declared(former.get(id, {})) != declared(work.bodies.get(id, {}))
    }
    before, after = old.root, work.contexts.root
    if before.types != after.types or before.functions != after.functions:
        found.add(ROOT)
    return found


def _culprit(
    old: Contexts,
    contexts: Contexts,
    edited: set[str],
    uses: Mapping[str, Sequence[str]],
    work: _Work,
    allowed: Allowed,
) -> str | None:
    """The edited context because of which somebody would notice something that he must not."""
    augmented = {id for id in edited if _is_augmented(id, old, work)}
    for id in parents_first(contexts):
        if id not in old.by_id or id == ROOT or not uses.get(id) or id in augmented:
            # Whoever edits a context so that it has more says himself what becomes of its events.
            continue
        guilty = [id] if id in edited else [each.id for each in contexts.by_id[id].chain if each.id in edited]
        if not guilty or (allowed.propagate and augmented.issuperset(guilty)):
            continue
        if differing(old.by_id[id], contexts.by_id[id]):
            return next((each for each in guilty if each not in augmented), guilty[0])
    return None


def _is_augmented(id: str, old: Contexts, work: _Work) -> bool:
    if id == ROOT:
        before, after = old.root, work.contexts.root
        types = all(after.types.types.get(name) == each for name, each in before.types.types.items())
        if not types or any(after.functions.get(name) != each for name, each in before.functions.items()):
            return False
    return augments(old.as_json().get(id, {}), work.bodies.get(id, {}))


def _set_back(
    id: str,
    former: Mapping[str, Body],
    old: Contexts,
    uses: Mapping[str, Sequence[str]],
    load: Load,
    work: _Work,
    allowed: Allowed,
    place: Location | None,
) -> None:
    """The context as it was, and beside it one that has what is new."""
    below = [other.id for other in work.contexts if descends(other, id) and other.id != ROOT]
    users = [each for other in below for each in uses.get(other, ())]
    shown = some_of(users)
    if id == ROOT and (type := _replaced(old, work.contexts)):
        number = 1 + max(map(former_root, work.bodies), default=0)
        rule, former_name = f"in: {type} -> …", f"{ROOT}.v{number}"
        raise SituError(NO_WAY_BACK(place, type=type, former=former_name, rule=rule, users=f"in use: {shown}"))
    if id == ROOT or not allowed.fork:
        outcome = "nothing was changed"
        remedy = "Put what is new in a context of its own below it, or have those who use it leave it first."
        raise SituError(CONTEXT_IN_USE(place, name=id, users=shown, outcome=outcome, fork="", remedy=remedy))
    name = fork_of(id, former.keys() | work.bodies.keys())
    try:
        made = fork(former[id], work.bodies[id], old.by_id[id], work.contexts.by_id[id])
        same = next((other for other, body in former.items() if other.startswith(f"{id}.v") and body == made), None)
        name = same or name
        bodies = {**work.bodies, id: former[id], name: made}
        contexts = load(bodies)
    except (Unforkable, SituError) as error:
        reason = str(error) if isinstance(error, Unforkable) else error.problems[0].message.rstrip(".")
        outcome = f"it cannot be forked either, because {reason}"
        remedy = "Write a context of another name, and have those who use this one move there."
        raise SituError(CONTEXT_IN_USE(place, name=id, users=shown, outcome=outcome, fork="", remedy=remedy)) from error
    outcome = f"it stays as it is, and `{name}` has what is new"
    work.bodies, work.contexts = bodies, contexts
    if same is None:
        work.forks.append(name)
    work.refused.append(CONTEXT_IN_USE(place, name=id, users=shown, outcome=outcome, fork=name, remedy=""))


def some_of(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    return ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else "")


def _replaced(old: Contexts, new: Contexts) -> str:
    """A type of root that is another than before, and not only because of what is in it."""
    before, after = old.root.types, new.root.types
    changed = {name: each for name, each in before.types.items() if name in after.types and after.types[name] != each}
    own = [name for name, each in changed.items() if not _parts(each) & changed.keys()]
    return min(own or changed, default="")


def _parts(type: Type) -> set[str]:
    """The names of the types that one is made of."""
    attributes = type.attributes if isinstance(type, Struct) else ()
    above = type.supers if isinstance(type, Struct) else ()
    return {str(each.type).strip("[]") for each in attributes} | {str(each) for each in above}


def _observation(kept: Kept, places: Mapping[str, Location]) -> Problem:
    rule = kept.rule
    return RULE_KEPT(
        places.get(rule.context),
        context=rule.context,
        rule=str(rule),
        above=kept.against.context,
        instead=kept.instead,
    )
