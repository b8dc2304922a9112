"""``D``: what is declared, how it is stored, and its snapshots."""

from __future__ import annotations

from situ.catalogue.defining import define
from situ.errors import Severity

# ── snapshots of deployments ──────────────────────────────────────────────────────────────────────

NO_SNAPSHOT = define(
    "D101",
    "not a snapshot",
    "This is no snapshot of a deployment: {reason}.",
    "Write one with `situ check --snapshot FILE`.",
    reason=str,
)
SNAPSHOT_CHANGED = define(
    "D102",
    "snapshot was changed",
    "The snapshot was changed after it was written: its content has the digest {found}, it says {said}.",
    "Write it anew with `situ check --snapshot FILE`.",
    found=str,
    said=str,
)

# ── registry ──────────────────────────────────────────────────────────────────────────────────────

OTHER_ORIGIN = define(
    "D103",
    "declared elsewhere",
    "The {kind} `{name}` belongs to {owner} and can be changed only there.",
    "{remedy}",
    kind=str,
    name=str,
    owner=str,
    remedy=str,
)
REGISTRY_BUSY = define(
    "D104",
    "registry busy",
    "The registry {place} was locked by another writer for more than {seconds} s.",
    "Try again. If it stays locked, look for a program that has the database open and does not end its transaction.",
    place=str,
    seconds=str,
)
REGISTRY_UNREACHABLE = define(
    "D105",
    "registry not reachable",
    "The registry {place} cannot be used: {reason}.",
    "{remedy}",
    place=str,
    reason=str,
    remedy=str,
)
REGISTRY_NEWER = define(
    "D106",
    "registry of a newer release",
    "The registry {place} has the format {found}; this release knows formats up to {known}.",
    "Use the release that wrote it, or a newer one. A registry is never brought back to an older format.",
    place=str,
    found=str,
    known=str,
)
NOTHING_APPLIED = define(
    "D107",
    "nothing applied yet",
    "The registry {place} holds nothing yet, so there is nothing to change.",
    "Run `situ apply` first: it brings in what the project folder declares.",
    place=str,
)
UNKNOWN_OBJECT = define(
    "D108",
    "nothing of this name",
    "The registry has no {kind} `{name}`.",
    "Did you mean {nearest}?",
    "`situ get {kind}` lists what there is.",
    kind=str,
    name=str,
    nearest=tuple,
)
OBJECT_EXISTS = define(
    "D109",
    "name taken",
    "There is a {kind} `{name}` already; it belongs to {owner}.",
    "{remedy}",
    kind=str,
    name=str,
    owner=str,
    remedy=str,
)
DECLARES_OTHER = define(
    "D110",
    "document of something else",
    "Expected a document that declares the {kind} `{name}` and nothing else, found {found}.",
    "Write it as in a file of the project; `situ get {kind} NAME` shows the form.",
    kind=str,
    name=str,
    found=str,
)
CLIENT_IN_USE = define(
    "D111",
    "client that still declares something",
    "The client `{name}` still has {below}.",
    "Remove these first, with `situ remove`.",
    name=str,
    below=str,
)
UNKNOWN_DEPLOYMENT = define(
    "D112",
    "unknown deployment",
    "{place} has no deployment of version {version}.",
    "{remedy}",
    place=str,
    version=int,
    remedy=str,
)
DEPLOYMENT_DAMAGED = define(
    "D113",
    "deployment that is not what was stored",
    "The deployment of version {version} in {place} is not the one that was stored: {reason}.",
    "{remedy}",
    version=int,
    place=str,
    reason=str,
    remedy=str,
)
BUS_AHEAD = define(
    "D114",
    "registry that is not the bus’s",
    "The bus has deployment {found} ({there}), the registry only {version} ({here}): it is not this bus’s registry.",
    "Put the registry's back-up in its place. To start anew instead, remove the data of the bus as well.",
    found=int,
    there=str,
    version=int,
    here=str,
)
NOT_ADOPTED = define(
    "D201",
    "not in force everywhere yet",
    "After {seconds} s deployment {version} was not yet in force in {engines}.",
    "It comes into force there as soon as the engine takes its next step; `situ status` shows what each one runs.",
    severity=Severity.WARNING,
    seconds=str,
    version=int,
    engines=tuple,
)
PRINCIPAL_EXISTS = define(
    "D115",
    "client that has credentials",
    "The client `{name}` has credentials already.",
    "`situ client rotate {name}` gives it others and ends these.",
    name=str,
)
UNKNOWN_PRINCIPAL = define(
    "D116",
    "client without credentials",
    "There are no credentials of a client `{name}`.",
    "Those with credentials are {known}; `situ client add {name}` makes some.",
    "Nobody has credentials yet; `situ client add {name}` makes some.",
    name=str,
    known=tuple,
)
NAME_NOT_POSSIBLE = define(
    "D117",
    "name that no client can have",
    "No client can be called `{name}`: {reason}.",
    "Take another name of letters, digits and `-`, at most 64.",
    name=str,
    reason=str,
)
