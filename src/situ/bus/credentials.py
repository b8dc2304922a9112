"""Keys and credentials: those that Situ makes for clients and runs, and what a connection shows to be let in.

`make_seed` to `make_folder` make, read and write the files of Situ; `admission` reads the files that the settings name
(keys, tokens, certificates) as options of the NATS client library.
"""

from __future__ import annotations

import os
import re
import secrets
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nkeys

from situ.bus.address import OF_CLIENT, Address, read_secret
from situ.bus.folder_lock import CREDENTIALS, private_folder
from situ.lang.catalogue import CREDENTIALS_UNUSABLE
from situ.lang.problems import SituError

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Credentials of clients and of the run. A key has two halves (Ed25519, written as NATS writes them). Who connects signs
# with the secret one, which is in its file and nowhere else; server and registry know the public one. The file of a
# client also says whose it is and of which zone, for its holder; nobody else believes it.

SUFFIX = ".creds"

_SEED = re.compile(r"BEGIN USER NKEY SEED-+\s+(\S+)\s+-+END")
_BARE = re.compile(r"SU[A-Z2-7]{56}")
_LINE = re.compile(r"^(client|zone):[ \t]*(\S+)[ \t]*$", re.MULTILINE)
_FILE = """\
# Credentials of the client {client}. Whoever has this file is {client}: keep it secret.
client: {client}
zone: {zone}
-----BEGIN USER NKEY SEED-----
{seed}
------END USER NKEY SEED------
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """What is in the file of a client."""

    client: str
    zone: str
    seed: str = field(repr=False)

    def text(self) -> str:
        return _FILE.format(client=self.client, zone=self.zone, seed=self.seed)


def make_seed() -> str:
    """A new key: its secret half."""
    return str(nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER), "ascii")


def public_key(seed: str) -> str:
    """The half that others may know."""
    return str(nkeys.from_seed(bytearray(seed, "ascii")).public_key, "ascii")


def seed_in(text: str) -> str | None:
    """The secret key in the text of a file, in the form of NATS tools or alone; None if there is none that works."""
    found = _SEED.search(text)
    seed = found[1] if found is not None else text.strip()
    if found is None and not _BARE.fullmatch(seed):
        return None
    try:
        return seed if public_key(seed).startswith("U") else None
    except (nkeys.NkeysError, ValueError):
        return None


def read_client(text: str) -> ClientCredentials | None:
    """The credentials of a client; None if this is another kind of file."""
    seed, said = seed_in(text), dict(_LINE.findall(text))
    if seed is None or "client" not in said or "zone" not in said:
        return None
    return ClientCredentials(client=said["client"], zone=said["zone"], seed=seed)


def file_of(folder: Path, client: str) -> Path:
    """Where the credentials of a client are kept in the folder of a project."""
    return folder.resolve() / CREDENTIALS / f"{client}{SUFFIX}"


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read; there is the old one or the new one, whatever happens."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as out:
        out.write(text)
    new.replace(path)


def make_folder(folder: Path) -> Path:
    """The folder of credentials of a project, which only its owner can look into."""
    credentials = folder.resolve() / CREDENTIALS
    private_folder(credentials)
    credentials.chmod(0o700)
    return credentials


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a connection shows. Files are read anew for every connection, so that they may change during a run.

_IN_SETTINGS = "Correct the path under `bus` in situ.yaml, or what stands in the file."
_JWT, _SEED_HEADER = "BEGIN NATS USER JWT", "BEGIN USER NKEY SEED"


def admission(address: Address) -> dict[str, Any]:
    """The options of a connection to this address that hold secrets."""
    options: dict[str, Any] = {}
    address = address.with_secrets()
    if (token := address.token()) is not None:
        seed = seed_in(token)
        options.update({"token": token} if seed is None else {"nkeys_seed_str": seed})
    if address.credentials:
        options.update(_credentials(address.credentials))
    if address.ca or address.cert or any(server.startswith("tls://") for server in address.servers):
        options["tls"] = _tls(address)
    return options


def _credentials(file: str) -> dict[str, Any]:
    """A file of credentials: as NATS tools or ``situ client add`` write it, or a token, or ``user:password``."""
    text = read_secret(file, "the credentials")
    seed = seed_in(text)
    if _JWT in text:
        # The client library would leave a half-open connection behind if it did not find a key.
        if seed is None:
            reason = "there is no key of a user in it"
            raise SituError(CREDENTIALS_UNUSABLE(file=file, what="the credentials", reason=reason, remedy=OF_CLIENT))
        return {"user_credentials": file}
    if seed is not None:
        return {"nkeys_seed_str": seed}
    if _SEED_HEADER in text:
        reason = "the key in it is damaged"
        raise SituError(CREDENTIALS_UNUSABLE(file=file, what="the credentials", reason=reason, remedy=OF_CLIENT))
    user, colon, password = text.partition(":")
    return {"user": user, "password": password} if colon else {"token": text}


def _tls(address: Address) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if address.ca:
        _load(address.ca, "the authority", lambda: context.load_verify_locations(cafile=address.ca))
    if address.cert:
        _load(address.cert, "our certificate", lambda: context.load_cert_chain(address.cert, address.key or None))
    return context


def _load(file: str, what: str, load: Callable[[], None]) -> None:
    try:
        load()
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or "it cannot be read"
        raise SituError(CREDENTIALS_UNUSABLE(file=file, what=what, reason=reason, remedy=_IN_SETTINGS)) from error
