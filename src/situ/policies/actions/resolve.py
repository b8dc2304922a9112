"""The actions of a policy: from the words that stand there to a declared or built-in action with its arguments.

The longest beginning of the words that names an action counts; what is left are its arguments. What the templates of
the action refer to is looked up among the aliases of the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from situ.lang.catalogue import (
    ACTION_ARGUMENTS,
    ACTION_UNFIT,
    ALIAS_NEVER_BOUND,
    ALIAS_SOMETIMES_BOUND,
    TEMPLATE_NAME,
    UNKNOWN_ACTION,
)
from situ.lang.problems import Location, Problems, SituError, nearest
from situ.lang.types.model import STRING, TIMESTAMP, Attribute
from situ.lang.types.table import Types
from situ.policies.actions.data import misfits
from situ.policies.actions.model import (
    VERBS,
    ActionStep,
    CommandStep,
    DeclaredActions,
    DeletePolicyStep,
    LogStep,
    NotifyStep,
    PublishStep,
    SuspendPolicyStep,
    WebhookStep,
    has_host,
    references_of,
)
from situ.policies.actions.templates import ABOUT, Template, TemplateReference, parse_template, text_template
from situ.policies.language.syntax import ActionText
from situ.policies.model import Clause, ConditionLiteral, PolicyAction, RelationLiteral, SequenceLiteral
from situ.policies.ontology.model import Concept

_NEEDS: Mapping[str, tuple[int, int, str]] = {
    "publish": (1, 1, "publish Alarm"),
    "notify": (1, 99, "notify headquarters 'help'"),
    "webhook": (1, 1, "webhook https://example.org/alarm"),
    "command": (1, 1, "command siren-1"),
    "log": (0, 99, "log 'someone is alone'"),
    "delete policy": (1, 1, "delete policy night-watch"),
    "suspend policy": (1, 1, "suspend policy night-watch"),
}
"""By built-in action: how many words it takes at least and at most, and how that looks."""


class BoundAliases(msgspec.Struct, frozen=True, kw_only=True):
    """The aliases of a policy with their concepts, and which of them detections bind: always, or at all."""

    concepts: Mapping[str, Concept]
    always: frozenset[str]
    ever: frozenset[str]

    @classmethod
    def of(cls, concepts: Mapping[str, Concept], clauses: tuple[Clause, ...] | None) -> BoundAliases:
        """Without clauses, because something is wrong with the conditions, nothing is said about what they bind."""
        if clauses is None:
            return cls(concepts=concepts, always=frozenset(concepts), ever=frozenset(concepts))
        each = [[_binds(literal) for literal in clause] for clause in clauses]
        ever = frozenset(alias for clause in each for literal in clause for alias in literal)
        always = frozenset(
            alias for alias in ever if any(all(alias in literal for literal in clause) for clause in each)
        )
        return cls(concepts=concepts, always=always, ever=ever)


def resolve_action(
    written: ActionText, actions: DeclaredActions, bound: BoundAliases, types: Types, problems: Problems
) -> PolicyAction:
    """The action that the words name; what is wrong with it is reported."""
    words = [word.text for word in written.words]
    name = _named(words, actions)
    if name is None:
        _unknown(written, words, actions, problems)
        return PolicyAction(name=" ".join(words), location=written.location)
    if name in actions.faulty:
        return PolicyAction(name=name, location=written.location)
    count = len(name.split())
    action = PolicyAction(name=name, arguments=tuple(map(_plain, words[count:])), location=written.location)
    if name not in actions.named:
        _check_templates(action, problems)
    if _arguments_fit(action, actions, problems):
        checking = _Checking(action, bound, types, problems, built_in=name not in actions.named)
        checking.steps(steps_of(action, actions))
    return action


def steps_of(action: PolicyAction, actions: DeclaredActions) -> tuple[ActionStep, ...]:
    """What is to be done for an action of a policy, in order; nothing for one that is faulty or not known."""
    if (declared := actions.named.get(action.name)) is not None:
        return declared.steps
    if action.name == "log" and not action.arguments:
        return (LogStep(),)
    if action.name not in VERBS or not action.arguments:
        return ()
    first, *rest = action.arguments
    said = _template(" ".join(rest)) if rest else None
    match action.name:
        case "publish":
            return (PublishStep(type=first),)
        case "notify":
            return (NotifyStep(to=_template(first), text=said),)
        case "webhook":
            return (WebhookStep(url=_template(first)),)
        case "command":
            return (CommandStep(to=_template(first)),)
        case "log":
            return (LogStep(text=_template(" ".join(action.arguments))),)
        case "delete policy":
            return (DeletePolicyStep(policy=_template(first)),)
        case _:
            return (SuspendPolicyStep(policy=_template(first)),)


@lru_cache(maxsize=1024)
def _template(text: str) -> Template:
    """What stands in a policy, as a template. Text that is none is itself; checking the policy says so."""
    try:
        return parse_template(text, lambda start, length: None)
    except SituError:
        return text_template(text)


def _named(words: list[str], actions: DeclaredActions) -> str | None:
    known = {name.lower(): name for name in (*VERBS, *actions.faulty, *actions.named)}
    for count in range(len(words), 0, -1):
        if (name := known.get(" ".join(words[:count]).lower())) is not None:
            return name
    return None


def _plain(word: str) -> str:
    """An argument without its quotes."""
    return word[1:-1].replace("''", "'") if len(word) > 1 and word[0] == word[-1] == "'" else word


def _unknown(written: ActionText, words: list[str], actions: DeclaredActions, problems: Problems) -> None:
    known = (*actions.named, *VERBS)
    lengths = {len(name.split()) for name in known} | {len(words)}
    close: dict[str, None] = {}
    for count in sorted(lengths, reverse=True):
        close |= dict.fromkeys(nearest(" ".join(words[:count]), known, 2))
    problems.add(UNKNOWN_ACTION(written.location, name=" ".join(words), nearest=tuple(close)[:3], known=VERBS))


def _arguments_fit(action: PolicyAction, actions: DeclaredActions, problems: Problems) -> bool:
    found = len(action.arguments)
    declared = actions.named.get(action.name)
    if declared is not None:
        least = most = declared.arguments
        remedy = f"Its templates refer to {', '.join(f'`{{{number}}}`' for number in range(1, most + 1))}."
        remedy = remedy if most else "Its templates refer to none; with `{1}` they would refer to the first."
    else:
        least, most, example = _NEEDS[action.name]
        remedy = f"Write `{example}`."
    if least <= found <= most:
        return True
    needed = _words(least) if least == most or found < least else f"at most {_words(most)}"
    problems.add(ACTION_ARGUMENTS(action.location, name=action.name, needed=needed, found=_words(found), remedy=remedy))
    return False


def _check_templates(action: PolicyAction, problems: Problems) -> None:
    try:
        parse_template(" ".join(action.arguments), lambda start, length: action.location)
    except SituError as error:
        problems.extend(error.problems)


def _words(count: int) -> str:
    return {0: "nothing", 1: "one word"}.get(count, f"{count} words")


class _Checking:
    """One action in one policy."""

    def __init__(
        self, action: PolicyAction, bound: BoundAliases, types: Types, problems: Problems, *, built_in: bool
    ) -> None:
        self.action, self.bound, self.types, self.problems = action, bound, types, problems
        self.built_in = built_in

    @property
    def place(self) -> Location | None:
        return self.action.location

    def steps(self, steps: tuple[ActionStep, ...]) -> None:
        for step in steps:
            for reference in references_of(step):
                self._reference(reference)
            if isinstance(step, PublishStep):
                self._publish(step)
            elif isinstance(step, WebhookStep) and not has_host(step.url):
                remedy = "Write `https://…`; references can stand behind the host only."
                self._unfit(f"calls `{step.url}`, which is no address with a host of its own", remedy)

    def _publish(self, step: PublishStep) -> None:
        struct = self.types.event(step.type) if step.type in self.types.events else None
        if struct is None:
            similar = nearest(step.type, self.types.events, 1)
            remedy = f"Did you mean `{similar[0]}`?" if similar else "Declare it under `events:` in `types/*.yaml`."
            self._unfit(f"publishes `{step.type}`, which is no event type", remedy)
            return
        given = {name for name, _ in step.data.entries}
        lacking = [
            each.name
            for each in struct.attributes
            if not each.nullable and each.default is None and each.name not in given
        ]
        if lacking:
            remedy = "Declare an action in `actions.yaml` that says what the event holds, and write its name here."
            self._unfit(f"publishes `{step.type}` without `{lacking[0]}`", remedy)
        self.problems.extend(misfits(step.data, struct, self._attribute, self.action.name, self.place))

    def _attribute(self, reference: TemplateReference) -> Attribute | None:
        """What a reference stands for, if it stands for anything."""
        if reference.argument or reference.is_environment or (reference.is_alias and not reference.attribute):
            return Attribute(name=reference.name, type=STRING)
        if not reference.is_alias:
            return Attribute(name=reference.name, type=TIMESTAMP if reference.name == "time" else STRING)
        concept = self.bound.concepts.get(reference.name)
        return None if concept is None else concept.attribute(reference.attribute)

    def _reference(self, reference: TemplateReference) -> None:
        if not reference.is_alias:
            if self.built_in and (reference.argument or reference.is_environment):
                remedy = "Declare an action in `actions.yaml` that refers to it, and write its name here."
                self._means_nothing(reference, "only declared actions can refer to that", (), remedy)
            return
        alias, name = reference.name, self.action.name
        concept = self.bound.concepts.get(alias)
        if concept is None:
            known = (*self.bound.concepts, *ABOUT)
            remedy = f"Its aliases are {', '.join(f'`{each}`' for each in self.bound.concepts)}."
            self._means_nothing(reference, f"it has no alias `{alias}`", nearest(alias, known), remedy)
        elif reference.attribute and concept.attribute(reference.attribute) is None:
            known = tuple(each.name for each in concept.attributes)
            reason = f"a {concept.name} has no attribute `{reference.attribute}`"
            remedy = f"It has {', '.join(f'`{each}`' for each in known)}."
            self._means_nothing(reference, reason, nearest(reference.attribute, known), remedy)
        elif alias not in self.bound.ever:
            shown = tuple(f"{{{each}}}" for each in self.bound.concepts if each in self.bound.ever)
            self.problems.add(
                ALIAS_NEVER_BOUND(self.place, reference=str(reference), action=name, alias=alias, known=shown)
            )
        elif alias not in self.bound.always:
            self.problems.add(ALIAS_SOMETIMES_BOUND(self.place, reference=str(reference), action=name, alias=alias))

    def _means_nothing(self, reference: TemplateReference, reason: str, similar: tuple[str, ...], remedy: str) -> None:
        self.problems.add(
            TEMPLATE_NAME(
                self.place,
                reference=str(reference),
                action=self.action.name,
                reason=reason,
                nearest=similar,
                remedy=remedy,
            )
        )

    def _unfit(self, reason: str, remedy: str) -> None:
        self.problems.add(ACTION_UNFIT(self.place, name=self.action.name, reason=reason, remedy=remedy))


def _binds(literal: ConditionLiteral) -> tuple[str, ...]:
    """The aliases that an occurrence of this literal binds: none if it is about what does not happen."""
    parts: tuple[RelationLiteral, ...] = literal.parts if isinstance(literal, SequenceLiteral) else (literal,)
    return tuple(alias for part in parts if not part.negated for alias in part.relation.aliases)
