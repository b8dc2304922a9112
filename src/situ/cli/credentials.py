"""What ``situ client`` does: the registry first, then the file, then the server, which is told at once if it runs.

In this order nobody is let in whom the registry does not know, and who is ended there is not let in again, whatever
fails behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from situ.app.admission import admitted_principals, ask_to_admit
from situ.bus.address import resolve_address
from situ.bus.credentials import (
    ClientCredentials,
    file_of,
    make_folder,
    make_seed,
    public_key,
    read_client,
    seed_in,
    write_secret,
)
from situ.bus.nats import open_bus
from situ.cli.registry import OpenRegistry, refused_as_error, registry_of, roll_out
from situ.lang.catalogue import NAME_NOT_POSSIBLE, NO_BUS, NO_LISTENER, NOT_OVERWRITTEN
from situ.lang.problems import SituError
from situ.protocol.permissions import users
from situ.registry import current_user
from situ.registry.objects import key_of

_TIMEOUT = 5.0
_OWN_SERVER = (
    "The bus is a server of your own: put what `situ client configuration` prints into its configuration, and have it "
    "read that again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialChange:
    """What was done."""

    name: str
    said: str
    file: str = ""
    key: str = ""
    in_force: bool = False
    """The server that runs lets in who is to be let in."""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        made = {"file": self.file, "key": self.key} if self.file else {}
        return {"name": self.name, **made, "in_force": self.in_force}


def add_client(project: Path | None, name: str, out: Path | None) -> CredentialChange:
    with registry_of(project) as registered, refused_as_error():
        _check_name(registered, name)
        return _made(registered, name, out, lambda key: registered.registry.principals.add(name, key, who=_who()))


def rotate_client(project: Path | None, name: str, out: Path | None) -> CredentialChange:
    with registry_of(project) as registered, refused_as_error():
        return _made(registered, name, out, lambda key: registered.registry.principals.rotate(name, key, who=_who()))


def remove_client(project: Path | None, name: str) -> CredentialChange:
    with registry_of(project) as registered, refused_as_error():
        registered.registry.principals.remove(name, who=_who())
        file_of(registered.path, name).unlink(missing_ok=True)
        in_force, notes = _tell(registered)
        said = f"{name} is not let in any more." if in_force else f"The credentials of {name} are ended."
        return CredentialChange(name=name, said=said, in_force=in_force, notes=(*notes, *_withdrawn(registered, name)))


def _withdrawn(registered: OpenRegistry, name: str) -> Iterator[str]:
    """What the client declared itself is withdrawn, for it cannot do so any more; gives what is to say about it.

    That it comes last is on purpose: whoever is still let in could declare it again.
    """
    registry = registered.registry
    if not registry.version():
        return
    deployment = registry.current()
    tables = (deployment.advertisements, deployment.subscriptions)
    own = [each for table in tables for each in table.values() if each.client == name]
    keys = {key_of(each): each for each in own}
    there = {each.key: each.origin for each in registry.objects() if each.key in keys}
    mine = [each for key, each in keys.items() if there.get(key) == "client"]
    for each in registry.suspended():
        if each.name.startswith(f"{name}/") and each.origin == "client":
            registry.remove(each.kind, each.name, who=_who(), reason="its client was removed")
    if mine:
        outcome = registry.withdraw(mine, who=_who(), reason="its client was removed")
        roll_out(registered, outcome.deployment)
        yield f"What it declared is withdrawn: {', '.join(str(key_of(each)) for each in mine)}."
    if left := [str(key) for key, origin in there.items() if origin != "client"]:
        yield f"The project still declares for it: {', '.join(left)}."
    if any(scopes for scopes in deployment.scopes.clients.get(name, {}).values()):
        yield f"It is still in scopes: `situ scopes leave {name} …` ends that."


def configuration_of(project: Path | None) -> str:
    """The users of a server of one's own, the run's among them as far as its credentials tell."""
    with registry_of(project) as registered:
        found = admitted_principals(registered.registry)
        zone, given = registered.settings.zone, registered.settings.bus.credentials
        run = "# The user of the run, who may do everything, goes here: { user: …, password: … }"
        if given is not None:
            file = registered.path / Path(given.value).expanduser()
            seed = seed_in(file.read_text(encoding="utf-8")) if file.is_file() else None
            run = f"{{ nkey: {public_key(seed)} }}  # the run" if seed else run
        return f"# Clients of {registered.settings.name}, zone {zone}\n{users(zone, found, run)}\n"


def _made(registered: OpenRegistry, name: str, out: Path | None, store: Callable[[str], object]) -> CredentialChange:
    own = file_of(registered.path, name)
    if out is not None and (reason := _keeps(out, own, name)):
        raise SituError(NOT_OVERWRITTEN(file=str(out), reason=reason, default=str(own)))
    seed = make_seed()
    credentials = ClientCredentials(client=name, zone=registered.settings.zone, seed=seed)
    key = public_key(seed)
    folder = make_folder(registered.path)
    file = out if out is not None else folder / own.name
    new = file.with_name(f"{file.name}.made")
    write_secret(new, credentials.text())  # before the registry: one that cannot be written changes nothing
    try:
        store(key)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    new.replace(file)
    in_force, notes = _tell(registered)
    said = f"The credentials of {name} are in {file}."
    return CredentialChange(name=name, said=said, file=str(file), key=key, in_force=in_force, notes=notes)


def _keeps(out: Path, own: Path, name: str) -> str:
    """Why nothing may be written where credentials of a client are to be; empty, if there is no reason."""
    file = out.resolve()
    if file == own:
        return ""
    state = own.parent.parent
    if state in (file, *file.parents):
        return f"what is in {state.name} is the run's own"  # the key of the run is there, or is going to be
    if not out.exists():
        return ""
    try:
        there = read_client(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        there = None
    if there is None:
        return "it is there, and holds something else than credentials of a client"
    return "" if there.client == name else f"it holds the credentials of `{there.client}`"


def _tell(registered: OpenRegistry) -> tuple[bool, tuple[str, ...]]:
    """Have the run let in whom the registry names; whether it does, and what else is to do."""
    if registered.settings.bus.kind == "nats":
        return False, (_OWN_SERVER,)
    try:
        asyncio.run(_ask(registered))
    except SituError as error:
        if error.code in (NO_BUS.code, NO_LISTENER.code):
            return False, ("No run is active: this is in force when one starts.",)
        raise
    return True, ()


async def _ask(registered: OpenRegistry) -> None:
    address = resolve_address(registered.path, registered.settings)
    async with await open_bus(address, name="situ client", timeout=_TIMEOUT, patience=_TIMEOUT) as bus:
        await ask_to_admit(bus)


def _check_name(registered: OpenRegistry, name: str) -> None:
    """Policies publish under their names, too."""
    registry = registered.registry
    if registry.version() and name in registry.current().policies:
        raise SituError(NAME_NOT_POSSIBLE(name=name, reason="a policy has this name"))


def _who() -> str:
    return current_user()
