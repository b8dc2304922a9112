"""What a client shows to be let in: tokens, credentials and certificates, read from their files.

Read anew for every connection, so that the files may change while we run. Knows the options of the client library for
these, and nothing of connections.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from typing import Any

import nkeys

from situ.bus.address import Address, read_secret
from situ.catalogue import CREDENTIALS_UNUSABLE
from situ.errors import SituError

_JWT = "BEGIN NATS USER JWT"
_SEED = re.compile(r"BEGIN USER NKEY SEED-+\s+(\S+)\s+-+END")


def admission(address: Address) -> dict[str, Any]:
    """The options of a connection to this address that hold secrets."""
    options: dict[str, Any] = {}
    if (token := address.token()) is not None:
        options["token"] = token
    if address.credentials:
        options.update(_credentials(address.credentials))
    if address.ca or address.cert or any(server.startswith("tls://") for server in address.servers):
        options["tls"] = _tls(address)
    return options


def _credentials(file: str) -> dict[str, Any]:
    """A file of credentials: as NATS tools write it, or a token, or ``user:password``."""
    text = read_secret(file, "the credentials")
    if _JWT in text:
        if not _has_key(text):
            reason = "there is no key of a user in it"
            raise SituError(CREDENTIALS_UNUSABLE(file=file, what="the credentials", reason=reason))
        return {"user_credentials": file}
    user, colon, password = text.partition(":")
    return {"user": user, "password": password} if colon else {"token": text}


def _has_key(text: str) -> bool:
    """Whether the client library will find a key: it would leave a half-open connection behind if it did not."""
    found = _SEED.search(text)
    try:
        return found is not None and nkeys.from_seed(found[1].encode()) is not None
    except (nkeys.NkeysError, ValueError):
        return False


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
        raise SituError(CREDENTIALS_UNUSABLE(file=file, what=what, reason=reason)) from error
