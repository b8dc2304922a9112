"""``S150`` to ``S179`` and ``S210`` to ``S229``: what a policy says, against the ontology and the sources."""

from __future__ import annotations

from situ.catalogue.defining import define
from situ.errors import Severity

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
    "`{name}` needs to be told its {parameter}.",
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
    "`{attribute}` of `{concept}` changes with events; properties of an alias are what sources are asked for.",
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
    "`{name}` is said of `{alias}` and `{alias}` itself.",
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
