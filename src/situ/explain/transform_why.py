"""Two questions about a transformation: why a rule counts somewhere, and what a filter asks of root events."""

from __future__ import annotations

import re

from situ.contexts.lookup_tables import TableLookups
from situ.contexts.model import TableLookup
from situ.contexts.resolve_rules import ResolvedPlace
from situ.contexts.transform.filter_rewrite import deferred_filter, rewrite_filter, rewrite_subscription
from situ.contexts.transform.function_calls import with_rows
from situ.contexts.transform.transformation import Transformation
from situ.explain.conversion import ContextConversions
from situ.explain.expression import ExpressionOutcome, Sample, evaluate
from situ.explain.transform import (
    ConvertedSample,
    PlaceExplanation,
    RuleCandidate,
    RuleCandidates,
    TransformExplanation,
    levels,
)
from situ.lang.catalogue import NEVER_TRUE, UNKNOWN_NAME
from situ.lang.expr.format import print_expression
from situ.lang.expr.tree import FALSE, Literal
from situ.lang.json_form import Explanation
from situ.lang.problems import Problem, SituError, nearest
from situ.lang.records import replace
from situ.model import Deployment

_INDEX = re.compile(r"\[[0-9]*\]")
_FILTER = "--filter"


class PlaceCandidates(Explanation, frozen=True, kw_only=True):
    """All rules about the value at one place of the source."""

    place: str
    outcome: str
    levels: tuple[str, ...]
    """What the keys of rules are about: the target, then from the event inwards."""
    candidates: tuple[RuleCandidate, ...]


class RuleExplanation(Explanation, frozen=True, kw_only=True):
    """Every rule about an attribute, and why it counts or not."""

    attribute: str
    places: tuple[PlaceCandidates, ...]
    """A place of the source for each dynamic type of the value."""


class FilterExplanation(Explanation, frozen=True, kw_only=True, omit_defaults=True):
    """A filter on the target of a conversion, and what it asks of root events."""

    type: str
    root_type: str
    written: str
    canonical: str
    substituted: str
    """In root's terms."""
    simplified: str
    then: str = ""
    """What is asked of events only when they are converted."""
    also_asked_of: tuple[str, ...]
    """Other root types of whose events the same filter asks something."""
    problems: tuple[Problem, ...]
    outcome: ExpressionOutcome | None = None
    """For the sample, if there is one."""


def explain_rules(
    attribute: str, way: Transformation, explained: TransformExplanation, ways: ContextConversions
) -> RuleExplanation:
    """Why the value of an attribute of the target (or of the source, by its path there) is made as it is."""
    wanted = _INDEX.sub("[]", attribute)
    candidates = RuleCandidates(ways.context, ways.direction, way.source)
    found: list[PlaceCandidates] = []
    for each, source in _at(wanted, way, explained):
        if not each.source and each.by != "rule":
            title = f"{each.target} of {way.target.name}"
            found.append(PlaceCandidates(place=title, outcome=_outcome(each), levels=(), candidates=()))
            continue
        # What a function makes has no counterpart in the source: then it is about the whole that is converted.
        known = candidates.places(source) or candidates.places(_source(each))
        # Subtypes of the event have ways of their own.
        for place in [place for place in known if place.path.event == way.source] or known:
            told = _told(each, place, candidates, part=source != _source(each))
            if told not in found:
                found.append(told)
    return RuleExplanation(attribute=attribute, places=tuple(found))


def explain_filter(
    where: str,
    way: Transformation,
    sample: ConvertedSample | None,
    ways: ContextConversions,
    deployment: Deployment,
) -> FilterExplanation:
    """What a filter in the terms of the context asks of root events of this type."""
    context = ways.context
    functions, limits = deployment.definitions, deployment.settings.expression_limits
    find = TableLookups().finders(way) if sample is None else sample.find
    rows = {name: each for name, each in find.items() if isinstance(way.externals[name].of, TableLookup)}
    node = with_rows(way.node, way.externals, rows)
    found = rewrite_filter(where, way, context, functions, limits, named=_FILTER, node=node)
    later = deferred_filter((way.target.name,), where, context, way, functions, limits, node=node)
    others: tuple[str, ...] = ()
    if context.types.event(way.target.name) == way.target:
        asked = rewrite_subscription(_FILTER, (way.target.name,), where, context, ways.by_type, functions, limits)
        others = tuple(name for name in asked if name != way.source.name)
    simplified = print_expression(found.simplified)
    never = found.simplified == FALSE or (isinstance(found.simplified, Literal) and found.simplified.value is None)
    outcome = None
    if sample is not None:
        values = {"event": sample.envelope, "data": sample.data}
        values |= dict.fromkeys(way.externals)
        whole = with_rows(found.substituted, way.externals, find) if later else found.simplified
        outcome = evaluate(whole, Sample(name="the sample", values=values), way.types)
    return FilterExplanation(
        type=way.target.name,
        root_type=way.source.name,
        written=where,
        canonical=print_expression(found.written),
        substituted=print_expression(found.substituted),
        simplified=simplified,
        then=print_expression(later.written) if later is not None else "",
        also_asked_of=others,
        problems=(NEVER_TRUE(subscription=_FILTER, type=way.source.name, simplified=simplified),) if never else (),
        outcome=outcome,
    )


def _at(wanted: str, way: Transformation, explained: TransformExplanation) -> list[tuple[PlaceExplanation, str]]:
    """The rows about an attribute, with the path in the source: its own, those below, or the one it is part of."""
    rows = explained.attributes
    both = (way.target, way.source)
    names = {attribute.name for struct in both for attribute in struct.attributes}
    for path_of in (_target, _source) if re.split(r"[.\[]", wanted)[0] in names else ():
        exact = [(each, _source(each)) for each in rows if path_of(each) == wanted]
        below = [(each, _source(each)) for each in rows if path_of(each).startswith((f"{wanted}.", f"{wanted}["))]
        if exact or below:
            return exact or below
        above = [each for each in rows if _is_above(path_of(each), wanted) and (each.source or each.by == "rule")]
        if above:
            return [(each, f"{_source(each)}{wanted[len(path_of(each)) :]}") for each in above]
    known = sorted((names | {each.target for each in rows} | {_source(each) for each in rows}) - {""})
    instead = f"{way.target.name} has {', '.join(known)}."
    raise SituError(UNKNOWN_NAME(kind="attribute", name=wanted, nearest=nearest(wanted, known), instead=instead))


def _target(each: PlaceExplanation) -> str:
    return each.target


def _source(each: PlaceExplanation) -> str:
    return each.source or ""


def _is_above(path: str, wanted: str) -> bool:
    return not path or wanted.startswith((f"{path}.", f"{path}["))


def _told(each: PlaceExplanation, place: ResolvedPlace, candidates: RuleCandidates, *, part: bool) -> PlaceCandidates:
    path, whole = place.path, candidates.whole(place)
    rules = candidates.at(place)
    if whole is not None and whole.rule is not None:
        above = whole.path if whole.path.steps else "the event"
        outcome = f"part of {above}, converted by {whole.rule.function} as a whole"
    elif place.rule is not None:
        outcome = f"converted by {place.rule.function}"
        if part and (str(path) == _source(each) or not path.steps):  # what was asked for is below it
            outcome = f"part of {each.target or 'the event'}, {outcome} as a whole"
    elif part:
        outcome = f"part of {each.target or 'the event'}, {_outcome(each)} as a whole"
    else:
        outcome = _outcome(each) if each.by != "rule" else _without_rule(place)
    if whole is not None:
        rules = tuple(replace(rule, counts=False, reason=rule.reason or "never reached") for rule in rules)
    title = f"{path.event}.{path} ({path.type})" if path.steps else str(path.event)
    return PlaceCandidates(place=title, outcome=outcome, levels=levels(path), candidates=rules)


def _without_rule(place: ResolvedPlace) -> str:
    """What becomes of a value of this type, while a rule converts those of another type at the place."""
    return "attribute by attribute" if place.attributes else "element by element" if place.elements else "copied"


def _outcome(each: PlaceExplanation) -> str:
    if each.by == "rule":
        return f"converted by {each.function}"
    return f"{each.rule} by {each.function}" if each.by == "unit" else each.function
