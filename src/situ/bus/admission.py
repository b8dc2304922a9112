"""What a client shows to be let in: keys, tokens, credentials and certificates, read from their files.

Read anew for every connection, so that the files may change while we run. Knows the options of the client library for
these, and nothing of connections.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

from situ.bus.address import OF_CLIENT, Address, read_secret
from situ.bus.credentials import seed_in
from situ.catalogue import CREDENTIALS_UNUSABLE
from situ.errors import SituError

_IN_SETTINGS = "Correct the path under `bus` in situ.yaml, or what stands in the file."
_JWT, _SEED = "BEGIN NATS USER JWT", "BEGIN USER NKEY SEED"


def admission(address: Address) -> dict[str, Any]:
    """The options of a connection to this address that hold secrets."""
    options: dict[str, Any] = {}
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
    if _SEED in text:
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
