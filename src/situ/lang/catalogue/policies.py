"""``S``: how policies are written, what they say against ontology and sources, their actions, and their tests."""

from __future__ import annotations

from situ.lang.problems import Severity, define

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``S105`` to ``S119``, where sources have no number: how policies are written. ``S18x`` and ``S23x``: their actions.

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
    "The action `{name}` would put `{reference}` into an event, where every reader of the event can see it.",
    "Write something that is no secret. Secrets can be in the address, the headers and the data of a `webhook`, "
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
    "It is `unknown` then. If that is not acceptable, refer to an alias that every alternative has.",
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
    "`{policy}` reads events of {feeders}, and waits for them: it decides up to {total} behind its sources, which "
    "alone would be {own}, and {steps} of the engine later.",
    "Nothing to do. A shorter `lateness` of the sources behind them makes it sooner.",
    severity=Severity.OBSERVATION,
    policy=str,
    feeders=str,
    total=str,
    own=str,
    steps=str,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``S150`` to ``S179`` and ``S210`` to ``S229``: what a policy says, against the ontology and the sources.

NORMAL_FORM_TOO_LARGE = define(
    "S150",
    "conditions that multiply out to too much",
    "As an AND of ORs, this comes to {found} literals before any is left out; at most {limit} may remain.",
    "Alternatives multiply with each other: take out of them what they share, or write several policies. "
    "The limit is `limits.literals` of situ.yaml.",
    found=str,
    limit=int,
)
CONTRADICTORY = define(
    "S151",
    "conditions that contradict each other",
    "These conditions cannot be met together: {clauses}.",
    "Take one of them out, or join them by `or`.",
    clauses=str,
)
UNKNOWN_ALIAS = define(
    "S152",
    "unknown alias",
    "There is no alias `{name}` in this policy.",
    "Did you mean {nearest}?",
    "Aliases are given under `concepts`, as in `person {name}`.",
    name=str,
    nearest=tuple,
)
UNKNOWN_RELATIONSHIP = define(
    "S153",
    "unknown relationship",
    "There is no relationship `{name}`.",
    "Did you mean {nearest}?",
    "{remedy}",
    name=str,
    nearest=tuple,
    remedy=str,
)
UNKNOWN_MEASURE = define(
    "S154",
    "unknown measure",
    "There is no measure `{name}`.",
    "Did you mean {nearest}?",
    "{remedy}",
    name=str,
    nearest=tuple,
    remedy=str,
)
NOT_JOINED = define(
    "S155",
    "relationship between other concepts",
    "`{name}` does not join `{left}` and `{right}`.",
    "{remedy}",
    name=str,
    left=str,
    right=str,
    remedy=str,
)
PARAMETER_MISSING = define(
    "S156",
    "relationship without its parameter",
    "`{name}` needs its {parameter}.",
    "Write it behind the name, as in `{example}`.",
    name=str,
    parameter=str,
    example=str,
)
PARAMETER_SUPERFLUOUS = define(
    "S157",
    "parameter of a relationship that takes none",
    "`{name}` takes no parameter, but `{value}` stands behind it.",
    "Leave it out.",
    name=str,
    value=str,
)
CONDITION_UNFIT = define(
    "S158",
    "condition that does not fit",
    "`{text}` does not fit what it is about.",
    "{remedy}",
    text=str,
    remedy=str,
)
NEVER_HOLDS = define(
    "S159",
    "condition that is never true",
    "`{text}` can never be true.",
    "No event and no row could meet the policy: correct the values, or take the condition out.",
    text=str,
)
EVENT_BASED_PROPERTY = define(
    "S160",
    "property that events bring",
    "`{attribute}` of `{concept}` comes with events; properties of an alias come from pull sources.",
    "Write it as a condition: `{condition}`.",
    attribute=str,
    concept=str,
    condition=str,
)
SEVERAL_EVENT_BASED = define(
    "S161",
    "several event-based attributes in one relation",
    "This reads {attributes} of `{alias}`, each of which comes with events of its own.",
    "A relation uses one event-based attribute of an alias: write a condition for each.",
    attributes=str,
    alias=str,
)
CONSTRAINT_IN_SEQUENCE = define(
    "S162",
    "sequence of what does not happen",
    "`{text}` says nothing about events, so nothing can follow it or be followed by it.",
    "Take it out of the sequence and join it by `and`; or let a push source bring {attributes}.",
    text=str,
    attributes=str,
)
CONSTRAINT_ALONE = define(
    "S163",
    "condition that is connected with no event",
    "`{text}` says nothing about events, and shares no alias with a condition that does.",
    "Add a condition about events of {aliases}, or take this one out.",
    text=str,
    aliases=str,
)
NOTHING_TRIGGERS = define(
    "S164",
    "policy that nothing can trigger",
    "Nothing can trigger this policy: {reason}.",
    "{remedy}",
    reason=str,
    remedy=str,
)
ALIAS_TWICE = define(
    "S165",
    "alias given twice",
    "The alias `{name}` is given twice, first at {first}.",
    "An alias stands for one thing throughout a policy: choose another name.",
    name=str,
    first=str,
)
NO_RELATION = define(
    "S166",
    "comparison of no alias or of too many",
    "This compares {found}.",
    "A condition is about one alias or two, as in `A.speed > 50 [km/h]` or `distance(A, B) < 5 m`.",
    found=str,
)
SAME_ALIAS = define(
    "S167",
    "relation of an alias to itself",
    "`{name}` relates `{alias}` to itself.",
    "Give two aliases; they may stand for the same instance.",
    name=str,
    alias=str,
)
KEPT_TOO_LONG = define(
    "S168",
    "value that counts again too often",
    "The push source `{push}` keeps values for {keep}, and each would count again after every {window}: {count} times.",
    "Give the policy a longer window, or let the source keep values for less; at most {most} times are possible.",
    push=str,
    keep=str,
    window=str,
    count=str,
    most=str,
)
ALIAS_UNUSED = define(
    "S210",
    "alias that is not used",
    "The alias `{name}` is given, but no condition is about it.",
    "Take it out, or write a condition: as it is, it changes nothing.",
    severity=Severity.WARNING,
    name=str,
)
CONSUMPTION_UNUSED = define(
    "S211",
    "consumption without pairs of events",
    "`consumption {mode}` changes nothing: no condition of this policy pairs two events.",
    "Nothing to do; it may be left out.",
    severity=Severity.OBSERVATION,
    mode=str,
)
NEVER_MET = define(
    "S212",
    "condition that no times can meet",
    "This can never be met: {reason}.",
    "Give the window or the `within` another length, or take out what excludes the rest.",
    severity=Severity.WARNING,
    reason=str,
)
COMPARED_OUTSIDE = define(
    "S213",
    "comparison outside the domain of its attribute",
    "`{text}` is {verdict} of every value of `{attribute}`: {domain}.",
    "Compare with a value that the attribute can have on both sides.",
    severity=Severity.WARNING,
    text=str,
    verdict=str,
    attribute=str,
    domain=str,
)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``S195`` to ``S199``: tests of policies, and questions about what they detect.

UNKNOWN_POLICY = define(
    "S195",
    "unknown policy",
    "There is no policy `{name}`.",
    "Did you mean {nearest}?",
    "Policies are the files `policies/*.dpl`.",
    name=str,
    nearest=tuple,
)
NO_TABLE_TO_FILL = define(
    "S196",
    "rows for no table",
    "There is no pull source `{name}` to give rows to.",
    "Did you mean {nearest}?",
    "Pull sources are declared under `pull` in `sources/*.yaml`.",
    name=str,
    nearest=tuple,
)
TEST_FILE_UNFIT = define(
    "S197",
    "file of a test that cannot be used",
    "`{file}` cannot stand for a list here: {reason}.",
    "{remedy}",
    file=str,
    reason=str,
    remedy=str,
)
NO_DETECTION = define(
    "S198",
    "unknown detection",
    "There is no detection or situation `{id}` {where}.",
    "{remedy}",
    id=str,
    where=str,
    remedy=str,
)
NOT_EXPLAINED = define(
    "S199",
    "detection that cannot be explained any more",
    "How `{id}` was detected cannot be explained: {reason}.",
    "{remedy}",
    id=str,
    reason=str,
    remedy=str,
)
