"""``S120`` to ``S139``: ontologies, and what policies lack of them."""

from __future__ import annotations

from situ.catalogue.defining import define
from situ.errors import Severity

NO_IDENTITY = define(
    "S120",
    "concept without identity",
    "The concept `{concept}` has no identity: {reason}.",
    "Every concept has an attribute `id` that is a text, as in `{concept}: {{id: string}}`.",
    concept=str,
    reason=str,
)
UNKNOWN_CONCEPT = define(
    "S121",
    "unknown concept",
    "There is no concept `{name}`.",
    "Did you mean {nearest}?",
    "Concepts are declared under `concepts:` in `ontology.yaml`.",
    name=str,
    nearest=tuple,
)
UNKNOWN_CONCEPT_ATTRIBUTE = define(
    "S122",
    "unknown attribute of a concept",
    "The concept `{concept}` has no attribute `{name}`.",
    "Did you mean {nearest}?",
    "Its attributes are {known}.",
    concept=str,
    name=str,
    nearest=tuple,
    known=tuple,
)
CONCEPT_CYCLE = define(
    "S123",
    "concepts in a circle",
    "`{name}` {what} itself: {cycle}.",
    "{remedy}",
    name=str,
    what=str,
    cycle=str,
    remedy=str,
)
CONCEPT_DEFAULT = define(
    "S124",
    "attribute of a concept with a default",
    "`{attribute}` of `{concept}` has a default, but what nobody knows of an instance is unknown.",
    "Give the default to the column of the source that provides it.",
    concept=str,
    attribute=str,
)
BAD_ENDS = define(
    "S125",
    "relationship without two ends",
    "`{name}` is not said to be between two attributes: {reason}.",
    "Write `between: [person.position, room.area]`.",
    name=str,
    reason=str,
)
UNKNOWN_RELATIONSHIP_FUNCTION = define(
    "S126",
    "unknown function of a relationship",
    "There is no function `{function}` for `{name}`.",
    "Did you mean {nearest}?",
    "It is one of {known}, or a function of `functions/*.yaml`.",
    name=str,
    function=str,
    nearest=tuple,
    known=tuple,
)
RELATIONSHIP_UNFIT = define(
    "S127",
    "function that does not fit its ends",
    "`{function}` cannot be used for `{name}` between `{left}` ({left_type}) and `{right}` ({right_type}).",
    "{remedy}",
    name=str,
    function=str,
    left=str,
    left_type=str,
    right=str,
    right_type=str,
    remedy=str,
)
RELATIONSHIP_AMBIGUOUS = define(
    "S128",
    "two relationships for the same concepts",
    "`{name}` between `{left}` and `{right}` is there already, for the same concepts, at {first}.",
    "A policy names relationships by concepts alone: give one of the two another name.",
    name=str,
    left=str,
    right=str,
    first=str,
)
UNFIT_FOR_FUNCTION = define(
    "S129",
    "parameter that does not go with its function",
    "`{name}` cannot be declared so: {reason}.",
    "{remedy}",
    name=str,
    reason=str,
    remedy=str,
)
MEASURE_UNFIT = define(
    "S130",
    "measure that gives no single value",
    "`{name}` gives {found}, with which nothing can be compared.",
    "A measure gives a number, a text, a time or a boolean.",
    name=str,
    found=str,
)
CONTAINER_UNFIT = define(
    "S131",
    "attribute that cannot name a container",
    "`{part}` is part of `{container}`, but its attribute `{container}` is of type `{type}`.",
    "An attribute with the name of the container is the identity of the container, a text; or leave it out.",
    part=str,
    container=str,
    type=str,
)
NOBODY_PROVIDES = define(
    "S203",
    "attribute that nobody provides",
    "The policy `{policy}` asks for `{attribute}` of `{concept}`, which no source provides: it is unknown.",
    "Let a pull source with `concept: {concept}` have a column for it; what is unknown meets no condition.",
    severity=Severity.WARNING,
    policy=str,
    concept=str,
    attribute=str,
)
POLICY_STOPPED = define(
    "S204",
    "policy that no longer fits",
    "The policy `{policy}` is stopped: it does not fit what is declared now.",
    "Its text stays: run `situ get policy {policy}`, then `situ alter policy {policy}` with another.",
    severity=Severity.WARNING,
    policy=str,
)
