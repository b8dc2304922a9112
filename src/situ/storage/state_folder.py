"""Files of state in a folder at a URI: read whole, written whole, atomic and with a checksum.

A folder on a local disk is used by plain file calls. ``s3a://`` and ``s3://`` go to Arrow's S3 file system with the
options that Hadoop's has, everything else to what Arrow knows by its URI (``hdfs://``, ``gs://``, ``abfs://``). A store
that is away is tried again for a while. What the files hold is the callers' business.

A file is complete or not there: on a disk it is written beside and renamed, on an object store it is one PUT.
`StateFolder.save` puts a line with version, checksum and length before the content, and `load` checks it; `read` is for
files that Spark writes.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec

from situ.lang.catalogue import CHECKPOINT_DAMAGED, STATE_STORE_AWAY
from situ.lang.problems import Location, SituError
from situ.lang.records import replace

_log = logging.getLogger("situ.storage")

FORMAT = 1
"""Of files and of the layout of a checkpoint."""
_MAGIC = b"situ-state "
_LONGEST_HEADER = 64

_PATIENCE = 90.0
"""Seconds for which a store that does not answer is tried again."""

T = TypeVar("T")


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# File systems, as far as states need them. Names are whole paths.


class StateFiles(Protocol):
    """The calls that a folder of states makes."""

    def read(self, path: str) -> bytes | None:
        """None if there is no such file."""

    def write(self, path: str, content: bytes, *, sync: bool = False) -> None:
        """``sync``: it survives a loss of power, too."""

    def open(self, path: str) -> Any:
        """A file as Arrow reads it, part by part; FileNotFoundError if it is not there."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder of this name."""

    def names(self, path: str) -> list[str]:
        """Of the files and folders directly in a folder; none if it is not there."""

    def walk(self, path: str) -> list[str]:
        """The files in a folder and in those below, by their names from there; none if it is not there."""

    def remove(self, path: str) -> None:
        """A file or a whole folder, if it is there."""

    def copy(self, old: str, new: str) -> bool:
        """False if there is no such file."""


class LocalFiles:
    """A disk of this machine, or one that all machines have mounted at the same place."""

    def read(self, path: str) -> bytes | None:
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - a Path for each of these small files would cost more
                return file.read()
        except FileNotFoundError:
            return None

    def write(self, path: str, content: bytes, *, sync: bool = False) -> None:
        folder, name = os.path.split(path)
        # One that a process left when it was killed begins with a dot, and is none of the names.
        beside = f"{folder}/.{name}.{os.getpid()}"
        try:
            file = open(beside, "wb")  # noqa: PTH123, SIM115 - see above; closed below
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
            file = open(beside, "wb")  # noqa: PTH123, SIM115
        with file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(beside, path)  # noqa: PTH105

    def open(self, path: str) -> Any:
        import pyarrow as pa

        return pa.OSFile(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)  # noqa: PTH110

    def names(self, path: str) -> list[str]:
        try:
            return [each for each in os.listdir(path) if not each.startswith(".")]  # noqa: PTH208
        except FileNotFoundError:
            return []

    def walk(self, path: str) -> list[str]:
        every = (os.path.join(at, name) for at, _, names in os.walk(path) for name in names)  # noqa: PTH118
        return sorted(os.path.relpath(each, path) for each in every)

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)  # noqa: PTH108
        except FileNotFoundError:
            pass
        except OSError:
            shutil.rmtree(path, ignore_errors=True)

    def copy(self, old: str, new: str) -> bool:
        folder, name = os.path.split(new)
        beside = f"{folder}/.{name}.{os.getpid()}"
        with suppress(FileNotFoundError):
            os.unlink(beside)  # noqa: PTH108
        try:
            os.link(old, beside)  # nothing is ever changed in place, so two names of one file do
        except FileNotFoundError:
            return False
        os.replace(beside, new)  # noqa: PTH105
        with suppress(FileNotFoundError):
            os.unlink(beside)  # noqa: PTH108 - two names of one file are not replaced by each other
        return True


class ArrowFiles:
    """A file system of Arrow's. ``renames``: a file that is being written can be seen, so it is written beside."""

    def __init__(
        self, files: Any, *, renames: bool, patience: float = _PATIENCE, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._files = files
        self._renames = renames
        self._patience = patience
        self._sleep = sleep

    def read(self, path: str) -> bytes | None:
        def read() -> bytes | None:
            try:
                with self._files.open_input_stream(path) as stream:
                    content: bytes = stream.read()
                    return content
            except FileNotFoundError:
                return None

        return self._try(path, read)

    def open(self, path: str) -> Any:
        return self._try(path, lambda: self._files.open_input_file(path))

    def write(self, path: str, content: bytes, *, sync: bool = False) -> None:  # noqa: ARG002 - a store keeps what it took
        def write() -> None:
            folder, _, name = path.rpartition("/")
            target = f"{folder}/.{name}.{os.getpid()}" if self._renames else path
            if self._renames:
                self._files.create_dir(folder, recursive=True)
            with self._files.open_output_stream(target) as stream:
                stream.write(content)
            if self._renames:
                self._replace(target, path)

        self._try(path, write)

    def _replace(self, beside: str, path: str) -> None:
        try:
            self._files.move(beside, path)
        except OSError:
            # HDFS does not rename onto a file that is there: the same state, written by a batch that is repeated.
            self._files.delete_file(path)
            self._files.move(beside, path)

    def exists(self, path: str) -> bool:
        from pyarrow.fs import FileType

        return self._try(path, lambda: bool(self._files.get_file_info(path).type != FileType.NotFound))

    def names(self, path: str) -> list[str]:
        from pyarrow.fs import FileSelector

        selector = FileSelector(path, allow_not_found=True)
        found = self._try(path, lambda: self._files.get_file_info(selector))
        return [each.base_name for each in found if not each.base_name.startswith(".")]

    def walk(self, path: str) -> list[str]:
        from pyarrow.fs import FileSelector, FileType

        selector = FileSelector(path, allow_not_found=True, recursive=True)
        found = self._try(path, lambda: self._files.get_file_info(selector))
        files = [each.path for each in found if each.type == FileType.File]
        return sorted(each.removeprefix(f"{path}/") for each in files)

    def remove(self, path: str) -> None:
        from pyarrow.fs import FileType

        def remove() -> None:
            kind = self._files.get_file_info(path).type
            if kind == FileType.Directory:
                self._files.delete_dir(path)
            elif kind != FileType.NotFound:
                self._files.delete_file(path)

        self._try(path, remove)

    def copy(self, old: str, new: str) -> bool:
        content = self.read(old)
        if content is not None:
            self.write(new, content)
        return content is not None

    def _try(self, path: str, work: Callable[[], T]) -> T:
        """A store that is away is tried again, each time after a longer pause. N104 when that has taken too long."""
        deadline, pause = time.monotonic() + self._patience, 0.2
        while True:
            try:
                return work()
            except FileNotFoundError as error:
                raise _away(path, error) from None  # the bucket is not there
            except OSError as error:
                if any(each in str(error).upper() for each in _FINAL) or time.monotonic() + pause > deadline:
                    raise _away(path, error) from None
                _log.warning("the state store does not answer and is tried again: %s", _said(error))
            self._sleep(pause)
            pause = min(2 * pause, 5.0)


_FINAL = ("ACCESS_DENIED", "NO_SUCH_BUCKET", "INVALID_ACCESS_KEY", "SIGNATURE_DOES_NOT_MATCH", "HTTP STATUS 403")
"""Answers that do not change by being asked again."""


def _away(path: str, error: OSError) -> SituError:
    return SituError(STATE_STORE_AWAY(Location(file=path), reason=_said(error)))


def _said(error: OSError) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:300]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Options of S3. Spark has them in its configuration, as ``spark.hadoop.fs.s3a.*``. Python processes of executors do not
# see that, so the driver passes them on in the environment (`environment_of`), unless the workers have their own.

_S3A = "fs.s3a."
_HADOOP = "spark.hadoop."
OPTIONS = "SITU_STATE_SECRET"
"""The variable that holds the options; its name is one that Spark never shows the value of."""
_given: dict[str, str] = {}


def use_options(conf: Mapping[str, str]) -> None:
    """Have this process open stores with these settings of Spark."""
    _given.clear()
    _given.update(_options_in(conf))
    with _lock:
        _opened.clear()


def environment_of(conf: Mapping[str, str]) -> dict[str, str]:
    """What Python processes of executors need to open the same stores."""
    options = _options_in(conf)
    return {OPTIONS: json.dumps(options, sort_keys=True)} if options else {}


def _options_in(conf: Mapping[str, str]) -> dict[str, str]:
    names = {name: name.removeprefix(_HADOOP) for name in conf if name.startswith(_HADOOP + _S3A)}
    return {short: conf[name] for name, short in names.items()}


def _options() -> dict[str, str]:
    if _given or OPTIONS not in os.environ:
        return _given
    return {str(name): str(value) for name, value in json.loads(os.environ[OPTIONS]).items()}


def s3_arguments(options: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of Arrow's S3 file system that mean what these options of Hadoop's do.

    Where no key is given, both look for one in the environment, in ``~/.aws`` and by asking the machine.
    """
    # Small files in one request, and opened when they are written.
    found: dict[str, Any] = {"connect_timeout": 5.0, "request_timeout": 20.0, "allow_delayed_open": True}
    for name, argument in (
        ("access.key", "access_key"),
        ("secret.key", "secret_key"),
        ("session.token", "session_token"),
        ("endpoint.region", "region"),
    ):
        if value := options.get(f"{_S3A}{name}"):
            found[argument] = value
    endpoint = options.get(f"{_S3A}endpoint", "")
    scheme, split, server = endpoint.partition("://")
    if not split:
        scheme, server = "", endpoint
    if server:
        found["endpoint_override"] = server.rstrip("/")
        found.setdefault("region", "us-east-1")
        found["force_virtual_addressing"] = options.get(f"{_S3A}path.style.access", "false") != "true"
    encrypted = options.get(f"{_S3A}connection.ssl.enabled", "true") == "true"
    found["scheme"] = scheme or ("https" if encrypted else "http")
    return found


_LOCAL = LocalFiles()
_opened: dict[tuple[int, str, float], StateFiles] = {}
_lock = threading.Lock()


def _files_at(location: str, patience: float) -> StateFiles:
    """The file system of a location. A process that was forked opens its own: connections do not survive a fork."""
    if "://" not in location:
        return _LOCAL
    parts = urlsplit(location)
    place = (os.getpid(), f"{parts.scheme}://{parts.netloc}", patience)
    with _lock:
        if place not in _opened:
            _opened[place] = _open(parts.scheme, place[1], patience)
        return _opened[place]


def _open(scheme: str, root: str, patience: float) -> StateFiles:
    import pyarrow as pa
    from pyarrow import fs

    try:
        if scheme in ("s3", "s3a"):
            # Files have checksums of ours; those of the library's newest kind are not known to every store.
            os.environ.setdefault("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
            return ArrowFiles(fs.S3FileSystem(**s3_arguments(_options())), renames=False, patience=patience)
        files, _ = fs.FileSystem.from_uri(f"{root}/")
        return ArrowFiles(files, renames=scheme == "hdfs", patience=patience)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise SituError(STATE_STORE_AWAY(Location(file=root), reason=str(error).splitlines()[0])) from None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Folders.


class StateFolder(msgspec.Struct, frozen=True):
    """A folder by its location: an absolute path of this machine, or a URI. Hashable, picklable, cheap to make."""

    location: str
    patience: float = _PATIENCE
    """Seconds for which a store that does not answer is tried again, before N104."""

    def __truediv__(self, name: str) -> StateFolder:
        return replace(self, location=f"{self.location}/{name}")

    def __str__(self) -> str:
        return self.location

    @property
    def name(self) -> str:
        return self.location.rpartition("/")[2]

    @property
    def parent(self) -> StateFolder:
        return replace(self, location=self.location.rpartition("/")[0])

    @property
    def is_local(self) -> bool:
        return "://" not in self.location

    def names(self) -> list[str]:
        """Of the files and folders in it, without those that are being written."""
        return self._files.names(self._path())

    def walk(self) -> list[str]:
        """The files in it and in folders below, by their names from here."""
        return self._files.walk(self._path())

    def exists(self, name: str = "") -> bool:
        return self._files.exists(self._path(name))

    def remove(self, name: str = "") -> None:
        """A file or folder in it, or all of it."""
        self._files.remove(self._path(name))

    def read(self, name: str) -> bytes | None:
        """A file as it is; None if it is not there."""
        return self._files.read(self._path(name))

    def write(self, name: str, content: bytes, *, sync: bool = False) -> None:
        """A file as it is, whole or not at all."""
        self._files.write(self._path(name), content, sync=sync)

    def open(self, name: str) -> Any:
        """A file as Arrow reads it, part by part; FileNotFoundError if it is not there."""
        return self._files.open(self._path(name))

    def load(self, name: str) -> bytes | None:
        """What was saved; None if nothing was. N101 if it is not what was saved."""
        content = self._files.read(self._path(name))
        return None if content is None else _checked(content, f"{self.location}/{name}")

    def save(self, name: str, content: bytes) -> None:
        header = b"%s%d %08x %d\n" % (_MAGIC, FORMAT, zlib.crc32(content), len(content))
        self._files.write(self._path(name), header + content)

    def copy(self, old: str, new: str) -> bool:
        """Save under another name what is saved already; False if it is not there."""
        return self._files.copy(self._path(old), self._path(new))

    def damaged(self, reason: object, name: str = "") -> SituError:
        """N101 about a file of this folder."""
        place = f"{self.location}/{name}" if name else self.location
        return SituError(CHECKPOINT_DAMAGED(Location(file=place), reason=str(reason)))

    @property
    def _files(self) -> StateFiles:
        return _files_at(self.location, self.patience)

    def _path(self, name: str = "") -> str:
        # Arrow names a file of a bucket `bucket/path`, and one of HDFS by its path on the server it is connected to.
        path = self.location
        if "://" in path:
            scheme, _, path = path.partition("://")
            if scheme == "hdfs":
                path = "/" + path.partition("/")[2]
        return f"{path}/{name}" if name else path


def _checked(content: bytes, file: str) -> bytes:
    if not content.startswith(_MAGIC):
        return content  # written by a release that had no checksums
    end = content.find(b"\n", 0, _LONGEST_HEADER)
    try:
        version, checksum, length = content[len(_MAGIC) : end].split()
        found = int(version), int(checksum, 16), int(length)
    except ValueError:
        reason = "its first line is damaged"
    else:
        body = content[end + 1 :]
        if found[0] != FORMAT:
            reason = f"it is of format {found[0]}, and this release reads {FORMAT}"
        elif len(body) != found[2]:
            reason = f"it has {len(body)} bytes, and {found[2]} were written"
        elif zlib.crc32(body) != found[1]:
            reason = "its checksum is wrong"
        else:
            return body
    raise SituError(CHECKPOINT_DAMAGED(Location(file=file), reason=reason))


def open_folder(place: str | os.PathLike[str] | StateFolder, base: Path = Path()) -> StateFolder:
    """The folder at a URI, or at a path below ``base``."""
    if isinstance(place, StateFolder):
        return place
    text = os.fspath(place)
    if text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    if "://" in text:
        return StateFolder(text.rstrip("/"))
    return StateFolder(str((base / Path(text).expanduser()).absolute()))
