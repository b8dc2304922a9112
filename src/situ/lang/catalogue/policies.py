"""``S``: how policies are written (S105 to S119, where sources have no number), and their actions (S18x, S23x)."""

from __future__ import annotations

from situ.catalogue.defining import define
from situ.errors import Severity

POLICY_SYNTAX = define(
    "S105",
    "syntax of a policy",
    "{found} is unexpected here: expected {expected}.",
    "Did you mean {nearest}?",
    "{remedy}",
    found=str,
    expected=str,
    nearest=tuple,
    remedy=str,
)
NO_SECTION = define(
    "S106",
    "policy without a section",
    "The policy has no section `{section}`.",
    "A policy has `concepts`, `conditions` and `actions`, in this order; below `{section}` stands, say, `{example}`.",
    section=str,
    example=str,
)
SECTION_UNFIT = define(
    "S107",
    "section that does not fit",
    "The section `{section}` {reason}.",
    "{remedy}",
    section=str,
    reason=str,
    remedy=str,
)
NOT_OUTSIDE = define(
    "S108",
    "negation outside of a relation",
    "`not` stands before {what}, and that can be read in more than one way.",
    "Negate single relations. Write what you mean: {readings}.",
    what=str,
    readings=tuple,
)
FOREIGN_SPELLING = define(
    "S109",
    "spelling of another language",
    "{found} is not a word of policies.",
    "{remedy}",
    found=str,
    remedy=str,
)
NOT_CLOSED = define(
    "S110",
    "not closed, or closed without being opened",
    "{what} {reason}.",
    "{remedy}",
    what=str,
    reason=str,
    remedy=str,
)
OPTION_UNFIT = define(
    "S114",
    "option of a policy that does not fit",
    "The option `{option}` {reason}.",
    "Did you mean {nearest}?",
    "{remedy}",
    option=str,
    reason=str,
    nearest=tuple,
    remedy=str,
)
CONCEPT_INCOMPLETE = define(
    "S115",
    "concept or alias missing",
    "{found} is not enough here: a concept and an alias for it are expected.",
    "{remedy}",
    found=str,
    remedy=str,
)
RELATION_INCOMPLETE = define(
    "S116",
    "relation that is not complete",
    "This is no relation: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
POLICY_NAME = define(
    "S117",
    "name of a policy",
    "{found} is no name for a policy.",
    "Names of policies have 1 to 64 letters A to Z, digits and hyphens, such as `night-watch`.",
    found=str,
)
TWO_POLICIES = define(
    "S118",
    "two policies in one file",
    "A second policy begins here.",
    "Every policy has a file of its own: move this one to `policies/{name}.dpl`.",
    "Every policy has a file of its own: move this one there.",
    name=str,
)
POLICY_TOO_LARGE = define(
    "S119",
    "policy too large",
    "The policy is too large: more than {limit} {what}.",
    "{remedy}",
    what=str,
    limit=int,
    remedy=str,
)

# ── actions ───────────────────────────────────────────────────────────────────────────────────────

UNKNOWN_ACTION = define(
    "S180",
    "unknown action",
    "There is no action `{name}`.",
    "Did you mean {nearest}?",
    "Declare it in `actions.yaml`, or write one of those that are built in: {known}.",
    name=str,
    nearest=tuple,
    known=tuple,
)
ACTION_UNFIT = define(
    "S181",
    "action that cannot be done",
    "The action `{name}` {reason}.",
    "{remedy}",
    name=str,
    reason=str,
    remedy=str,
)
TEMPLATE_SYNTAX = define(
    "S182",
    "syntax of a template",
    "This is no template: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
TEMPLATE_NAME = define(
    "S183",
    "name in a template that means nothing",
    "`{reference}` in the action `{action}` means nothing in this policy: {reason}.",
    "Did you mean {nearest}?",
    "{remedy}",
    reference=str,
    action=str,
    reason=str,
    nearest=tuple,
    remedy=str,
)
DATA_UNFIT = define(
    "S184",
    "data of an action that do not fit",
    "`{path}` of the action `{action}`: found {found}, expected {expected}.",
    "{remedy}",
    path=str,
    action=str,
    found=str,
    expected=str,
    remedy=str,
)
ACTION_ARGUMENTS = define(
    "S185",
    "action with too few or too many words",
    "The action `{name}` needs {needed} behind its name, and has {found}.",
    "{remedy}",
    name=str,
    needed=str,
    found=str,
    remedy=str,
)
OPPOSED_UNFIT = define(
    "S186",
    "opposition that means nothing",
    "These do not oppose each other: {reason}.",
    "Did you mean {nearest}?",
    "Write pairs of actions that are declared: `opposed: [[open window, close window]]`.",
    reason=str,
    nearest=tuple,
)
TRIGGERS_ITSELF = define(
    "S187",
    "policy that can trigger itself without end",
    "The policy `{policy}` can trigger itself without end: {how}.",
    "{remedy}",
    policy=str,
    how=str,
    remedy=str,
)
ENVIRONMENT_IN_EVENT = define(
    "S189",
    "secret in an event",
    "The action `{name}` would put `{reference}` into an event, where whoever reads the event reads it.",
    "Write what may be known. Secrets can stand in the address, the headers and the data of a `webhook`, "
    "which are filled in where the request is sent.",
    name=str,
    reference=str,
)
ALIAS_NEVER_BOUND = define(
    "S188",
    "alias that a detection never binds",
    "`{reference}` in the action `{action}` is never known: `{alias}` stands only for what does not happen.",
    "Refer to an alias of a condition that is met: {known}.",
    "Refer to nothing, or to `{{policy}}` and `{{time}}`.",
    reference=str,
    action=str,
    alias=str,
    known=tuple,
)
OPPOSED_TOGETHER = define(
    "S230",
    "opposed actions at the same time",
    "`{action}` here and `{other_action}` of the policy `{other}` oppose each other, and both policies can hold at the "
    "same time for {what}.",
    "Make their conditions exclude each other, or let one suspend the other.",
    severity=Severity.WARNING,
    action=str,
    other_action=str,
    other=str,
    what=str,
)
TRIGGER_EACH_OTHER = define(
    "S231",
    "policies that trigger each other",
    "These policies can trigger each other without end: {policies}.",
    "Let one of them publish something that the others do not observe.",
    severity=Severity.WARNING,
    policies=str,
)
SIMILAR_POLICIES = define(
    "S232",
    "similar policies",
    "The policy `{policy}` is similar to {others}.",
    "If they should be one, remove the others; if not, this is as it should be.",
    severity=Severity.OBSERVATION,
    policy=str,
    others=tuple,
)
ALIAS_SOMETIMES_BOUND = define(
    "S233",
    "alias that not every detection binds",
    "`{reference}` in the action `{action}` is unknown where the policy is met without `{alias}`.",
    "It reads `unknown` then. Refer to an alias that every alternative has, if that will not do.",
    severity=Severity.WARNING,
    reference=str,
    action=str,
    alias=str,
)
NO_SUCH_POLICY = define(
    "S234",
    "action on a policy that is not there",
    "There is no policy `{name}` to {verb}.",
    "Did you mean {nearest}?",
    "The action does nothing until there is one.",
    severity=Severity.WARNING,
    name=str,
    verb=str,
    nearest=tuple,
)
WAITS_FOR_POLICIES = define(
    "S235",
    "policy that waits for others",
    "`{policy}` reads events of {feeders}, and decides no sooner: up to {total} behind its sources where its own ask "
    "for {own}, and {steps} of the engine later.",
    "Nothing to do. A shorter `lateness` of the sources behind them makes it sooner.",
    severity=Severity.OBSERVATION,
    policy=str,
    feeders=str,
    total=str,
    own=str,
    steps=str,
)
