"""The lock holds everything pyproject.toml asks for, in a version it accepts, by hash and without addresses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
LOCKS = ("all.lock", "java.lock")


def locked() -> dict[str, str]:
    text = "".join((ROOT / "requirements" / name).read_text() for name in LOCKS)
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ;]+)", text, flags=re.MULTILINE))


def wanted() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lists = [project["project"]["dependencies"], *project["project"]["optional-dependencies"].values()]
    lists += project["dependency-groups"].values()
    return [Requirement(text) for texts in lists for text in texts if isinstance(text, str)]


def test_everything_asked_for_is_locked_in_a_version_that_fits() -> None:
    versions = locked()
    for requirement in wanted():
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        assert name in versions, f"{requirement} is not locked: run make lock"
        assert requirement.specifier.contains(versions[name], prereleases=True), f"{requirement}: run make lock"


def test_every_entry_has_hashes_and_none_an_address() -> None:
    for name in LOCKS:
        text = (ROOT / "requirements" / name).read_text()
        assert "://" not in text
        entries = re.split(r"\n(?=[a-z0-9])", text.strip())
        assert entries
        assert all("--hash=sha256:" in entry for entry in entries)
