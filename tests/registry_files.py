"""A small plant for tests of the registry: its files, the deployment they make, and a state that holds it."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent
from typing import Any

from situ.contexts.declarations import declare_contexts
from situ.contexts.load import define_contexts, root_declarations
from situ.lang.documents import Document, parse_yaml
from situ.lang.expr.definitions import load_functions
from situ.lang.problems import Problems
from situ.lang.types.resolve import load_types
from situ.model import Deployment
from situ.registry.objects import Key, Object, bodies_of, content_of, digest_of
from situ.registry.proposal import Proposal, State
from situ.routing import Subscription
from situ.routing.load import load_clients
from situ.settings import load_settings

FILES = {
    "situ.yaml": """
        name: plant
        registry: embedded
        """,
    "types/a.yaml": """
        types:
          Position: {x: double m, y: double m}
        events:
          Level: {tank: string, level: double %}
          Moved: {to: Position, price: optional double EUR}
        units: {EUR: currency}
        """,
    "functions/f.yaml": """
        functions:
          high: "(level: double %) -> boolean = level > 95 %"
          very_high: "(level: double %) -> boolean = high(level) AND level > 99 %"
        """,
    "clients/c.yaml": """
        clients:
          tank-1: {advertisements: {levels: {type: Level}}}
          control:
            subscriptions:
              high: {types: [Level], where: high(level), durable: true}
        """,
}


def deploy(files: Mapping[str, str] = FILES) -> Deployment:
    """The deployment of files that are in order."""
    problems = Problems()
    documents = {name: document(text, name) for name, text in files.items()}

    def of(kind: str) -> list[Any]:
        return [each for name, each in documents.items() if name.startswith(kind)]

    settings = load_settings(documents["situ.yaml"], problems)
    declared = declare_contexts(of("contexts/"), problems)
    types = load_types(of("types/"), problems, also=root_declarations(declared))
    functions = load_functions(of("functions/"), types, problems)
    contexts = define_contexts(declared, types, functions.defined, problems)
    visible = {each.id: each.types for each in contexts}
    clients = load_clients(of("clients/"), types, functions.callable, problems, contexts=visible)
    assert not problems.errors, "\n".join(map(str, problems))
    return Deployment(
        settings=settings,
        types=types,
        functions=functions.defined,
        contexts=contexts,
        clients=clients.clients,
        advertisements=clients.advertisements,
        subscriptions=clients.subscriptions,
    )


def document(text: str, file: str = "new.yaml") -> Document:
    return parse_yaml(dedent(text), file)


def changed(file: str, old: str, new: str) -> Deployment:
    """The plant with one text in one file replaced."""
    assert old in FILES[file]
    return deploy({**FILES, file: FILES[file].replace(old, new)})


def subscription(id: str, where: str = "", *, types: tuple[str, ...] = ("Level",)) -> Subscription:
    client, _, name = id.partition("/")
    return Subscription(client=client, name=name, types=types, where=where)


def state_of(deployment: Deployment, version: int = 1) -> State:
    """A registry to which the deployment was applied from the folder."""
    bodies = bodies_of(deployment)
    objects = {key: Object(key=key, version=1, body=body, origin="folder") for key, body in bodies.items()}
    digest = digest_of(content_of(bodies))
    return State(version=version, digest=digest, objects=objects, deployment=deployment.at_version(version))


def following(state: State, proposal: Proposal) -> State:
    """The state after a proposal was accepted, without a database; what it holds is what it says it holds."""
    objects = dict(state.objects)
    for key, move in proposal.moves.items():
        if move is None:
            del objects[key]
        else:
            version = objects[key].version + 1 if key in objects else 1
            objects[key] = Object(key=key, version=version, body=move.body, origin=move.origin)
    bodies = {key: each.body for key, each in objects.items()}
    assert digest_of(content_of(bodies)) == proposal.deployment.digest
    number = state.version + 1
    return State(
        version=number,
        digest=digest_of(content_of(bodies)),
        objects=objects,
        deployment=proposal.deployment.at_version(number),
    )


def key(kind: Any, name: str) -> Key:
    return Key(kind, name)
