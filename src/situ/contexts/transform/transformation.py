"""What becomes of events on the way into a context or out of it: one expression per event type.

A context is compiled from everything that is visible in it, straight to root: how deep it stands costs nothing. A
transformation is data, an expression over ``event`` and ``data`` whose type is the target's, with where each part comes
from; both engines compile it, subscriptions are mediated with it, people read it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from situ.catalogue import NO_WAY, PASSES_UNMAPPED
from situ.errors import Problem, Problems, SituError
from situ.expr.print import print_expression
from situ.expr.tree import Node, Read, walk
from situ.interpretation.calls import External
from situ.interpretation.code import digest
from situ.interpretation.mapped import event_steps
from situ.interpretation.model import Context, Direction, Lookup, MappedTo, Pattern, State
from situ.interpretation.patterns import Traversal
from situ.interpretation.precedence import key
from situ.interpretation.resolution import Rules
from situ.interpretation.steps import Provenance, Step, Value, provenance
from situ.interpretation.verify import Verification
from situ.types.model import ListOf, Named, Struct, Type, plain, supertypes
from situ.types.table import Types


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """How events of type ``source`` become events of type ``target``, in one direction of one version of a context."""

    context: str
    direction: Direction
    source: Struct
    target: Struct
    step: Step
    mapping: MappedTo | None = None
    dropped: tuple[str, ...] = ()
    """Attributes of the source that have no place in the target."""
    lossy: bool = False
    """A function says that it loses something, or digits are rounded away."""
    externals: Mapping[str, External] = field(default_factory=lambda: MappingProxyType({}))
    """What the host binds before it evaluates, by the name of the variable."""
    types: Types = field(default_factory=lambda: Types(types={}), compare=False, repr=False)
    """What is visible where the events come from."""
    targets: Types = field(default_factory=lambda: Types(types={}), compare=False, repr=False)
    """What is visible where they go."""
    plan: str = ""
    """The same for equal transformations only: a hash of everything that decides what comes out."""
    through: tuple[Transformation, Transformation] | None = field(default=None, compare=False, repr=False)
    """The two that it is made of, if it leads over a root that was replaced: they say what their places are."""

    @property
    def node(self) -> Node:
        return self.step.node

    @property
    def places(self) -> tuple[Provenance, ...]:
        """Where every value of the target comes from."""
        return tuple(provenance(self.step))

    @property
    def can_fail(self) -> bool:
        return self.node.can_fail

    @property
    def native(self) -> bool:
        """Whether expressions do it all: no table, nothing remembered, no Python."""
        return not self.externals

    @property
    def execution(self) -> str:
        """``native`` expressions and tables, ``arrow`` with functions of Python, or ``stateful``."""
        needs = [each.of for each in self.externals.values()]
        if any(isinstance(each, State) for each in needs):
            return "stateful"
        return "arrow" if None in needs else "native"

    @property
    def is_identity(self) -> bool:
        """Whether events come out as they went in, type and all."""
        return isinstance(self.step, Value) and self.step.copied and self.source == self.target

    @property
    def reads_envelope(self) -> bool:
        return any(isinstance(part, Read) and part.variable == "event" for part in walk(self.node))


def transformations(context: Context, direction: Direction, problems: Problems) -> Mapping[str, Transformation]:
    """The transformations of all event types that have a way, by the name of the source event type.

    What is wrong is reported, all of it; so is which types have no mapping, and whether they pass. A context below a
    root that was replaced is compiled against that, and what leads from there to root is made one with it.
    """
    # What fuses transformations is made of them.
    from situ.interpretation.bridged import bridged

    compiled = own_transformations(context, direction, problems)
    bridge = context.root.bridge
    if bridge is None:
        return compiled
    known: dict[Direction, Mapping[str, Transformation]] = context.compiled.setdefault("bridged", {})
    if direction not in known:
        known[direction] = bridged(compiled, transformations(bridge, direction, Problems()), direction)
    return known[direction]


def own_transformations(context: Context, direction: Direction, problems: Problems) -> Mapping[str, Transformation]:
    """The same, from and to what the context takes for root."""
    known: dict[Direction, _Compiled] = context.compiled.setdefault("own", {})
    if direction not in known:
        found = Problems()
        known[direction] = (_compile(context, direction, found), tuple(found))
    made, told = known[direction]
    problems.extend(told)
    return made


_Compiled = tuple[Mapping[str, Transformation], tuple[Problem, ...]]


def _compile(context: Context, direction: Direction, problems: Problems) -> Mapping[str, Transformation]:
    compiled: dict[str, Transformation] = {}
    compiling = _Compiling(context, direction)
    for name in sorted(compiling.types.events):
        event = compiling.types.event(name)
        if event is None:
            continue
        try:
            made = compiling.transformation(event, problems)
        except SituError as error:
            problems.extend(error.problems)
            continue
        if made is not None:
            compiled[name] = made
    return MappingProxyType(compiled)


def mapping_for(event: Struct, mappings: Mapping[Struct, MappedTo]) -> MappedTo | None:
    """The mapping whose source is nearest to the type of the event."""
    path = Traversal(event=event)
    known = dict.fromkeys(each for each in supertypes(event) if isinstance(each, Struct) and each in mappings)
    # The order of the mappings decides between two that are as near.
    sources = known if len(known) < 2 else [source for source in mappings if source in known]
    above = [mappings[source] for source in sources]
    return min(above, key=lambda mapping: key(Pattern(head=mapping.source), path), default=None)


def mappings_in_force(context: Context, direction: Direction) -> Mapping[Struct, MappedTo]:
    """By source type: of the nearest context, there the last."""
    found: dict[Struct, MappedTo] = {}
    for each in reversed(list(context.chain)):
        found.update({mapping.source: mapping for mapping in each.mappings if mapping.direction is direction})
    return found


class _Compiling:
    """What all event types of a context and direction share."""

    def __init__(self, context: Context, direction: Direction) -> None:
        self.context, self.direction = context, direction
        self.types, self.targets = context.types_of(direction), context.targets_of(direction)
        self.rules = Rules.of(context, direction)
        self.mappings = mappings_in_force(context, direction)

    @property
    def _sides(self) -> tuple[str, str]:
        """The contexts that types come from and go to."""
        own, root = self.context.id, self.context.root.id
        return (own, root) if self.direction is Direction.IN else (root, own)

    def transformation(self, event: Struct, problems: Problems) -> Transformation | None:
        mapping = mapping_for(event, self.mappings)
        if mapping is None:
            return self._unmapped(event, problems)
        found = Verification(source=event, target=mapping.target, sides=self._sides, where=mapping.location)
        made = self._made(found, mapping)
        problems.extend(found.problems)
        return made

    def _made(self, found: Verification, mapping: MappedTo | None) -> Transformation | None:
        step, externals = event_steps(self.context, self.direction, self.rules, mapping, found)
        if step is None or found.failed:
            return None
        return Transformation(
            context=self.context.name,
            direction=self.direction,
            source=found.source,
            target=found.target,
            step=step,
            mapping=mapping,
            dropped=tuple(found.dropped),
            lossy=found.lossy,
            externals=MappingProxyType(dict(externals)),
            types=self.types,
            targets=self.targets,
            plan=_plan(self.context, self.direction, found, step, externals),
        )

    def _unmapped(self, event: Struct, problems: Problems) -> Transformation | None:
        """Passes under its own type if both sides see the same and no rule changes what an attribute is.

        In a context that derives types, what rules change became a type of its own name that has what they give, and
        on the way in that one becomes the original again.
        """
        source, target = event, self.targets.event(event.name)
        derived = self.context.derives and not self.context.declares(event.name)
        if target is None or (target != source and not derived):
            other = "another type has that name there" if self.targets.get(event.name) else "it is not known there"
            self._not_available(event, f"it has no mapping, and {other}", problems)
            return None
        found = Verification(source=source, target=target, sides=self._sides)
        made = self._made(found, None)
        if made is None:
            reason = "; ".join(problem.message.removesuffix(".") for problem in found.problems.errors)
            self._not_available(event, f"it has no mapping, and {reason}", problems)
            return None
        problems.extend(found.problems)
        if self.context.parent is not None and source == target:
            direction = self.direction.value
            problems.add(PASSES_UNMAPPED(type=event.name, context=self.context.id, direction=direction))
        return made

    def _not_available(self, event: Struct, reason: str, problems: Problems) -> None:
        direction = self.direction.value
        problems.add(NO_WAY(type=event.name, context=self.context.id, direction=direction, reason=reason))


# ── plan id ───────────────────────────────────────────────────────────────────────────────────────


def _plan(
    context: Context, direction: Direction, found: Verification, step: Step, externals: Mapping[str, External]
) -> str:
    seen: dict[str, str] = {}
    for type in (found.source, found.target):
        _describe(type, seen)
    parts = [context.name, direction.value, found.source.name, found.target.name]
    parts.extend(f"{name}={text}" for name, text in sorted(seen.items()))
    parts.extend(_described(step))
    for name, each in sorted(externals.items()):
        keys = " ".join(f"{column}={print_expression(key)}" for column, key in each.keys)
        function = each.function
        code = digest(function.code) if function.code else ""
        about = (function.time, function.python, code, function.missing, function.default, function.hold)
        parts.append(f"{name} {_source(each)} {about!r} {print_expression(each.argument)} {keys}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _source(external: External) -> str:
    match external.of:
        case Lookup(source=source, as_of=as_of):
            return f"{source} {as_of}"
        case State() as state:
            kept = ", ".join(f"{name}={each.text}" for name, each in state.keep)
            return f"{state.event} {state.key.text} {kept} {state.ttl} {state.max_keys} {state.history}"
        case None:
            return ""


def _described(step: Step) -> Iterator[str]:
    yield print_expression(step.node)
    for each in provenance(step):
        yield f"{each.target} {each.source} {each.rule} {each.function}"


def _describe(type: Type, seen: dict[str, str]) -> None:
    bare = plain(type)
    if isinstance(bare, ListOf):
        return _describe(bare.element, seen)
    if not isinstance(bare, Struct) or bare.name in seen:
        return None
    shown = (f"{a.name}:{_basis(a.type)} {a.unit} {a.optional} {a.default!r}" for a in bare.attributes)
    seen[bare.name] = ";".join(shown)
    for attribute in bare.attributes:
        _describe(attribute.type, seen)
    return None


def _basis(type: Type) -> str:
    return f"{type}({type.base})" if isinstance(type, Named) else str(type)
