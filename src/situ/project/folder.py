"""The project folder: which files are read and as what, and reading them into documents.

`kind_of`, `is_code`, `is_policy` and `remark` decide by names alone. `find_project`, `read_folder` and `read_settings`
look at the disk. Nothing here knows what the files mean.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from situ.lang.catalogue import FILE_UNREADABLE, LEAVES_FOLDER, NO_PROJECT, OTHER_FILE, TOO_MANY_FILES, UNKNOWN_FILE
from situ.lang.documents import Document, DocumentLimits, parse_yaml, substitute
from situ.lang.problems import Location, Problem, Problems, SituError, nearest
from situ.lang.records import replace

if TYPE_CHECKING:
    from situ.settings import Settings


SETTINGS_FILE = "situ.yaml"
ONTOLOGY_FILE = "ontology.yaml"
ACTIONS_FILE = "actions.yaml"
SCOPES_FILE = "scopes.yaml"
FOLDERS = ("types", "functions", "sources", "contexts", "clients", "quality")
"""Folders whose ``*.yaml`` files are read, in the order they are checked; also contexts in XML, functions in Python."""

OWN_FOLDER = ".situ"
"""What runs and editors need and nobody writes by hand; never part of what is declared."""

FILES: Mapping[str, str] = MappingProxyType(
    {SETTINGS_FILE: "situ", ONTOLOGY_FILE: "ontology", ACTIONS_FILE: "actions", SCOPES_FILE: "scopes"}
)
"""Files of the project folder itself, with their kinds."""

KINDS: tuple[str, ...] = (*FILES.values(), *FOLDERS)
CODE, POLICY = "code", "policy"
"""The kinds of ``functions/*.py`` and ``policies/*.dpl``."""

POLICIES = "policies"
_TEST = ".test.yaml"
"""What tests of policies end with; they stand beside the policies, and are read when they are run."""

_ALL_FOLDERS = (*FOLDERS, POLICIES)
_ALL_STEMS = tuple(file.removesuffix(".yaml") for file in FILES)
_YAML = ".yaml"
_YAML_LIKE = (".yaml", ".yml")


def kind_of(file: str) -> str | None:
    """Which kind of file this is: ``situ``, ``types``, ``functions`` and so on; None for all others."""
    path = PurePosixPath(file)
    if file in FILES:
        return FILES[file]
    if is_policy(file):
        return POLICY
    if len(path.parts) == 2 and path.parts[0] in FOLDERS and (path.suffix == _YAML or is_xml(file)):
        return path.parts[0]
    return CODE if is_code(file) else None


def is_code(file: str) -> bool:
    """Whether this is a file of Python functions."""
    path = PurePosixPath(file)
    return len(path.parts) == 2 and path.parts[0] == "functions" and path.suffix == ".py"


def is_xml(file: str) -> bool:
    """Whether this is a context in XML."""
    path = PurePosixPath(file)
    return len(path.parts) == 2 and path.parts[0] == "contexts" and path.suffix == ".xml"


def is_policy(file: str) -> bool:
    """Whether this is a policy."""
    path = PurePosixPath(file)
    return len(path.parts) == 2 and path.parts[0] == POLICIES and path.suffix == ".dpl"


def remark(file: str) -> Problem | None:
    """What to say about a file that is not read; None if it is plainly something else, such as a README."""
    path = PurePosixPath(file)
    place = Location(file=file)
    if path.parts[0] == "contexts" and path.suffix == ".xml":
        return UNKNOWN_FILE(
            place,
            reason="only `contexts/*.xml` is, no folder below",
            nearest=(),
            remedy="Move it into `contexts/` itself.",
        )
    if path.parts[0] == "functions" and path.suffix == ".py":
        reason = "only `functions/*.py` is, no folder below"
        return UNKNOWN_FILE(place, reason=reason, nearest=(), remedy="Move it into `functions/` itself.")
    if path.suffix == ".dpl":
        return UNKNOWN_FILE(
            place,
            reason="only `policies/*.dpl` is, no other folder",
            nearest=(),
            remedy="Move it into `policies/` itself.",
        )
    if path.suffix not in _YAML_LIKE or (path.parts[0] == POLICIES and path.name.endswith(_TEST)):
        return None
    return _remark_yaml(path, place)


def _remark_yaml(path: PurePosixPath, place: Location) -> Problem:
    folder = path.parts[0] if len(path.parts) > 1 else ""
    similar: tuple[str, ...] = ()
    reason, remedy = "no file of that name is", ""
    if folder in FOLDERS and len(path.parts) > 2:
        reason, remedy = f"only `{folder}/*.yaml` is, no folder below", f"Move it into `{folder}/` itself."
    elif folder == POLICIES:
        reason, remedy = "policies are", "Policies end with `.dpl`, their tests with `.test.yaml`."
    elif folder in FOLDERS:
        reason, similar = "files end with `.yaml`", (str(path.with_suffix(_YAML)),)
    elif folder:
        reason = f"there is no folder `{folder}` in a project"
        similar = tuple(f"{name}/{'/'.join(path.parts[1:])}" for name in nearest(folder, _ALL_FOLDERS, 1))
    elif path.stem in _ALL_FOLDERS:
        similar = (f"{path.stem}/{path.stem}.yaml",)
    else:
        similar = tuple(f"{stem}{_YAML}" for stem in nearest(path.stem, _ALL_STEMS, 1))
    if similar or remedy:
        return UNKNOWN_FILE(place, reason=reason, nearest=similar, remedy=remedy)
    return OTHER_FILE(place, known=(*FILES, *(f"{name}/*.yaml" for name in FOLDERS), f"{POLICIES}/*.dpl"))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Reading. Whatever lies in the folder, reading ends and answers: files are bounded in number and size, links that lead
# out of the folder and things that are no files are refused, and every mistake is a problem, never an exception.

Progress = Callable[[str, int, int], None]
"""Called with a file and how many of how many have been done."""

_MOST_FILES = 20_000
_MOST_LOOKED_AT = 100_000
_DEEPEST = 8
_LIMITS = DocumentLimits()


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """What was read: the documents by kind, in the order of their names, and what went wrong on the way."""

    path: Path
    files: tuple[str, ...] = ()
    documents: Mapping[str, tuple[Document, ...]] = msgspec.field(default_factory=dict)
    code: Mapping[str, bytes] = msgspec.field(default_factory=dict)
    """The files of Python functions."""
    policies: Mapping[str, bytes] = msgspec.field(default_factory=dict)
    digests: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Of the bytes of each file that was read."""
    problems: tuple[Problem, ...] = ()

    def of(self, kind: str) -> tuple[Document, ...]:
        return self.documents.get(kind, ())


def find_project(start: Path) -> Path:
    """The nearest folder at or above ``start`` that has a ``situ.yaml``; :class:`SituError` with P101 if none has."""
    here = start.absolute()
    for folder in (here, *here.parents):
        if (folder / SETTINGS_FILE).is_file():
            return folder
    raise SituError(NO_PROJECT(None, place=str(start)))


def read_folder(path: Path, environment: Mapping[str, str], progress: Progress | None = None) -> Folder:
    """Read every file of the project, with ``${NAME}`` replaced by what the environment says."""
    problems = Problems()
    files = list_files(path, problems)
    if SETTINGS_FILE not in files:
        problems.add(NO_PROJECT(None, place=str(path)))
    documents: dict[str, list[Document]] = {}
    code: dict[str, bytes] = {}
    policies: dict[str, bytes] = {}
    digests: dict[str, str] = {}
    for number, file in enumerate(files, 1):
        if progress is not None:
            progress(file, number, len(files))
        data = read_file(path, file, problems)
        if data is not None:
            digests[file] = digest_of(data)
        if data is not None and is_code(file):
            code[file] = data
        elif data is not None and is_policy(file):
            policies[file] = data
        elif data is not None:
            kind = kind_of(file)
            documents.setdefault(kind or "", []).append(_document(data, file, environment))
    return Folder(
        path=path,
        files=files,
        documents={kind: tuple(each) for kind, each in documents.items()},
        code=code,
        policies=policies,
        digests=digests,
        problems=tuple(problems),
    )


def list_files(path: Path, problems: Problems | None = None) -> tuple[str, ...]:
    """The files that are read, in order; what is said about the others goes to ``problems``."""
    found: list[str] = []
    for file in _walk(path, problems):
        if kind_of(file) is not None:
            found.append(file)
        elif problems is not None and (said := remark(file)) is not None:
            problems.add(said)
    if len(found) > _MOST_FILES:
        if problems is not None:
            problems.add(TOO_MANY_FILES(None, place=str(path), most=_MOST_FILES))
        found = found[:_MOST_FILES]
    rank = {name: number for number, name in enumerate((*FOLDERS, POLICIES), 1)}
    return tuple(sorted(found, key=lambda file: (rank.get(file.split("/")[0], 0), file)))


def read_file(path: Path, file: str, problems: Problems, *, whole: bool = False) -> bytes | None:
    """The content of a file of the project, a little more than the limit at most; None if it must not be read.

    ``whole``: all of it, for those who bound what they make of it.
    """
    full = path / file
    place = Location(file=file)
    try:
        real = full.resolve(strict=True)
        if not real.is_relative_to(path.resolve()):
            problems.add(LEAVES_FOLDER(place, target=str(real)))
            return None
        if not stat.S_ISREG(real.stat().st_mode):
            problems.add(FILE_UNREADABLE(place, reason="it is not a file", remedy="Put a plain file here."))
            return None
        with real.open("rb") as stream:
            return stream.read() if whole else stream.read(_LIMITS.size + 1)
    except (OSError, RuntimeError) as error:  # a circle of links is a RuntimeError
        problems.add(_unreadable(file, error))
        return None


def digest_of(data: bytes) -> str:
    """By which a file is known to be the same as before."""
    return hashlib.sha256(data).hexdigest()


def _document(data: bytes, file: str, environment: Mapping[str, str]) -> Document:
    document: Document
    if is_xml(file):
        from situ.contexts.xml_form import parse_context_xml

        document = parse_context_xml(data, file, _LIMITS)
    else:
        document = parse_yaml(data, file, _LIMITS)
    # A reference needs its sign, or an escape that stands for it: most files have neither.
    if document.root is None or not (b"$" in data or b"\\" in data):
        return document
    problems = Problems(document.problems)
    root = substitute(document.root, environment, problems, _LIMITS)
    return replace(document, root=root, problems=tuple(problems))


def _walk(path: Path, problems: Problems | None) -> Iterator[str]:
    """All files below, as ``folder/file``, in order. Hidden things are not looked at."""
    problems = Problems() if problems is None else problems
    waiting = [""]
    looked_at = 0
    while waiting:
        folder = waiting.pop()
        for entry in _entries(path, folder, problems):
            looked_at += 1
            if looked_at > _MOST_LOOKED_AT:
                problems.add(TOO_MANY_FILES(None, place=str(path), most=_MOST_LOOKED_AT))
                return
            name = f"{folder}/{entry.name}" if folder else entry.name
            if not _is_folder(entry):
                yield name
            elif _may_enter(path, name, entry, problems):
                waiting.append(name)


def _entries(path: Path, folder: str, problems: Problems) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path / folder) as entries:
            return sorted((each for each in entries if not each.name.startswith(".")), key=lambda each: each.name)
    except OSError as error:
        if folder:  # without the project folder itself there is no situ.yaml, and that is said anyway
            problems.add(_unreadable(folder, error))
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # links in a circle; reading says so
        return False


def _may_enter(path: Path, name: str, entry: os.DirEntry[str], problems: Problems) -> bool:
    """Folders behind links are entered only where files are expected, and only inside of the project."""
    if not entry.is_symlink():
        return name.count("/") < _DEEPEST
    if name not in (*FOLDERS, POLICIES):
        return False
    real = (path / name).resolve()
    if real.is_relative_to(path.resolve()):
        return True
    problems.add(LEAVES_FOLDER(Location(file=name), target=str(real)))
    return False


def _unreadable(file: str, error: OSError | RuntimeError) -> Problem:
    reason = (error.strerror if isinstance(error, OSError) else None) or "its links lead in a circle"
    remedy = "Let the user who runs this read it, or take it out."
    return FILE_UNREADABLE(Location(file=file), reason=reason.lower(), remedy=remedy)


def read_settings(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings alone, for what must work while the rest is being edited; :class:`SituError` if they are wrong."""
    from situ.settings import Settings, load_settings

    problems = Problems()
    data = read_file(path, SETTINGS_FILE, problems)
    problems.raise_errors()
    document = parse_yaml(data or b"", SETTINGS_FILE)
    problems.extend(document.problems)
    if document.root is None:
        problems.raise_errors()
        return Settings()
    root = substitute(document.root, environment, problems, DocumentLimits())
    settings = load_settings(type(document)(file=SETTINGS_FILE, root=root), problems)
    problems.raise_errors()
    return settings
