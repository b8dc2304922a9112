"""A project folder → a deployment, or everything that is wrong with it, in one run.

Each part loads what is its own; what one part found faulty is handed on, so that the next does not report it again
in other words.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from situ.archive.format import no_such_format
from situ.contexts.check import check_contexts
from situ.contexts.declarations import declare_contexts, is_root
from situ.contexts.load import define_contexts, root_declarations
from situ.contexts.python_files import read_code, with_code
from situ.contexts.xml_form import check_references
from situ.lang.catalogue import BUS_IN_THE_CLEAR, NO_SUCH_FILE, SOURCE_OUTSIDE
from situ.lang.documents import Document
from situ.lang.documents import MappingNode as Written
from situ.lang.expr.definitions import load_functions
from situ.lang.expr.faults import NO_FAULTS, find_faults
from situ.lang.problems import Problem, Problems
from situ.lang.records import replace
from situ.lang.tags import NO_TAGS
from situ.lang.types.resolve import load_types
from situ.model import Deployment
from situ.model.deployment import quality_environment
from situ.policies.actions.action_events import publications
from situ.policies.actions.load import load_actions
from situ.policies.check.interactions import chain_delays, check_interactions
from situ.policies.load import PolicyFile, check_names, load_policies
from situ.policies.ontology.load import load_ontology
from situ.policies.plan import plan_policy
from situ.policies.source_coverage import check_sources
from situ.project.folder import Folder, Progress, read_folder
from situ.quality.parse.quality_files import load_quality
from situ.router.strategy_plugins import known_strategies
from situ.routing import Advertisement, Subscription
from situ.routing.load import client_names, load_clients
from situ.scopes.filters import FilterMeanings
from situ.scopes.load_scopes import load_scopes
from situ.settings import Settings, load_settings
from situ.sources import Source, load_pushes, load_sources
from situ.sources.model import SourceKind
from situ.stages.check_tags import check_declaration_tags, check_source_tags, check_tag_visibility
from situ.stages.derived_visibility import check_releases
from situ.stages.interpret import Interpretation, check_executed


class CheckedProject(msgspec.Struct, frozen=True, kw_only=True):
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


class LoadedProject(msgspec.Struct, frozen=True, kw_only=True):
    """A project without errors."""

    path: Path
    deployment: Deployment
    digests: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Of its files, by which one sees later whether they were edited."""

    @property
    def settings(self) -> Settings:
        return self.deployment.settings


def check_folder(
    path: Path, environment: Mapping[str, str] = os.environ, progress: Progress | None = None
) -> CheckedProject:
    """Read and check a whole project. Never raises for what a user wrote."""
    folder = read_folder(path, environment, progress)
    problems = Problems(folder.problems)
    deployment = _deployment(folder, problems)
    problems.extend(_in_the_clear(folder.of("situ"), deployment.settings))
    problems.extend(_not_archived(folder.of("situ"), deployment.settings))
    problems.extend(_outside(path, deployment.settings, deployment.sources.values(), environment))
    problems.extend(_not_there(path, deployment.sources.values(), environment))
    return CheckedProject(
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
        FilterMeanings(types, limits),
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
        kafka=settings.kafka,
    )
    check_executed(contexts, problems)
    check_names(policies, clients.clients, problems, clients.places)
    problems.extend(check_interactions(policies, schema.actions, ontology, push, types))
    published = publications(policies, schema.actions)
    waiting = chain_delays(policies, published, ontology, push, types, settings.defaults.lateness)
    problems.extend(each.problem(policies[name]) for name, each in waiting.items())
    problems.extend(filter(None, (plan_policy(policy, ontology).warning for policy in policies.values())))
    tagged: tuple[Advertisement | Subscription, ...] = (
        *clients.advertisements.values(),
        *clients.subscriptions.values(),
    )
    for each in tagged:
        problems.extend(check_declaration_tags(scopes, each, zone=settings.zone, knows_all=True, written=clients.tags))
    for source in sources.values():
        problems.extend(check_source_tags(scopes, source, zone=settings.zone))
    around = quality_environment(replace(schema, clients=clients.clients, subscriptions=clients.subscriptions))
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
        problems.extend(check_tag_visibility(deployment))
    if not problems.errors and any(each.in_real_time for each in clients.subscriptions.values()):
        from situ.stages.real_time import check_real_time  # with all stages, which few projects need to be checked

        problems.extend(check_real_time(deployment, clients.deliveries))
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


def _not_archived(documents: tuple[Document, ...], settings: Settings) -> Iterator[Problem]:
    """An archive in a form that nothing here can write."""
    log = documents[0].root.get("log") if documents and isinstance(documents[0].root, Written) else None
    written = log.get("archive_format") if isinstance(log, Written) else None
    if written is not None and (problem := no_such_format(settings.log.archive_format, written.location)) is not None:
        yield problem


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
    if source.kind is SourceKind.SQL:
        if not source.url.startswith(_SQLITE):
            return None
        place = source.url.removeprefix(_SQLITE)
    place = re.sub(r"\$\{(\w+)\}", lambda found: environment.get(found[1], found[0]), place)
    # What the environment lacks is told of by who reads it.
    return None if "${" in place else (project / place).resolve()


def _settings(documents: tuple[Document, ...], problems: Problems) -> Settings:
    return load_settings(documents[0], problems) if documents else Settings()
