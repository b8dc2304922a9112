"""``actions:`` and ``strategy:`` of ``quality/*.yaml`` → actions and strategies."""

from __future__ import annotations

from types import MappingProxyType
from typing import cast, get_args

from situ.catalogue import ABOUT_NOTHING, UNKNOWN_ADAPTATION, UNKNOWN_STRATEGY
from situ.documents import Fields, Node, Reader, Scalar, to_data
from situ.errors import SituError, nearest
from situ.quality.around import Around
from situ.quality.cost import FREE, Cost
from situ.quality.declared import BUILT_IN_ACTIONS, DEFAULT, STRATEGIES, Action, Direction, Strategy
from situ.quality.formula import read_formula
from situ.quality.property import Property
from situ.quality.read_cost import read_cost
from situ.quality.read_need import IMPRECISION, Named
from situ.quality.read_value import Values, read_double

ACTION_KEYS = ("property", "direction", "action", "sequence", "cost")
STRATEGY_KEYS = ("name", "lambda", "budget", "protect")


def read_action(read: Reader, around: Around, node: Node) -> Action | None:
    """An action; None if something is wrong with it, which is said."""
    before = len(read.problems)
    alternatives = {"action", "sequence"}
    mapping = read.mapping(node)
    if mapping is None:
        return None
    of = "sequence" if "sequence" in mapping else "action"
    other = tuple(alternatives - {of}) if of == "sequence" else ()
    fields = read.fields(node, required=("property", "direction", of), optional=("cost", *other))
    if fields is None:
        return None
    about = _property(read, around, fields.scalar("property"))
    direction = cast(Direction, fields.choice("direction", get_args(Direction), "up"))
    names = fields.scalars("sequence") if of == "sequence" else _one(fields.scalar("action"))
    if about is not None:
        for name in names:
            _check_action(read, about, direction, name)
    cost = FREE if about is None else _cost(read, around, about, fields)
    if of == "sequence" and not names:
        read.wrong(mapping, "a sequence of at least one action")
    if about is None or cost is None or len(read.problems) > before:
        return None
    steps = tuple(each.text for each in names) if of == "sequence" else ()
    shown = " then ".join(each.text for each in names)
    return Action(property=about.id, direction=direction, action=shown, cost=cost, steps=steps)


def _one(scalar: Scalar | None) -> tuple[Scalar, ...]:
    return () if scalar is None else (scalar,)


def _property(read: Reader, around: Around, key: Scalar | None) -> Property | None:
    """Actions are about a property as such, not of a single attribute."""
    if key is None:
        return None
    if key.text == IMPRECISION:
        return around.properties[IMPRECISION]
    return Named(read, around).property(key)


def _check_action(read: Reader, about: Property, direction: Direction, name: Scalar) -> None:
    known = [each for each in BUILT_IN_ACTIONS if _fits(each, about, direction)]
    if name.text not in known:
        shown = f" that moves `{about.id}` {direction}"
        problem = UNKNOWN_ADAPTATION(
            name.location, name=name.text, direction=shown, nearest=nearest(name.text, known), known=tuple(known)
        )
        read.problems.add(problem)


def _fits(action: str, about: Property, direction: Direction) -> bool:
    match action:
        case "adaptPublisher":
            return about.determined_by != "middleware"
        case "thin":
            return about.name == "rate" and direction == "down"
        case "suppress":
            return about.name == IMPRECISION and direction == "up"
        case _:
            return True


def _cost(read: Reader, around: Around, about: Property, fields: Fields) -> Cost | None:
    values = Values(read, around.types.units)
    node = fields.node("cost")
    if isinstance(node, Scalar) and isinstance(node.value, str) and not about.levels:
        return _formula(read, node)
    return read_cost(values, about, node, about.lo, about.hi)


def _formula(read: Reader, node: Scalar) -> Cost | None:
    """A formula of a target that may be anywhere: where it has no value the action is not affordable."""
    try:
        return read_formula(node.text, node.location, node.locate)
    except SituError as error:
        read.problems.extend(error.problems)
        return None


def read_strategy(read: Reader, around: Around, key: Scalar, node: Node) -> Strategy | None:
    """The strategy for events of a type, or by default; None if something is wrong with it, which is said."""
    before = len(read.problems)
    if key.text != DEFAULT and around.types.event(key.text) is None:
        similar = nearest(key.text, (*around.types.events, DEFAULT))
        remedy = "A strategy is that for an event type, or `default`."
        problem = ABOUT_NOTHING(key.location, what="event type", name=key.text, nearest=similar, remedy=remedy)
        read.problems.add(problem)
    if isinstance(node, Scalar):
        name = read.scalar(node)
        _check_strategy(read, around, name)
        return Strategy(name=name.text) if name is not None and len(read.problems) == before else None
    mapping = read.mapping(node)
    if mapping is None:
        return None
    named = mapping.get("name")
    own = isinstance(named, Scalar) and named.text not in STRATEGIES
    others = tuple(key.text for key, _ in mapping.entries if key.text not in STRATEGY_KEYS) if own else ()
    fields = read.fields(node, required=("name",), optional=(*STRATEGY_KEYS, *others))
    if fields is None:
        return None
    _check_strategy(read, around, fields.scalar("name"))
    weight, budget = (read_double(read, fields.node(name), least=0) for name in ("lambda", "budget"))
    protect = fields.boolean("protect", default=True)
    if len(read.problems) > before:
        return None
    return Strategy(
        name=fields.text("name", ""),
        weight=1.0 if weight is None else weight,
        budget=budget,
        protect=protect,
        options=MappingProxyType({key.text: to_data(below) for key, below in mapping.entries if key.text in others}),
    )


def _check_strategy(read: Reader, around: Around, name: Scalar | None) -> None:
    if name is not None and name.text not in around.strategies:
        known = tuple(around.strategies)
        problem = UNKNOWN_STRATEGY(name.location, name=name.text, nearest=nearest(name.text, known), known=known)
        read.problems.add(problem)
