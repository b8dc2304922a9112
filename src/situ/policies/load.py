"""The policies of a project: files of ``policies/``, or texts that were stored, each checked against the domain.

A policy in a file that is wrong is an error of the file. One that was stored and no longer fits, because the ontology
is another now, is stopped: its text stays, and so do the reasons, until somebody changes one or the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from situ.lang.catalogue import BAD_NAME, DECLARED_TWICE, NAME_OF_POLICY, NOBODY_PROVIDES
from situ.lang.problems import Location, Problem, Problems, SituError
from situ.lang.types.table import WORKER_PUBLISHER
from situ.policies.check.domain import Domain
from situ.policies.check.policy import check_policy
from situ.policies.language.print import print_policy
from situ.policies.language.syntax import PolicyText
from situ.policies.model import Policy
from situ.policies.source_coverage import NO_ACTIONS, attributes_needed, cover_attributes
from situ.sources.model import Source

NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
"""Names of policies become parts of subjects on the bus, as those of clients."""

_MOST_REMEMBERED = 20_000
_NOWHERE: Mapping[str, Location] = MappingProxyType({})


class StoppedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that cannot run as things are, and why."""

    text: str
    reasons: tuple[Problem, ...]


class LoadedPolicies(msgspec.Struct, frozen=True, kw_only=True):
    """Policies by name: those that run, and those that were stopped."""

    running: Mapping[str, Policy]
    stopped: Mapping[str, StoppedPolicy]


class PolicyFile(msgspec.Struct, frozen=True, kw_only=True):
    """Where the text of a policy stands, and what it is called there, if that is not to be seen from the file."""

    file: str
    data: str | bytes
    name: str = ""


def load_policies(
    files: Iterable[PolicyFile], domain: Domain, sources: Mapping[str, Source], problems: Problems
) -> Mapping[str, Policy]:
    """The policies of these files, named as they say or as their file is; what is wrong is reported and left out."""
    found: dict[str, Policy] = {}
    places: dict[str, Location] = {}
    for each in files:
        try:
            policy = _policy(each, domain, problems)
        except SituError as error:
            problems.extend(error.problems)
            continue
        if policy is None:
            continue
        place = policy.location or Location(file=each.file)
        first = places.setdefault(policy.name, place)
        if first is not place:
            problems.add(DECLARED_TWICE(place, what="The policy", name=policy.name, first=str(first)))
        elif _is_named(policy.name, place, problems):
            found[policy.name] = policy
            # The registry and engines of this process read it back by its printed text: it is checked already.
            _remembered(domain)[policy.name, policy.text] = policy
            problems.extend(_unprovided(policy, domain, sources))
    return MappingProxyType({name: found[name] for name in sorted(found)})


def read_policy(data: bytes, file: str, domain: Domain, known: Mapping[str, Policy]) -> Policy:
    """The policy that stands in a file; one of those known if it is the same. :class:`SituError` if it is none."""
    from situ.policies.language.parse import parse_policy  # with its grammar: most commands read no policy

    text = parse_policy(data, file)
    name = name_of(text, file)
    found = known.get(name)
    if found is not None and found.text == print_policy(text):
        return found
    problems = Problems()
    policy = check_policy(text, domain, problems, name=name)
    if policy is None:
        raise SituError(*problems.sorted())
    return policy


def check_names(
    policies: Mapping[str, Policy | StoppedPolicy],
    clients: Iterable[str],
    problems: Problems,
    places: Mapping[str, Location] = _NOWHERE,
) -> None:
    """Note clients that are called like a policy: a policy publishes under its own name, as clients do.

    ``places`` are those of clients; where there is none, it is the policy that is new.
    """
    for name in sorted(policies.keys() & set(clients)):
        policy = policies[name]
        own = policy.location if isinstance(policy, Policy) else None
        problems.add(NAME_OF_POLICY(places.get(name, own), client=name))


def policies_as_json(policies: Mapping[str, Policy], stopped: Mapping[str, StoppedPolicy]) -> dict[str, str]:
    """All policies by name, as they are printed."""
    texts = {name: each.text for name, each in policies.items()}
    texts |= {name: each.text for name, each in stopped.items()}
    return {name: texts[name] for name in sorted(texts)}


def policies_from_json(value: Any, domain: Domain) -> LoadedPolicies:
    """The policies that :func:`policies_as_json` gave; ValueError for what it cannot have given."""
    if not isinstance(value, dict) or not all(isinstance(each, str) for item in value.items() for each in item):
        raise ValueError("these are no policies")
    judged = {name: _stored(name, text, domain) for name, text in value.items()}
    return LoadedPolicies(
        running=MappingProxyType({name: each for name, each in judged.items() if isinstance(each, Policy)}),
        stopped=MappingProxyType({name: each for name, each in judged.items() if isinstance(each, StoppedPolicy)}),
    )


def _stored(name: str, text: str, domain: Domain) -> Policy | StoppedPolicy:
    known = _remembered(domain)
    found = known.get((name, text))
    if found is None:
        problems = Problems()
        try:
            policy = _policy(PolicyFile(file=f"policies/{name}.dpl", data=text, name=name), domain, problems)
        except SituError as error:
            raise ValueError(f"the policy {name} is none: {error}") from error
        found = known[name, text] = policy or StoppedPolicy(text=text, reasons=problems.errors)
    return found


_last: tuple[Domain, dict[tuple[str, str], Policy | StoppedPolicy]] | None = None


def _remembered(domain: Domain) -> dict[tuple[str, str], Policy | StoppedPolicy]:
    """What was said of texts in this domain before: most changes are of one policy among many."""
    global _last
    last = _last
    if last is None or (last[0] is not domain and last[0] != domain) or len(last[1]) > _MOST_REMEMBERED:
        last = (domain, {})
    if last[0] is not domain:
        last = (domain, last[1])
    _last = last
    return last[1]


def name_of(text: PolicyText, file: str) -> str:
    """What a policy is called: by itself, else by its file."""
    return text.name.text if text.name is not None else file.rpartition("/")[2].removesuffix(".dpl")


def _policy(each: PolicyFile, domain: Domain, problems: Problems) -> Policy | None:
    from situ.policies.language.parse import parse_policy  # with its grammar: most commands read no policy

    text = parse_policy(each.data, each.file)
    return check_policy(text, domain, problems, name=each.name or name_of(text, each.file))


def _is_named(name: str, place: Location, problems: Problems) -> bool:
    if NAME.fullmatch(name) and name != WORKER_PUBLISHER:
        return True
    remedy = "Use letters, digits and `-`, at most 64; a policy is called as it says, or as its file is."
    if name == WORKER_PUBLISHER:
        reason = "Situ publishes events of workers under this name"
    else:
        reason = "it has other characters" if len(name) <= 64 else "it is too long"
    problems.add(BAD_NAME(place, name=name or " ", what="a policy", reason=reason, remedy=remedy))
    return False


def _unprovided(policy: Policy, domain: Domain, sources: Mapping[str, Source]) -> Iterator[Problem]:
    missing = cover_attributes(
        attributes_needed(policy, domain.actions or NO_ACTIONS), domain.ontology, sources
    ).missing
    for end in sorted(missing, key=str):
        yield NOBODY_PROVIDES(policy.location, policy=policy.name, concept=end.concept, attribute=end.attribute)
