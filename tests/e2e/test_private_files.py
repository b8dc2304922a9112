"""Whatever a run keeps is for its user only, and no command puts something else in the place of its keys."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from situ.bus.folder_lock import keep_private, private_folder
from tests.e2e.conftest import Situ
from tests.e2e.runs import make_plant, running

READING = '{"sensor": "s", "value": 20.5}'


def open_to_others(folder: Path) -> list[str]:
    """Files and folders that somebody else could look into, by what their modes say."""
    found = []
    for here, folders, files in os.walk(folder):
        for each in (Path(here), *(Path(here) / name for name in (*folders, *files))):
            mode = each.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode & 0o077:
                found.append(f"{each.relative_to(folder)} {stat.S_IMODE(mode):o}")
    return found


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run with the usual umask, over what an older release left for everybody to read."""
    folder = make_plant(tmp_path_factory.mktemp("plant"))
    old = folder / ".situ" / "checkpoints" / "route"
    old.mkdir(parents=True)
    (old / "metadata").write_text("{}")
    (old / "metadata").chmod(0o644)
    (folder / ".situ").chmod(0o755)
    before = os.umask(0o022)
    try:
        with running(folder) as run:
            yield folder
            assert run.stop() == 0
    finally:
        os.umask(before)


def test_all_that_a_run_keeps_is_for_its_user(situ: Situ, plant: Path) -> None:
    done = situ("publish", "Reading", "--client", "gate", "--data", READING, cwd=plant)
    assert done.code == 0, done.err
    heard = situ(
        "subscribe", "Reading", "--client", "desk", "--since", "begin", "--durable", "kept", "--limit", "1", cwd=plant
    )
    assert heard.code == 0, heard.err
    assert situ("client", "add", "gate", cwd=plant).code == 0
    there = {each.name for each in (plant / ".situ").iterdir()}
    assert there >= {"lock", "format", "logs", "nats", "registry.db", "credentials", "clients", "checkpoints"}
    assert open_to_others(plant / ".situ") == []
    assert (plant / "situ.yaml").stat().st_mode & 0o044, "what users write themselves is as they want it"


@pytest.mark.parametrize(
    ("out", "why"),
    [
        (".situ/credentials/bus", "the run's own"),
        (".situ/registry.db", "the run's own"),
        (".situ/credentials/../credentials/bus", "the run's own"),
        (".situ/credentials/other.creds", "the run's own"),
        ("run.nk", "something else"),
        ("situ.yaml", "something else"),
        ("link", "the run's own"),
        ("desk.creds", "credentials of `desk`"),
    ],
)
@pytest.mark.parametrize("command", ["add", "rotate"])
def test_credentials_of_a_client_replace_nothing_else(
    situ: Situ, plant: Path, command: str, out: str, why: str
) -> None:
    (plant / "run.nk").write_text((plant / ".situ" / "credentials" / "bus").read_text())
    if not (plant / "link").is_symlink():
        (plant / "link").symlink_to(".situ/credentials/bus")
        assert situ("client", "add", "desk", "--out", "desk.creds", cwd=plant).code == 0
        assert situ("client", "add", "pump", "--out", "pump.creds", cwd=plant).code == 0
    before = (plant / out).read_bytes() if (plant / out).exists() else None
    name = "pump" if command == "rotate" else "valve"
    refused = situ("client", command, name, "--out", out, cwd=plant)
    assert refused.code == 3, refused.err
    assert "P172" in refused.err
    assert why in refused.err
    assert ((plant / out).read_bytes() if (plant / out).exists() else None) == before


def test_its_own_file_is_replaced(situ: Situ, plant: Path) -> None:
    assert situ("client", "add", "lamp", "--out", "lamp.creds", cwd=plant).code == 0
    before = (plant / "lamp.creds").read_text()
    assert situ("client", "rotate", "lamp", "--out", "lamp.creds", cwd=plant).code == 0
    assert (plant / "lamp.creds").read_text() != before


def test_what_is_made_is_private_from_the_beginning(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = private_folder(tmp_path / "a" / "b" / "c")
        (folder / "file").write_text("x")
        (folder / "link").symlink_to(tmp_path)
        mode = tmp_path.stat().st_mode
        assert open_to_others(tmp_path / "a") == ["b/c/file 666"]
        keep_private(tmp_path / "a")
        assert open_to_others(tmp_path / "a") == []
        assert tmp_path.stat().st_mode == mode, "what a link leads to is not ours"
    finally:
        os.umask(before)
