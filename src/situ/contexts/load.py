"""Loading of contexts, from declarations or canonical JSON: each below its parent, with everything that is wrong.

`derived_types` gives the event types of a context that derives them from its rules. `load_contexts`, `define_contexts`
and `contexts_from_json` define contexts, parents first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import msgspec

from situ.contexts.declarations import ContextText, declare_contexts
from situ.contexts.functions import Sources, define_functions
from situ.contexts.model import IDENTITY, ROOT, Context, Direction, former_root
from situ.contexts.resolve_rules import ResolvedPlace, RuleSet, resolve_event_type
from situ.contexts.rules import define_mappings, define_rules
from situ.contexts.table import Contexts, as_file, conversions_of
from situ.contexts.versions import as_root, check_replaced, former_types, with_mappings
from situ.lang.catalogue import (
    CONTEXT_CYCLE,
    DECLARED_TWICE,
    PATTERN_UNKNOWN,
    UNKNOWN_CONTEXT,
    UNKNOWN_FUNCTION,
    UNKNOWN_MAPPED_TYPE,
    UNKNOWN_NAME,
    UNKNOWN_TYPE,
    UNKNOWN_UNIT,
)
from situ.lang.documents import Document, DocumentLimits, parse_json
from situ.lang.expr.definitions import DefinedFunction, callable_functions
from situ.lang.expr.faults import NO_FAULTS, Faults, find_faults
from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.expr.scope import NameScope
from situ.lang.problems import Problem, Problems, SituError, nearest
from situ.lang.records import replace
from situ.lang.types.declaration import TypeDeclaration, UnitDeclaration
from situ.lang.types.dependency_order import dependency_order
from situ.lang.types.model import Attribute, ListOf, Struct, Type, fits, is_subtype
from situ.lang.types.resolve import resolve
from situ.lang.types.table import Types
from situ.lang.units import Unit

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Derived types: what an event type becomes where rules change it and nobody declared the result. It has the name and
# the attributes of the original; what a function converts has the type and unit of its result.


def derived_types(context: Context) -> Types:
    """What is visible in a context that derives: event types of root that its rules change are as they leave them."""
    root = context.root.types
    mapped = [each.source for above in context.chain for each in above.mappings if each.direction is Direction.OUT]
    made: dict[str, Struct] = {}
    rules = RuleSet.of(context, Direction.OUT)
    for name in sorted(root.events):
        event = root.event(name)
        if event is None or context.declares(name):
            continue
        made[name] = event
        if not any(is_subtype(event, source) for source in mapped):
            with suppress(SituError):  # too many places: said where the type is checked
                made[name] = _derived(event, context, rules)
    linked: dict[str, Struct] = {}
    for name in made:
        _link(made[name], made, root, linked)
    types = context.types
    return Types(types={**types.types, **linked}, events=types.events, units=types.units)


def _derived(event: Struct, context: Context, rules: RuleSet) -> Struct:
    """The event type as rules of the way out leave it; itself if they leave all attributes as they are."""
    place = resolve_event_type(event, rules, context.types_of(Direction.OUT))
    type, _ = _changed(place, event, Unit(), context)
    return type if isinstance(type, Struct) and place.rule is None else event


def _link(struct: Struct, made: dict[str, Struct], root: Types, linked: dict[str, Struct]) -> Struct:
    """The type below those that its supertypes have become, where it still has what they have."""
    original = root.event(struct.name)
    if original is None or struct.name not in made:
        return struct
    if struct.name not in linked:
        above = tuple(_link(made.get(each.name, each), made, root, linked) for each in original.supers)
        if above == original.supers and struct == original:
            linked[struct.name] = original
        else:
            kept = tuple(each for each in above if _has_all_of(struct, each))
            linked[struct.name] = replace(struct, supers=kept)
    return linked[struct.name]


def _has_all_of(struct: Struct, above: Struct) -> bool:
    own = {each.name: each for each in struct.attributes}
    return all(
        each.name in own and own[each.name].unit == each.unit and fits(own[each.name].type, each.type)
        for each in above.attributes
    )


def _changed(place: ResolvedPlace, type: Type, unit: Unit, context: Context) -> tuple[Type, Unit]:
    if place.rule is not None:
        function = None if place.rule.function == IDENTITY else context.conversion(place.rule.function)
        return (type, unit) if function is None else (function.result.type, function.result.unit)
    if isinstance(type, Struct):
        attributes = tuple(_attribute(place, attribute, context) for attribute in type.attributes)
        return (type if attributes == type.attributes else Struct(type.name, attributes)), unit
    if isinstance(type, ListOf):
        element, inner = _changed(place.elements[0], type.element, unit, context)
        return (type if element == type.element else ListOf(element)), inner
    return type, unit


def _attribute(place: ResolvedPlace, attribute: Attribute, context: Context) -> Attribute:
    """What stands there where the value is of the declared type: those of its subtypes have to fit the same."""
    type, unit = _changed(place.attributes[attribute.name][0], attribute.type, attribute.unit, context)
    if (type, unit) == (attribute.type, attribute.unit):
        return attribute
    default = attribute.default if type == attribute.type else None
    return replace(
        attribute, type=type, unit=unit, default=default, optional=attribute.optional or default != attribute.default
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Declarations → contexts. Parents come first, so each context sees what it inherits settled. A fault takes out only
# what it touches. Where the parent itself is not known, what may be declared there is not called unknown.
#
# Types, events and units of ``root`` belong to the table of the deployment's types: :func:`root_declarations` gives
# them to whoever makes that table, and the table given here has them.

_LIMITS = DocumentLimits(size=256 * 1024 * 1024, nodes=20_000_000)
"""What was let in before is read back, however large it is."""

NO_SOURCES: Sources = MappingProxyType({})

_MAY_BE_ABOVE = (UNKNOWN_TYPE, UNKNOWN_UNIT, PATTERN_UNKNOWN, UNKNOWN_FUNCTION, UNKNOWN_MAPPED_TYPE, UNKNOWN_NAME)
"""What is not found may be declared in a parent that nobody knows."""


def load_contexts(
    documents: Iterable[Document],
    types: Types,
    functions: Mapping[str, DefinedFunction],
    problems: Problems,
    *,
    limits: ExpressionLimits = DEFAULT_LIMITS,
    faults: Faults = NO_FAULTS,
    sources: Sources = NO_SOURCES,
) -> Contexts:
    """Read and check what all these documents declare together; what is wrong is reported and left out."""
    declared = declare_contexts(documents, problems)
    return define_contexts(declared, types, functions, problems, limits=limits, faults=faults, sources=sources)


def root_declarations(
    declared: Mapping[str, ContextText],
) -> tuple[tuple[TypeDeclaration, ...], tuple[UnitDeclaration, ...]]:
    """The types and units that root's own file declares."""
    root = declared.get(ROOT)
    return (root.types, root.units) if root is not None else ((), ())


def define_contexts(
    declared: Mapping[str, ContextText],
    types: Types,
    functions: Mapping[str, DefinedFunction],
    problems: Problems,
    *,
    limits: ExpressionLimits = DEFAULT_LIMITS,
    faults: Faults = NO_FAULTS,
    sources: Sources = NO_SOURCES,
) -> Contexts:
    """The contexts of these declarations; ``faults`` are those found before, in what is given."""
    loading = _ContextLoader(types, functions, limits, sources, faults, problems)
    root = declared.get(ROOT)
    loading.define_root(root)
    for id in _in_order(declared, loading, problems):
        loading.define(declared[id])
    return Contexts(loading.defined.values(), loading.shared, loading.faulty, loading.lost)


def contexts_from_json(
    value: Any,
    types: Types,
    functions: Mapping[str, DefinedFunction],
    limits: ExpressionLimits = DEFAULT_LIMITS,
    sources: Sources = NO_SOURCES,
) -> Contexts:
    """The contexts that :meth:`Contexts.as_json` gave; ValueError for what it cannot have given."""
    if not isinstance(value, dict) or not all(isinstance(body, dict) for body in value.values()):
        raise ValueError(f"these are no contexts: {value!r}")
    problems = Problems()
    documents = [context_document(id, body, id) for id, body in value.items()]
    contexts = load_contexts(documents, types, functions, problems, limits=limits, sources=sources)
    if problems.errors:
        raise ValueError("; ".join(map(str, problems.errors)))
    return contexts


def context_document(id: str, body: Mapping[str, Any], file: str) -> Document:
    """The document that declares a context again, of which this is the canonical form."""
    return parse_json(json.dumps(as_file(id, body), ensure_ascii=False, indent=1), file, _LIMITS)


# ── in which order ────────────────────────────────────────────────────────────────────────────────


def _in_order(declared: Mapping[str, ContextText], loading: _ContextLoader, problems: Problems) -> list[str]:
    """The ids, parents first; what extends itself, or what is not there, is said and taken to extend root."""
    parents = {id: each.extends for id, each in declared.items() if id != ROOT}
    loading.formers = sorted(filter(former_root, parents), key=former_root)
    needed = {id: [above.text] if above else [] for id, above in parents.items()}
    needed |= {id: [above] for id, above in pairwise(loading.formers)}
    order, circles = dependency_order(needed)
    for circle in circles:
        name, _ = circle.closing
        above = parents[name]
        place = above.location if above is not None else None
        problems.add(CONTEXT_CYCLE(place, name=name, cycle=str(circle)))
        loading.without_parent.add(name)
    for id, above in parents.items():
        if above is not None and above.text != ROOT and above.text not in parents:
            remedy = "Declare it in a file of contexts/, or extend `root`."
            near = nearest(above.text, (ROOT, *parents))
            problem = UNKNOWN_CONTEXT(
                above.location, name=above.text, reason="nobody declares it", nearest=near, remedy=remedy
            )
            problems.add(problem)
            loading.without_parent.add(id)
    return order


# ── one after the other ───────────────────────────────────────────────────────────────────────────


class _LoadedContext(msgspec.Struct):
    """A context with what is wrong in it, as far as others have to know."""

    faults: Faults
    faulty: frozenset[str]
    complete: bool


class _ContextLoader:
    def __init__(
        self,
        types: Types,
        functions: Mapping[str, DefinedFunction],
        limits: ExpressionLimits,
        sources: Sources,
        faults: Faults,
        problems: Problems,
    ) -> None:
        self._types, self._functions, self._limits = types, functions, limits
        self._sources, self._problems = sources, problems
        self._faults = faults
        self.shared = frozenset(name for name, each in functions.items() if each.converts)
        self.defined: dict[str, Context] = {}
        self.without_parent: set[str] = set()
        self.formers: list[str] = []
        """Roots that were replaced, the oldest first: each is a context over the one that came after it."""
        self.lost: frozenset[tuple[str, str]] = frozenset()
        self._found: dict[str, _LoadedContext] = {}

    @property
    def faulty(self) -> dict[str, Faults | None]:
        found = {id: each.faults if each.complete else None for id, each in self._found.items()}
        return {id: faults for id, faults in found.items() if faults != NO_FAULTS}

    def define_root(self, text: ContextText | None) -> None:
        scope = self._scope(self._types)
        root = Context(id=ROOT, types=self._types, functions=MappingProxyType(conversions_of(self._functions, scope)))
        self.defined[ROOT] = root
        self._found[ROOT] = _LoadedContext(self._faults, self._faults.functions, complete=True)
        if text is None:
            return
        if text.extends is not None:
            remedy = "Take the line out: everything else extends root."
            self._problems.add(
                UNKNOWN_CONTEXT(
                    text.extends.location,
                    name=text.extends.text,
                    reason="root has no parent",
                    nearest=(),
                    remedy=remedy,
                )
            )
        for key, _ in text.functions:
            if key.text in self.shared:
                first = "a file of functions/"
                problem = DECLARED_TWICE(key.location, what="The function", name=key.text, first=first)
                self._problems.add(problem)
        self._fill(text, root, self._problems, self._found[ROOT])

    def define(self, text: ContextText) -> None:
        above = text.extends.text if text.extends is not None and text.id not in self.without_parent else ROOT
        if text.id in self.formers:
            above = next((id for id in self.formers if former_root(id) > former_root(text.id)), ROOT)
        parent = self.defined.get(above) or self.defined[ROOT]
        if former_root(parent.id):
            parent = as_root(parent)
        inherited = self._found[parent.id]
        complete = inherited.complete and text.id not in self.without_parent
        problems = self._problems if complete else Problems()
        types = self._types_of(text, parent, problems)
        faults = inherited.faults
        if text.document is not None and self._problems.errors:
            faults = _together(faults, find_faults([text.document], types))
        own = frozenset({each.name for each in text.types} & types.types.keys())
        if text.id in self.formers:
            types, own = former_types(parent.types, types, own)
        context = Context(id=text.id, parent=parent, types=types, own=own, derive=text.derive)
        self._fill(text, context, problems, _LoadedContext(faults, inherited.faulty, complete))
        if text.id in self.formers:
            self.defined[text.id] = former = with_mappings(self.defined[text.id])
            check_replaced(former, {each.name: each.place() for each in text.types}, problems)
        if not complete:
            self._problems.extend(each for each in problems if _innermost(each).code not in _MAY_BE_ABOVE)

    def _types_of(self, text: ContextText, parent: Context, problems: Problems) -> Types:
        if not text.types and not text.units:
            return parent.types
        found = Problems()
        types = resolve(text.types, text.units, found, above=parent.types, root=parent.root.types)
        faults = self._found[parent.id].faults
        problems.extend(each for each in found if not faults.explain(each))
        return types

    def _scope(self, types: Types) -> NameScope:
        functions = callable_functions(self._functions)
        return NameScope(types=types, units=types.units, functions=functions, with_units=False, limits=self._limits)

    def _fill(self, text: ContextText, context: Context, problems: Problems, found: _LoadedContext) -> None:
        """Functions, then mappings, then the rules, which need both."""
        scope = self._scope(context.types)
        defined = define_functions(text, context, scope, self._sources, found.faults, problems)
        context = replace(context, functions=MappingProxyType({**context.functions, **defined.functions}))
        found.faulty |= defined.faulty
        # Derived types follow from rules, and rules are read by types: a first reading, without its problems, gives the
        # types.
        if context.derives:
            drafted = self._with_rules(text, context, found, Problems())
            context = replace(context, types=derived_types(drafted))
        context = self._with_rules(text, context, found, problems)
        self.defined[context.id] = context
        self._found[context.id] = found

    def _with_rules(self, text: ContextText, context: Context, found: _LoadedContext, problems: Problems) -> Context:
        mapped = define_mappings(text.maps, context, self._scope(context.types), found.faults, problems)
        self.lost |= mapped.lost
        context = replace(context, mappings=mapped.mappings)
        return replace(context, rules=define_rules(text, context, found.faults, found.faulty, problems))


# ── what follows from what ────────────────────────────────────────────────────────────────────────


def _innermost(problem: Problem) -> Problem:
    while problem.cause is not None:
        problem = problem.cause
    return problem


def _together(one: Faults, other: Faults) -> Faults:
    lost = {
        name: one.attributes.get(name, frozenset()) | other.attributes.get(name, frozenset())
        for name in one.attributes.keys() | other.attributes.keys()
    }
    return Faults(
        types=one.types | other.types,
        attributes=MappingProxyType(lost),
        without_unit=one.without_unit | other.without_unit,
        functions=one.functions,
    )
