"""What stands where in a project folder: which files are read, and which are misplaced.

Knows names only; :mod:`situ.project.folder` looks at the disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from situ.catalogue import OTHER_FILE, UNKNOWN_FILE
from situ.errors import Location, Problem, nearest

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
