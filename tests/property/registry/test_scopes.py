"""The registry under any sequence of changes of scopes, declarations and applied folders: what always holds after each.

Nothing is in force that its client has no right to, nothing is both in force and suspended, scopes that differ have
another epoch and the same ones the same, and whoever reads the database anew finds what was written.
"""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from situ.lang.problems import SituError
from situ.lang.tags import TagSet
from situ.registry import Registry, open_registry
from situ.routing import Advertisement, Subscription
from situ.scopes.diff import diff_scopes
from situ.scopes.graph import Grant, Right, ScopeGraph
from situ.scopes.operations import (
    DropScope,
    GrantRights,
    JoinScope,
    LeaveScope,
    Operation,
    PutScope,
    RevokeRights,
    SetFilter,
    SetMode,
)
from situ.scopes.rights import Principal
from situ.stages.check_tags import check_declaration_tags
from tests.integration.registry.test_scopes import SCOPES, folder
from tests.volume import examples

M = "membership"
CLIENTS = ["press", "desk", "guest", "site-admin", "safety"]
NAMES = ["plant", "line", "office", "attic", "box", "nowhere"]
SEEN: set[str] = set()
VARIANTS = [
    SCOPES,
    SCOPES.replace("severity >= 4", "severity >= 5"),
    SCOPES.replace("attic:  {}", "attic:  { in: [plant] }"),
    SCOPES.replace("desk:  {", "guest: { membership: [office] }\n  desk:  {"),
    SCOPES.replace("mode: closed", "mode: open"),
]


def membership(chance: random.Random, graph: ScopeGraph) -> tuple[str, str]:
    """A client, and mostly a scope that it is in."""
    there = [(client, scope) for client, where in graph.clients.items() for scope in where.get(M, ())]
    return chance.choice(there) if there and chance.random() < 0.7 else (chance.choice(CLIENTS), chance.choice(NAMES))


def operation(chance: random.Random, graph: ScopeGraph) -> Operation:
    member, scope = chance.choice(CLIENTS + NAMES), chance.choice(NAMES)
    leaving, left = membership(chance, graph)
    rights: tuple[Right, ...] = ("observe", "broadcast", "admin")
    grant = Grant(to=chance.choice(CLIENTS), dimension=M, may=(chance.choice(rights),))
    return chance.choice(
        [
            JoinScope(member=member, scope=scope, dimension=M),
            LeaveScope(member=member, scope=scope, dimension=M),
            LeaveScope(member=leaving, scope=left, dimension=M),
            JoinScope(member=chance.choice(CLIENTS), scope=scope, dimension=M),
            PutScope(dimension=M, scope=scope, containers=(chance.choice(NAMES),)),
            DropScope(dimension=M, scope=scope),
            SetFilter(
                dimension=M, scope=scope, side="output", text=chance.choice([None, "severity > 1", "colour = 1"])
            ),
            SetMode(dimension=M, closed=chance.random() < 0.5),
            GrantRights(grant=grant),
            RevokeRights(grant=grant),
        ]
    )


def declaration(chance: random.Random, graph: ScopeGraph) -> Advertisement | Subscription:
    client, scope = membership(chance, graph)
    tag = chance.choice([scope, scope, scope, "any"])
    tags = TagSet.of({M: tag} if chance.random() < 0.9 else {}, rest=chance.random() < 0.1)
    name = chance.choice(["own", "all", "alarms"])
    if chance.random() < 0.5:
        return Advertisement(client=client, name=name, type="Alarm", scopes=tags)
    return Subscription(client=client, name=name, types=("Alarm",), durable=chance.random() < 0.5, scopes=tags)


def step(chance: random.Random, registry: Registry, project: Path) -> None:
    kind, graph = chance.random(), registry.current().scopes
    by = Principal(name=chance.choice(CLIENTS), operator=chance.random() < 0.8)
    if kind < 0.55:
        registry.change_scopes(operation(chance, graph), by, epoch=chance.choice([None, registry.current().epoch]))
    elif kind < 0.85:
        registry.declare([declaration(chance, graph)], who="clients")
    elif kind < 0.92:
        registry.withdraw([declaration(chance, graph)], who="clients")
    else:
        registry.apply(folder(project, chance.choice(VARIANTS)), "ann")


def check(registry: Registry, project: Path) -> None:
    deployment = registry.current()
    for each in (*deployment.advertisements.values(), *deployment.subscriptions.values()):
        problems = check_declaration_tags(deployment.scopes, each, zone="main")
        assert not [str(problem) for problem in problems if problem.is_error], each
    suspended = {each.key for each in registry.suspended()}
    assert not suspended & {each.key for each in registry.objects()}
    SEEN.update(each.kind for each in suspended)
    with open_registry(project, deployment.settings) as other:
        assert other.current() == deployment
        assert (other.current().epoch, other.current().numbers) == (deployment.epoch, deployment.numbers)
        assert other.suspended() == registry.suspended()
        assert other._current().folder_scopes == registry._current().folder_scopes


@examples(2, 100)
@given(st.integers(0, 10**9))
def test_what_always_holds(seed: int) -> None:
    chance = random.Random(seed)
    with TemporaryDirectory() as place:
        project = Path(place)
        deployment = folder(project)
        with open_registry(project, deployment.settings) as registry:
            registry.apply(deployment, "ann")
            for _ in range(25):
                before = registry.current()
                try:
                    step(chance, registry, project)
                except SituError:
                    assert registry.current() == before, "what is refused changes nothing"
                after = registry.current()
                assert (after.epoch != before.epoch) == (after.scopes != before.scopes)
                check(registry, project)
            epochs = registry.epochs()
            assert [each.epoch for each in epochs] == [*range(registry.current().epoch, 0, -1)]
            assert all(each.difference.changes for each in epochs)
            assert not diff_scopes(registry.at(epochs[0].deployment).scopes, registry.current().scopes).changes


def test_something_was_suspended() -> None:
    wanted, seeds = {"advertisement", "subscription"}, iter(range(5, 40))
    while not wanted <= SEEN:
        test_what_always_holds.hypothesis.inner_test(next(seeds))  # type: ignore[attr-defined]
    assert wanted == SEEN
