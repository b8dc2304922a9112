"""Deployments on the bus, and the engines that work with them: which are alive, and what each has adopted."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from situ.bus.event_loop import end
from situ.bus.interface import Bus, KeyEntry
from situ.event.subjects import DEPLOYMENTS, REGISTRY, BusNames
from situ.lang.catalogue import BUS_AHEAD, DEPLOYMENT_DAMAGED, OTHER_REVISION, UNKNOWN_DEPLOYMENT
from situ.lang.problems import SituError

if TYPE_CHECKING:
    from situ.model import Deployment
    from situ.registry.registry import Registry
    from situ.scopes.graph import ScopeGraph


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Engines: which are alive, which deployment each works with, and what ails it; as keys on the bus.
#
# An engine writes ``engine.<name>`` again and again while it lives, ``adopted.<name>`` when it begins to work with
# another deployment, and ``troubles.<name>`` while it goes on without something it needs. That one lives is seen from
# its key changing, not from clocks, which machines do not share.

_ENGINE = "engine."
_ADOPTED = "adopted."
TROUBLES = "troubles."
REFRESH = 1.0
SILENCE = 5.0
"""Seconds without a sign of life after which an engine is not waited for."""

_LOOK_AGAIN = 0.05


async def report_adopted(bus: Bus, engine: str, version: int) -> None:
    """From now on this engine works with this version."""
    from situ.model import canonical

    await bus.put(BusNames(bus.zone).metrics, f"{_ADOPTED}{engine}", canonical({"version": version}).encode())


async def adopted_versions(bus: Bus) -> Mapping[str, int]:
    """What every engine works with, or did when it was last heard of."""
    entries = await bus.entries(BusNames(bus.zone).metrics, _ADOPTED)
    return {each.key.removeprefix(_ADOPTED): int(json.loads(each.value)["version"]) for each in entries if each.value}


async def report_troubles(bus: Bus, engine: str, texts: Sequence[str]) -> None:
    """What this engine goes on without, and why; nothing if all is well."""
    bucket, key = BusNames(bus.zone).metrics, f"{TROUBLES}{engine}"
    await (bus.put(bucket, key, json.dumps(list(texts)).encode()) if texts else bus.remove(bucket, key))


async def troubles_of(bus: Bus) -> Mapping[str, tuple[str, ...]]:
    """What ails engines, by their names."""
    entries = await bus.entries(BusNames(bus.zone).metrics, TROUBLES)
    return {each.key.removeprefix(TROUBLES): tuple(json.loads(each.value)) for each in entries if each.value}


async def refresh_engine(bus: Bus, engine: str, about: Mapping[str, Any] | None = None) -> None:
    """One sign of life."""
    from situ.model import canonical

    value = canonical({"pid": os.getpid(), **(about or {})}).encode()
    await bus.put(BusNames(bus.zone).metrics, f"{_ENGINE}{engine}", value)


@asynccontextmanager
async def engine_alive(bus: Bus, engine: str, *, every: float = REFRESH) -> AsyncIterator[None]:
    """Signs of life of this engine as long as the block runs; its end is told, too."""

    async def refresh() -> None:
        while True:
            with suppress(SituError):  # a bus that is away comes back, and others see the silence
                await refresh_engine(bus, engine)
            await asyncio.sleep(every)

    await refresh_engine(bus, engine)
    task = asyncio.create_task(refresh())
    try:
        yield
    finally:
        await end([task])
        with suppress(SituError):
            await bus.remove(BusNames(bus.zone).metrics, f"{_ENGINE}{engine}")


async def wait_adopted(bus: Bus, version: int, timeout: float = 10.0) -> tuple[str, ...]:
    """Wait until all engines that live work with this version or a newer one; names of those that do not in time."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout
    seen: dict[str, tuple[int, float]] = {}
    while True:
        adopted = await adopted_versions(bus)
        behind: list[str] = []
        for entry in await bus.entries(BusNames(bus.zone).metrics, _ENGINE):
            engine = entry.key.removeprefix(_ENGINE)
            if seen.get(engine, (-1, 0.0))[0] != entry.revision:
                seen[engine] = (entry.revision, clock())
            if adopted.get(engine, 0) < version and clock() - seen[engine][1] < SILENCE:
                behind.append(engine)
        if not behind or clock() >= deadline:
            return tuple(sorted(behind))
        await asyncio.sleep(_LOOK_AGAIN)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Deployments: copies for the engines, which watch one key and fetch what it names.
#
# The registry's database is the truth; the copies can be made again from it, and are when a run starts. ``deployments``
# holds every version that an engine may still need, ``registry/current`` says which is in force and never goes back.

CURRENT = "current"
_OLDEST = "oldest"
KEPT, _MOST = 50, 1000
_PLACE = "The bus"
_REMEDY = "Start `situ run` again: it puts the registry's deployments back on the bus."


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """What the bus says is in force."""

    version: int
    digest: str
    epoch: int = 0


def encode_deployment(deployment: Deployment) -> tuple[bytes, str]:
    """The canonical form of a deployment, and its digest."""
    from situ.model import canonical
    from situ.registry.objects import digest_of

    value = deployment.as_json()
    version, versions = value.pop("version"), value.pop("versions")
    visibility = value.pop("visibility", None)
    content = canonical(value)
    # The digest is that of all the rest, and these are the last of the sorted keys: the long text is made once.
    numbers = f',"version":{version},"versions":{canonical(versions)}'
    if visibility is not None:
        numbers += f',"visibility":{canonical(visibility)}'
    return f"{content[:-1]}{numbers}}}".encode(), digest_of(content)


def decode_deployment(content: bytes, version: int) -> Deployment:
    """The deployment of this version; :class:`SituError` with D113 if the content is none."""
    from situ.model import Deployment

    try:
        deployment = Deployment.from_json(json.loads(content))
    except ValueError as error:
        raise _damaged(version, str(error)) from error
    if deployment.version != version:
        raise _damaged(version, f"it says that it is version {deployment.version}")
    return deployment


async def current_deployment(bus: Bus) -> Current | None:
    """Which deployment is in force; None if none was ever published."""
    return _current(await bus.get(REGISTRY, CURRENT))


async def publish_deployment(bus: Bus, deployment: Deployment) -> None:
    """Put a deployment on the bus, and in force unless a newer one is. To repeat it changes nothing."""
    from situ.model import canonical

    content, digest = await asyncio.to_thread(encode_deployment, deployment)
    name = str(deployment.version)
    known = await current_deployment(bus)
    if deployment.epoch and (known is None or known.epoch != deployment.epoch):
        await _publish_scopes(bus, deployment)
    # Whoever reads the key must find the object, so the object comes first.
    if known is None or known.version < deployment.version or await bus.get_object(DEPLOYMENTS, name) != content:
        await bus.put_object(DEPLOYMENTS, name, content)  # a release before this one may have written less
    epoch = {"epoch": deployment.epoch} if deployment.epoch else {}
    value = canonical({"version": deployment.version, "digest": digest, **epoch}).encode()
    # Compare and set: of several writers, the one with the newest version wins, in whatever order they come.
    while True:
        entry = await bus.get(REGISTRY, CURRENT)
        known = _current(entry)
        if known is not None and known.version >= deployment.version:
            return
        try:
            await bus.put(REGISTRY, CURRENT, value, expected=entry.revision if entry is not None else 0)
            return
        except SituError as error:
            if error.code != OTHER_REVISION.code:
                raise


async def fetch_scopes(bus: Bus, epoch: int) -> ScopeGraph | None:
    """The scopes of an epoch; None if the bus has them no more. They stay as long as the log may: for good."""
    from situ.model.deployment import decode_scopes, scopes_name

    return decode_scopes(await bus.get_object(DEPLOYMENTS, scopes_name(epoch)))


async def _publish_scopes(bus: Bus, deployment: Deployment) -> None:
    """What was stamped in an epoch is decided by its scopes for as long as there is any of it."""
    from situ.model.deployment import encode_scopes, scopes_name

    name = scopes_name(deployment.epoch)
    if await bus.get_object(DEPLOYMENTS, name) is None:
        await bus.put_object(DEPLOYMENTS, name, encode_scopes(deployment.scopes))


async def fetch_deployment(bus: Bus, version: int | None = None) -> Deployment:
    """The deployment of this version, or the one in force; version 0, with nothing in it, if there is none yet."""
    from situ.model import Deployment

    known = None
    if version is None:
        known = await current_deployment(bus)
        if known is None:
            return Deployment()
        version = known.version
    deployment = await asyncio.to_thread(decode_deployment, await _stored(bus, version), version)
    if known is not None and deployment.digest != known.digest:
        raise _damaged(version, "its digest is another")
    return deployment


async def fetch_client_names(bus: Bus) -> frozenset[str]:
    """The clients that what is in force speaks of. It is not read as a deployment, for which all is loaded."""
    known = await current_deployment(bus)
    if known is None:
        return frozenset()
    content = await _stored(bus, known.version)
    try:
        found = json.loads(content)
        owned = (id.partition("/")[0] for part in ("advertisements", "subscriptions") for id in found[part])
        return frozenset({*found["clients"], *owned, *found.get("scopes", {}).get("clients", ())})
    except (ValueError, KeyError) as error:
        raise _damaged(known.version, str(error)) from error


async def _stored(bus: Bus, version: int) -> bytes:
    content = await bus.get_object(DEPLOYMENTS, str(version))
    if content is None:
        raise SituError(UNKNOWN_DEPLOYMENT(place=_PLACE, version=version, remedy=_REMEDY))
    return content


async def watch_deployments(bus: Bus) -> AsyncIterator[Current]:
    """What is in force now, if anything, and then every newer one; some may be skipped, the last never is."""
    last = 0
    async with aclosing(bus.watch(REGISTRY, CURRENT)) as entries:
        async for entry in entries:
            found = _current(entry)
            if found is not None and found.version > last:
                last = found.version
                yield found


async def restore_deployments(bus: Bus, registry: Registry) -> Deployment:
    """Put what the registry has in force on the bus: nobody may have come to that before the last run ended.

    :class:`SituError` with D114 if the bus has what this registry never had: its versions mean something else.
    """
    deployment = await asyncio.to_thread(registry.current)
    known = await current_deployment(bus)
    if known is not None and not await asyncio.to_thread(_had, registry, deployment, known):
        here, there = deployment.digest[:12] if deployment.version else "nothing", known.digest[:12]
        raise SituError(BUS_AHEAD(found=known.version, there=there, version=deployment.version, here=here))
    if deployment.version:
        await publish_deployment(bus, deployment)
    return deployment


async def keep_published(
    bus: Bus, registry: Registry, *, every: float = 1.0, failed: Callable[[SituError], None] = lambda _: None
) -> None:
    """For ever: publish what others put into the registry, even if they did not live to publish it themselves."""
    published = 0
    while True:
        try:
            version = await asyncio.to_thread(registry.version)
            if version > published:
                known = await current_deployment(bus)
                if known is None or known.version < version:
                    await publish_deployment(bus, await asyncio.to_thread(registry.current))
                await prune_deployments(bus)
                published = version
        except SituError as error:  # neither the database nor the bus need answer at once
            failed(error)
        await asyncio.sleep(every)


async def prune_deployments(bus: Bus, *, kept: int = KEPT, most: int = _MOST) -> None:
    """Take old deployments off the bus; the registry still has them.

    What stays: as many as ``kept`` before the oldest one that an engine works with, or worked with when it ended, for
    it may have batches to repeat. For an engine that never comes back no more than ``most`` are kept.
    """
    known = await current_deployment(bus)
    if known is None:
        return
    needed = min([known.version, *(await adopted_versions(bus)).values()])
    end = max(needed - kept, known.version - most)
    entry = await bus.get(REGISTRY, _OLDEST)
    first = int(entry.value) if entry is not None and entry.value else max(1, known.version - most)
    for version in range(first, end):
        await bus.remove_object(DEPLOYMENTS, str(version))
    if end > first:
        await bus.put(REGISTRY, _OLDEST, str(end).encode())


def _had(registry: Registry, deployment: Deployment, known: Current) -> bool:
    if known.version >= deployment.version:
        return (known.version, known.digest) == (deployment.version, deployment.digest)
    with suppress(SituError):
        return registry.at(known.version).digest == known.digest
    return False


def _current(entry: KeyEntry | None) -> Current | None:
    if entry is None or entry.value is None:
        return None
    value = json.loads(entry.value)
    return Current(version=value["version"], digest=value["digest"], epoch=value.get("epoch", 0))


def _damaged(version: int, reason: str) -> SituError:
    return SituError(DEPLOYMENT_DAMAGED(version=version, place="the bus", reason=reason, remedy=_REMEDY))
