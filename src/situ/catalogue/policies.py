"""``S``: how policies are written (S105 to S119, where sources have no number), and their actions (S18x, S23x)."""

from __future__ import annotations

from situ.catalogue.defining import define

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
