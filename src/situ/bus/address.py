"""Where the bus of a project is and how to get in: an address that travels between processes.

Secrets stay in their files: an address names the file of a key or of credentials, and whoever connects reads it. Only
a user and password that stand in the address of a server travel with it, and are never shown.

Whoever can read ``.situ/credentials`` of a project is its operator, and may act as any of its clients. Who has the
credentials of one client only is that client, the *principal* of the address, and nobody else.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import msgspec

from situ.bus.folder_lock import CREDENTIALS, read_lock
from situ.lang.catalogue import CREDENTIALS_UNUSABLE, NO_BUS
from situ.lang.documents import parse_json, substitute
from situ.lang.problems import Problems, SituError
from situ.lang.records import replace
from situ.settings import Settings, load_settings
from situ.settings.kinds import Text

TOKEN = "bus"
"""The file in ``.situ/credentials`` that holds the key of the run, which may do everything on the embedded server."""

OF_CLIENT = (
    "Name a file that `situ client add NAME --out FILE` wrote: after `--credentials` where a command was given one, "
    "else under `bus` in situ.yaml."
)
"""What to do about credentials that cannot be used."""
_OF_RUN = "`situ run` writes it: start the run again, or connect as a client with `--credentials FILE`."
_USER = re.compile(r"//[^/@]*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The bus of one zone. All files are absolute paths; hashable, picklable, and JSON by :meth:`to_json`."""

    zone: str
    servers: tuple[str, ...] = field(repr=False)
    token_file: str = ""
    credentials: str = ""
    ca: str = ""
    cert: str = ""
    key: str = ""
    principal: str = ""
    """The client whose credentials these are; empty: they are not of a client, and let us do more."""

    def __str__(self) -> str:
        """The servers as people may see them."""
        return ", ".join(_USER.sub("//", server) for server in self.servers)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Address:
        return msgspec.json.decode(text, type=cls)

    def token(self) -> str | None:
        """The secret itself, read now; None if none is needed."""
        return read_secret(self.token_file, "the key", _OF_RUN) if self.token_file else None

    def without_secrets(self, *, files: bool) -> tuple[Address, dict[str, str]]:
        """This address for processes elsewhere, and the variables that they find the secrets in.

        What stands in the address of a server moves there in any case; with ``files``, also what is in files of this
        machine. :meth:`with_secrets` is the way back.
        """
        changes: dict[str, object] = {}
        variables: dict[str, str] = {}
        login = next((found[0][2:-1] for each in self.servers if (found := _USER.search(each))), "")
        if login:
            changes["servers"] = tuple(_USER.sub("//", each) for each in self.servers)
            changes["credentials"], variables[f"{SECRET}LOGIN"] = f"{_REFERENCE}LOGIN", unquote(login)
        for name in _FILES if files else ():
            if (file := getattr(self, name)) and name not in changes:
                what = name.removesuffix("_file").upper()
                changes[name] = f"{_REFERENCE}{what}@{file}"
                variables[f"{SECRET}{what}"] = read_secret(file, "a secret")
        return replace(self, **changes), variables

    def with_secrets(self) -> Address:
        """This address with files that are here. B112 if a secret is not."""
        named = {name: getattr(self, name) for name in _FILES}
        return replace(
            self,
            **{name: _secret_file(each) for name, each in named.items() if each.startswith(_REFERENCE)},
        )


_FILES = ("token_file", "credentials", "ca", "cert", "key")
_REFERENCE = "secret:"
SECRET = "SITU_SECRET_"
"""What the variables begin with. Spark shows no value of a name with ``secret`` in it."""
SECRETS = "SITU_SECRETS"
"""The variable that names a folder with a file for each secret, where a machine has its own."""


def _secret_file(reference: str) -> str:
    """A file with the secret: one that this machine has of its own, the variable, or the one it was read from."""
    name, _, origin = reference.removeprefix(_REFERENCE).partition("@")
    own = Path(os.environ.get(SECRETS, "/run/secrets/situ")) / name.lower()
    if own.is_file():
        return str(own)
    content = os.environ.get(f"{SECRET}{name}")
    if content is None:
        if origin and Path(origin).is_file():
            return origin
        remedy = f"Give this machine the variable `{SECRET}{name}`, or a file `{own}`."
        reason = "neither the variable nor the file is there"
        raise SituError(CREDENTIALS_UNUSABLE(file=reference, what="a secret", reason=reason, remedy=remedy))
    file = _private_folder() / name.lower()
    if not file.exists():
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        beside.touch(0o600)
        beside.write_text(content, encoding="utf-8")
        beside.replace(file)
    return str(file)


@cache
def _private_folder() -> Path:
    """Of this process and its forks; libraries read certificates from files only."""
    folder = Path(tempfile.mkdtemp(prefix="situ-secrets-"))
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # and not a fork
        shutil.rmtree(folder, ignore_errors=True)


def read_secret(file: str, what: str, remedy: str = OF_CLIENT) -> str:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is no text"
        raise SituError(CREDENTIALS_UNUSABLE(file=file, what=what, reason=reason, remedy=remedy)) from error
    return text.strip()


def embedded_address(folder: Path, zone: str, port: int) -> Address:
    """The server that a run on this folder started."""
    token = folder.resolve() / CREDENTIALS / TOKEN
    return Address(zone=zone, servers=(f"nats://127.0.0.1:{port}",), token_file=str(token))


def settings_of_run(folder: Path, environment: Mapping[str, str] = os.environ) -> Settings | None:
    """What the run that holds this folder was started with; None if there is none.

    Somebody may be editing situ.yaml meanwhile: the run is where it was all the same.
    """
    holder = read_lock(folder)
    if holder is None or not holder.settings:
        return None
    document = parse_json(json.dumps(dict(holder.settings)), "situ.yaml")
    problems = Problems(document.problems)
    if document.root is not None:
        document = replace(document, root=substitute(document.root, environment, problems))
    settings = load_settings(document, problems)
    problems.raise_errors()
    return settings


def resolve_address(folder: Path, settings: Settings) -> Address:
    """The bus that the project in this folder uses now."""
    bus = settings.bus
    if bus.kind == "nats":
        return Address(
            zone=settings.zone,
            servers=tuple(server.value for server in bus.servers),
            credentials=_file(folder, bus.credentials),
            ca=_file(folder, bus.ca),
            cert=_file(folder, bus.cert),
            key=_file(folder, bus.key),
        )
    holder = read_lock(folder)
    if holder is None:
        raise SituError(NO_BUS(reason=f"no run is active in `{folder}`", remedy="Start one with `situ run`."))
    if "bus" not in holder.ports:
        reason = f"the run in `{folder}` (process {holder.pid}) is still starting"
        raise SituError(NO_BUS(reason=reason, remedy="Try again in a moment."))
    return embedded_address(folder, settings.zone, holder.ports["bus"])


def _file(folder: Path, text: Text | None) -> str:
    return "" if text is None else str((folder / Path(text.value).expanduser()).resolve())
