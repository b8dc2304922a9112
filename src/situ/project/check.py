"""A project folder → a deployment, or everything that is wrong with it, in one run.

Each part loads what is its own; what one part found faulty is handed on, so that the next does not report it again
in other words.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from situ.catalogue import BUS_IN_THE_CLEAR, NO_SUCH_FILE, SOURCE_OUTSIDE
from situ.deployment import Deployment
from situ.deployment.acting import publications
from situ.deployment.around_quality import around_quality
from situ.deployment.interpreting import Interpretation, check_executed
from situ.deployment.releasing import check_releases
from situ.deployment.tagging import check_seen, check_source, check_tagged
from situ.documents import Document
from situ.documents import Mapping as Written
from situ.edge.strategies import known_strategies
from situ.errors import Problem, Problems
from situ.expr.definitions import load_functions
from situ.expr.faults import NO_FAULTS, find_faults
from situ.interpretation.check_contexts import check_contexts
from situ.interpretation.code import read_code
from situ.interpretation.coded import with_code
from situ.interpretation.declare import declare_contexts, is_root
from situ.interpretation.load import define_contexts, root_declarations
from situ.interpretation.xml_form import check_references
from situ.project.folder import Folder, Progress, read_folder
from situ.quality.load_quality import load_quality
from situ.settings import Settings, load_settings
from situ.situation.actions.load_actions import load_actions
from situ.situation.domain.check_sources import check_sources
from situ.situation.domain.load_ontology import load_ontology
from situ.situation.policies.between import judge_policies
from situ.situation.policies.load_policies import PolicyFile, check_names, load_policies
from situ.situation.policies.plan import plan_policy
from situ.situation.policies.triggering import delays
from situ.sources import Source, load_pushes, load_sources
from situ.sources.model import Kind
from situ.subscription import Advertisement, Subscription
from situ.subscription.load import client_names, load_clients
from situ.tags import NO_TAGS
from situ.types.load import load_types
from situ.visibility.filters import Filters
from situ.visibility.load_scopes import load_scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check found. There is a deployment exactly when there is no error; problems are in the order of places."""

    path: Path
    files: tuple[str, ...]
    deployment: Deployment | None
    problems: tuple[Problem, ...]
    digests: Mapping[str, str]
    """Of the files, as they were when they were read."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.is_error)


def check_folder(path: Path, environment: Mapping[str, str] = os.environ, progress: Progress | None = None) -> Checked:
    """Read and check a whole project. Never raises for what a user wrote."""
    folder = read_folder(path, environment, progress)
    problems = Problems(folder.problems)
    deployment = _deployment(folder, problems)
    problems.extend(_in_the_clear(folder.of("situ"), deployment.settings))
    problems.extend(_outside(path, deployment.settings, deployment.sources.values(), environment))
    problems.extend(_not_there(path, deployment.sources.values(), environment))
    return Checked(
        path=path,
        files=folder.files,
        deployment=None if problems.errors else deployment,
        problems=problems.sorted(),
        digests=folder.digests,
    )


def _deployment(folder: Folder, problems: Problems) -> Deployment:
    settings = _settings(folder.of("situ"), problems)
    limits = settings.expression_limits
    code = (read_code(data, file, problems) for file, data in folder.code.items())
    declared = declare_contexts(folder.of("contexts"), problems)
    declared = with_code(declared, [each for each in code if each is not None], problems)
    types = load_types(folder.of("types"), problems, also=root_declarations(declared))
    documents = (*folder.of("types"), *(each for each in folder.of("contexts") if is_root(each)))
    faults = find_faults(documents, types) if problems.errors else NO_FAULTS
    functions = load_functions(folder.of("functions"), types, problems, limits=limits, faults=faults)
    sources = load_sources(folder.of("sources"), types, problems, faults=faults)
    push = load_pushes(folder.of("sources"), types, problems, faults=faults)
    faults = faults.with_functions(functions.faulty)
    ontology = load_ontology(folder.of("ontology"), types, functions.callable, problems, limits=limits, faults=faults)
    check_sources(ontology, sources, push, types, problems)
    rows = {name: source.row for name, source in sources.items()}
    contexts = define_contexts(declared, types, functions.defined, problems, limits=limits, faults=faults, sources=rows)
    check_references(folder.of("contexts"), contexts, problems)
    check_contexts(contexts, problems)
    schema = Deployment(
        settings=settings,
        types=types,
        functions=functions.defined,
        sources=sources,
        push=push,
        ontology=ontology,
        actions=load_actions(folder.of("actions"), types, problems, faults=faults),
        contexts=contexts,
    )
    files = (PolicyFile(file=file, data=data) for file, data in folder.policies.items())
    policies = load_policies(files, schema.domain, sources, problems)
    scopes = load_scopes(
        folder.of("scopes"),
        Filters(types, limits),
        problems,
        clients={
            *client_names(folder.of("clients")),
            *policies,
            *(each.name for each in sources.values() if each.scopes != NO_TAGS),
        },
        functions=functions.defined,
        faults=faults,
    )
    clients = load_clients(
        folder.of("clients"),
        types,
        functions.callable,
        problems,
        limits=limits,
        faults=faults,
        contexts={context.id: context.types for context in contexts},
        faulty=contexts.faulty,
        mediator=Interpretation.of(schema).mediator,
        defaults=scopes.default_tags(),
    )
    check_executed(contexts, problems)
    check_names(policies, clients.clients, problems, clients.places)
    problems.extend(judge_policies(policies, schema.actions, ontology, push, types))
    published = publications(policies, schema.actions)
    waiting = delays(policies, published, ontology, push, types, settings.defaults.lateness)
    problems.extend(each.problem(policies[name]) for name, each in waiting.items())
    problems.extend(filter(None, (plan_policy(policy, ontology).warning for policy in policies.values())))
    tagged: tuple[Advertisement | Subscription, ...] = (
        *clients.advertisements.values(),
        *clients.subscriptions.values(),
    )
    for each in tagged:
        problems.extend(check_tagged(scopes, each, zone=settings.zone, knows_all=True, written=clients.tags))
    for source in sources.values():
        problems.extend(check_source(scopes, source, zone=settings.zone))
    around = around_quality(replace(schema, clients=clients.clients, subscriptions=clients.subscriptions))
    around = replace(around, strategies=known_strategies())
    deployment = replace(
        schema,
        policies=policies,
        scopes=scopes,
        quality=load_quality(folder.of("quality"), around, problems),
        clients=clients.clients,
        advertisements=clients.advertisements,
        subscriptions=clients.subscriptions,
    )
    if not problems.errors:
        problems.extend(check_releases(deployment))
    if not problems.errors:
        problems.extend(check_seen(deployment))
    return deployment


# ── what others could get at ──


_SQLITE = "sqlite:///"


def _in_the_clear(documents: tuple[Document, ...], settings: Settings) -> Iterator[Problem]:
    """Servers of the bus on other hosts, to which everything goes for everybody on the way to read."""
    if settings.bus.kind != "nats" or settings.bus.ca is not None:
        return
    root = documents[0].root if documents else None
    key = root.key("bus") if isinstance(root, Written) else None
    for each in settings.bus.servers:
        address = urlsplit(each.value)
        if address.scheme == "nats" and not _is_here(address.hostname or ""):
            yield BUS_IN_THE_CLEAR(key.location if key is not None else None, host=address.hostname or "")


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _outside(
    path: Path, settings: Settings, sources: Iterable[Source], environment: Mapping[str, str]
) -> Iterator[Problem]:
    """Sources whose files are neither in the project nor where the project allows it."""
    project = path.resolve()
    allowed = [project, *((project / Path(each.value).expanduser()).resolve() for each in settings.outside)]
    for source in sources:
        file = _file_of(project, source, environment)
        if file is not None and not any(each in file.parents for each in allowed):
            yield SOURCE_OUTSIDE(source.location, source=source.name, file=str(file), folder=str(file.parent))


# ── what is not there ──


def _not_there(path: Path, sources: Iterable[Source], environment: Mapping[str, str]) -> Iterator[Problem]:
    """A warning each: the file may be where the project runs, and need not be where it is written."""
    project = path.resolve()
    for source in sources:
        file = _file_of(project, source, environment)
        if file is not None and not file.exists():
            shown = file.relative_to(project) if file.is_relative_to(project) else file
            yield NO_SUCH_FILE(source.location, source=source.name, file=str(shown))


def _file_of(project: Path, source: Source, environment: Mapping[str, str]) -> Path | None:
    """The file that the rows of a source are in; None if they are in no file, or nobody here knows in which."""
    place = source.place
    if source.kind is Kind.SQL:
        if not source.url.startswith(_SQLITE):
            return None
        place = source.url.removeprefix(_SQLITE)
    place = re.sub(r"\$\{(\w+)\}", lambda found: environment.get(found[1], found[0]), place)
    # What the environment lacks is told of by who reads it.
    return None if "${" in place else (project / place).resolve()


def _settings(documents: tuple[Document, ...], problems: Problems) -> Settings:
    return load_settings(documents[0], problems) if documents else Settings()
