"""Whether a change of contexts that are in use may come into force, and what comes into force instead.

`changed_event_types` compares the transformations of a context before and after a change. `settle_changes` decides:
contexts whose users would notice a change stay as they are, and a fork has what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from situ.contexts.function_bodies import DATA
from situ.contexts.model import ROOT, Context, Direction, former_root
from situ.contexts.table import Contexts
from situ.contexts.transform.steps import ChoiceStep, DefaultStep, ListStep, Step, StructStep, ValueStep
from situ.contexts.transform.transformation import Transformation, own_transformations
from situ.contexts.versions import KeepRule, Unforkable, descends, fork, fork_of, keep_below, parents_first
from situ.lang.catalogue import CONTEXT_IN_USE, NO_WAY_BACK, RULE_KEPT
from situ.lang.expr.format import print_expression
from situ.lang.expr.tree import Literal, MakeStruct, Node, Read, rebuild, walk
from situ.lang.problems import Location, Problem, Problems, SituError
from situ.lang.records import replace
from situ.lang.types.model import Attribute, ListOf, Struct, Type, plain

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Comparison of transformations. What counts is what comes out, not what is written: a rule that wins nowhere changes
# nothing, and neither does an attribute that a type got beside the others, if it is optional or has a default.

Ways = Mapping[tuple[Direction, str], Transformation]


def all_transformations(context: Context) -> Ways:
    """All transformations of a context, from and to what it takes for root, by direction and source event type."""
    found = {direction: own_transformations(context, direction, Problems()) for direction in Direction}
    return {(direction, name): way for direction, ways in found.items() for name, way in ways.items()}


def changed_event_types(before: Context, after: Context) -> tuple[str, ...]:
    """The event types that fare otherwise, as ``out PositionUpdate``; those that were not there before do not."""
    old, new = all_transformations(before), all_transformations(after)
    known = {direction: before.types_of(direction).events for direction in Direction}
    return tuple(
        f"{direction} {name}"
        for direction, name in sorted(old.keys() | new.keys())
        if name in known[direction] and not _alike(old.get((direction, name)), new.get((direction, name)))
    )


def _alike(before: Transformation | None, after: Transformation | None) -> bool:
    if before is None or after is None:
        return before is after
    seen = (before.target, after.target) if before.direction is Direction.OUT else (before.source, after.source)
    if not is_grown(*seen):
        return False
    if before.is_identity and after.is_identity:
        return True
    if not _root_agrees(before, after):
        return False
    return _same_externals(before, after) and same_step(before.step, after.step)


def _root_agrees(before: Transformation, after: Transformation) -> bool:
    """Whether what is read of root, or written there, is what it was: expressions do not say units."""
    if before.direction is Direction.IN:
        return agrees(before.target, after.target)
    nodes = (before.node, *(key for each in before.externals.values() for _, key in each.keys))
    reads = [part for node in nodes for part in walk(node) if isinstance(part, Read) and part.variable == DATA]
    if any(not read.path for read in reads):
        return agrees(before.source, after.source)
    old, new = before.source, after.source
    for name in {read.path[0] for read in reads}:
        was, now = old.attribute(name), new.attribute(name)
        if was is None:
            continue  # which type it is
        if now is None or was.unit != now.unit or not agrees(was.type, now.type):
            return False
    return True


def agrees(before: Type, after: Type) -> bool:
    """Whether the attributes that both have mean the same in both."""
    old, new = plain(before), plain(after)
    if before == after:
        return True
    if isinstance(old, ListOf) and isinstance(new, ListOf):
        return agrees(old.element, new.element)
    if not isinstance(old, Struct) or not isinstance(new, Struct) or old.name != new.name:
        return False
    there = {each.name: each for each in new.attributes}
    common = [(each, there[each.name]) for each in old.attributes if each.name in there]
    return all(was.unit == now.unit and agrees(was.type, now.type) for was, now in common)


def _same_externals(before: Transformation, after: Transformation) -> bool:
    return before.externals.keys() == after.externals.keys() and all(
        each.function == after.externals[name].function
        and print_expression(each.argument) == print_expression(after.externals[name].argument)
        for name, each in before.externals.items()
    )


def same_step(before: Step, after: Step) -> bool:
    """Whether the second makes what the first makes; attributes that are new in the target may get nothing."""
    match before, after:
        case ValueStep(), ValueStep():
            same = print_expression(_filled(before.node)) == print_expression(_filled(after.node))
            return same and is_grown(before.node.type, after.node.type)
        case StructStep(), StructStep():
            old, new = dict(before.fields), dict(after.fields)
            return (
                before.type.name == after.type.name
                and old.keys() <= new.keys()
                and all(same_step(step, new[name]) for name, step in old.items())
                and all(_is_from_nowhere(step) for name, step in after.fields if name not in old)
            )
        case ListStep(), ListStep():
            same = print_expression(before.list) == print_expression(after.list)
            return same and same_step(before.element, after.element)
        case DefaultStep(), DefaultStep():
            return before.default == after.default and same_step(before.of, after.of)
        case ChoiceStep(), ChoiceStep():
            arms = {(print_expression(condition), when): step for condition, when, step in after.arms}
            return (
                len(arms) == len(before.arms)
                and all(
                    (key := (print_expression(condition), when)) in arms and same_step(step, arms[key])
                    for condition, when, step in before.arms
                )
                and same_step(before.otherwise, after.otherwise)
            )
        case _:
            return False


def _filled(node: Node) -> Node:
    """Structs without the attributes that are always absent."""
    made = rebuild(node, _filled)
    if isinstance(made, MakeStruct):
        there = tuple((name, part) for name, part in made.fields if part != Literal(None, part.type, part.unit))
        return replace(made, fields=there)
    return made


def _is_from_nowhere(step: Step) -> bool:
    return isinstance(step, ValueStep) and not step.source and step.rule is None


def is_grown(before: Type, after: Type) -> bool:
    """Whether values of the first do as values of the second: the same, but for attributes that need not be there."""
    old, new = plain(before), plain(after)
    if before == after:
        return True
    if isinstance(old, ListOf) and isinstance(new, ListOf):
        return is_grown(old.element, new.element)
    if not isinstance(old, Struct) or not isinstance(new, Struct) or old.name != new.name:
        return False
    there = {each.name: each for each in new.attributes}
    grown = all(each.name in there and _is_grown_attribute(each, there[each.name]) for each in old.attributes)
    names = {each.name for each in old.attributes}
    return grown and all(each.optional or each.default is not None for each in new.attributes if each.name not in names)


def _is_grown_attribute(before: Attribute, after: Attribute) -> bool:
    return is_grown(before.type, after.type) and (before.unit, before.optional, before.default) == (
        after.unit,
        after.optional,
        after.default,
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The decision. A context can always be augmented; contexts below it go on as they did. Any other change is allowed as
# long as nobody who uses the context, or one below it, notices. Where contexts come from and where they are stored is
# not known here.

Body = Mapping[str, Any]
"""What a context declares, in the canonical form."""
Load = Callable[[Mapping[str, Body]], Contexts]
"""The contexts of these bodies; :class:`SituError` if they are none."""

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOptions:
    """How far changes may go.

    ``propagate``: new rules take effect below as well. Without ``fork`` what cannot be changed is refused.
    """

    propagate: bool = False
    fork: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextChange:
    """The contexts that come into force. ``forks`` are new among them; ``refused`` say what is not, and why."""

    contexts: Contexts
    forks: tuple[str, ...] = ()
    refused: tuple[Problem, ...] = ()
    kept: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _ChangeState:
    bodies: dict[str, Body]
    contexts: Contexts
    forks: list[str] = field(default_factory=list)
    refused: list[Problem] = field(default_factory=list)


def declared_body(body: Body) -> Body:
    """What somebody wrote of it: without the rules that were put in, and below root, whichever root it goes on with."""
    result = {key: value for key, value in body.items() if key != "kept"}
    return {**result, "extends": ROOT} if former_root(result.get("extends", "")) else result


def carry_kept_rules(
    former: Mapping[str, Body], wanted: Mapping[str, Body], *, propagate: bool = False
) -> dict[str, Body]:
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
        if declared_body(before) == declared_body(body) and body.get("extends") == ROOT:
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
    old, new = declared_body(before), declared_body(after)
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


def settle_changes(
    old: Contexts,
    wanted: Contexts,
    uses: Mapping[str, Sequence[str]],
    load: Load,
    allowed: ChangeOptions = ChangeOptions(),  # noqa: B008 - it is frozen
    places: Mapping[str, Location] | None = None,
) -> ContextChange:
    """What comes into force when the wanted contexts are to take the place of the old ones.

    ``uses`` are context → who uses it, in words; ``places`` where contexts are declared. :class:`SituError` if those
    who use something would notice a change that cannot be kept from them.
    """
    places = places or {}
    work = _ChangeState(bodies=dict(wanted.as_json()), contexts=wanted)
    former = old.as_json()
    # A context that was set back is no longer among the edited ones, so the rounds end.
    while True:
        edited = _edited(old, work)
        contexts, kept = (work.contexts, ()) if allowed.propagate else keep_below(old, work.contexts, edited)
        if kept:
            contexts = load(contexts.as_json())  # types may be derived by rules
        culprit = _culprit(old, contexts, edited, uses, work, allowed)
        if culprit is None:
            observed = tuple(_observation(each, places) for each in kept)
            return ContextChange(contexts=contexts, forks=tuple(work.forks), refused=tuple(work.refused), kept=observed)
        _set_back(culprit, former, old, uses, load, work, allowed, places.get(culprit))


def _edited(old: Contexts, work: _ChangeState) -> set[str]:
    """Contexts that were there before and declare something else; root also if its types or functions are others."""
    former = old.as_json()
    found = {
        id
        for id in old.by_id.keys() & work.contexts.by_id.keys()
        if declared_body(former.get(id, {})) != declared_body(work.bodies.get(id, {}))
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
    work: _ChangeState,
    allowed: ChangeOptions,
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
        if changed_event_types(old.by_id[id], contexts.by_id[id]):
            return next((each for each in guilty if each not in augmented), guilty[0])
    return None


def _is_augmented(id: str, old: Contexts, work: _ChangeState) -> bool:
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
    work: _ChangeState,
    allowed: ChangeOptions,
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


def _observation(kept: KeepRule, places: Mapping[str, Location]) -> Problem:
    rule = kept.rule
    return RULE_KEPT(
        places.get(rule.context),
        context=rule.context,
        rule=str(rule),
        above=kept.against.context,
        instead=kept.instead,
    )
