"""``S150`` to ``S179`` and ``S210`` to ``S229``: what a policy says, against the ontology and the sources."""

from __future__ import annotations

from situ.catalogue.defining import define

NORMAL_FORM_TOO_LARGE = define(
    "S150",
    "conditions that multiply out to too much",
    "As an AND of ORs, this comes to {found} literals; at most {limit} are allowed.",
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
