"""A new project folder: the smallest one that does something, or the example."""

from __future__ import annotations

import re
from pathlib import Path

from situ.lang.catalogue import BAD_NAME, FOLDER_NOT_EMPTY
from situ.lang.documents.builder import resolve
from situ.lang.problems import SituError
from situ.project.folder import SETTINGS_FILE
from situ.project.schemas import write_schemas
from situ.settings.model import PROJECT_NAME

_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_LINE = re.compile(r"^name:.*$", re.MULTILINE)

_GITIGNORE = "# what runs and editors need; made again when it is missing\n.situ/\n"
_SETTINGS = """\
# yaml-language-server: $schema=.situ/schemas/situ.json
version: 1
name: {name}
"""
_TYPES = """\
# yaml-language-server: $schema=../.situ/schemas/types.json
# What can be published. `situ check` says what is wrong here, and what to do about it.
version: 1
types:
  SensorId(string): {}
events:
  Reading: {sensor: SensorId, temperature: double °C, humidity: optional double %}
"""
_FUNCTIONS = """\
# yaml-language-server: $schema=../.situ/schemas/functions.json
version: 1
functions:
  muggy: "(temperature: double °C, humidity: double %) -> boolean = temperature > 26 °C AND humidity > 60 %"
"""
_CLIENTS = """\
# yaml-language-server: $schema=../.situ/schemas/clients.json
# Who publishes what, and who asks for what.
version: 1
clients:
  sensor-1:
    advertisements:
      readings: {type: Reading}
  board:
    subscriptions:
      warm: {types: [Reading], where: "temperature > 80 °F OR muggy(temperature, humidity)"}
"""


def create_project(target: Path, *, name: str | None = None, example: bool = False) -> tuple[Path, ...]:
    """Make a project in a new or empty folder; gives the files written.

    :class:`SituError` if the folder holds anything (a fresh git repository does not count) or the name cannot be one.
    """
    _refuse_full(target)
    if name is not None and not re.fullmatch(PROJECT_NAME, name):
        remedy = "Use letters, digits, `.`, `_` and `-`, at most 64, a letter or digit first."
        raise SituError(BAD_NAME(None, name=name, what="a project", reason="it has other characters", remedy=remedy))
    if example:
        files = _example_files(name)
    else:
        files = {
            SETTINGS_FILE: _SETTINGS.format(name=_written(name or _name_from(target))).encode(),
            "types/events.yaml": _TYPES.encode(),
            "functions/functions.yaml": _FUNCTIONS.encode(),
            "clients/clients.yaml": _CLIENTS.encode(),
        }
    files.setdefault(".gitignore", _GITIGNORE.encode())
    written = [_write(target / file, content) for file, content in sorted(files.items())]
    return (*written, *write_schemas(target))


def _refuse_full(target: Path) -> None:
    if not target.exists():
        return
    found = sorted(entry.name for entry in target.iterdir() if entry.name != ".git") if target.is_dir() else ["a file"]
    if found:
        raise SituError(FOLDER_NOT_EMPTY(None, place=str(target), found=found[0]))


def _example_files(name: str | None) -> dict[str, bytes]:
    source = example_folder()
    files = {
        path.relative_to(source).as_posix(): path.read_bytes()
        for path in sorted(source.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(source).parts)
    }
    if name is not None:
        settings = files[SETTINGS_FILE].decode()
        files[SETTINGS_FILE] = _NAME_LINE.sub(lambda _: f"name: {_written(name)}", settings).encode()
    return files


def _name_from(target: Path) -> str:
    """The folder's own name, as far as a project can have it."""
    return _NO_NAME.sub("-", target.resolve().name).strip("-._")[:64] or "project"


def _written(name: str) -> str:
    """The name as YAML: `7` and `true` would be no text."""
    return name if isinstance(resolve(name), str) else f'"{name}"'


def _write(file: Path, content: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("xb") as stream:
        stream.write(content)
    return file


def example_folder() -> Path:
    """The example project: inside an installed package, else in the source tree this module belongs to."""
    package = Path(__file__).resolve().parents[1]
    places = (package / "_example" / "smart-building", package.parents[1] / "examples" / "smart-building")
    for place in places:
        if (place / "situ.yaml").is_file():
            return place
    raise FileNotFoundError(f"the example project is neither at {places[0]} nor at {places[1]}")
