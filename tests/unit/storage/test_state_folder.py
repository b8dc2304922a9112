"""Files of state: whole or not there, checked when they are read, on disks and on file systems of Arrow's."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import LocalFileSystem

from situ.lang.problems import SituError
from situ.storage import state_folder
from situ.storage.state_folder import (
    ArrowFiles,
    LocalFiles,
    StateFiles,
    StateFolder,
    environment_of,
    open_folder,
    s3_arguments,
    use_options,
)

KINDS: list[Callable[[], StateFiles]] = [
    LocalFiles,
    lambda: ArrowFiles(LocalFileSystem(), renames=True),
    lambda: ArrowFiles(LocalFileSystem(), renames=False),
]


def code_of(error: pytest.ExceptionInfo[SituError]) -> str:
    return error.value.code


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_written_read_listed_copied_and_removed(tmp_path: Path, kind: Callable[[], StateFiles]) -> None:
    files, at = kind(), str(tmp_path)
    assert files.read(f"{at}/a/b") is None
    assert files.names(f"{at}/a") == []
    if not isinstance(files, LocalFiles):
        (tmp_path / "a").mkdir(exist_ok=True)  # an object store needs no folders
    files.write(f"{at}/a/b", b"one")
    files.write(f"{at}/a/b", b"two")
    assert files.copy(f"{at}/a/b", f"{at}/a/c")
    assert files.copy(f"{at}/a/b", f"{at}/a/b")
    assert not files.copy(f"{at}/a/x", f"{at}/a/y")
    assert files.read(f"{at}/a/c") == b"two"
    assert sorted(files.names(f"{at}/a")) == ["b", "c"]
    assert sorted(each.name for each in (tmp_path / "a").iterdir()) == ["b", "c"], "nothing is left beside"
    files.remove(f"{at}/a/b")
    files.remove(f"{at}/a/b")
    assert (files.exists(f"{at}/a/b"), files.exists(f"{at}/a/c"), files.exists(f"{at}/a")) == (False, True, True)
    files.remove(f"{at}/a")
    assert not files.exists(f"{at}/a")


def test_what_was_saved_is_loaded_or_said_to_be_damaged(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "state") / "carry"
    assert folder.load("7.json") is None
    folder.save("7.json", b'{"a": 1}')
    assert folder.load("7.json") == b'{"a": 1}'
    file = tmp_path / "state" / "carry" / "7.json"
    whole = file.read_bytes()
    for damaged, reason in (
        (whole[:-1], "bytes"),
        (whole.replace(b'"a"', b'"b"'), "checksum"),
        (whole.replace(b"situ-state 1", b"situ-state 2"), "format 2"),
        (whole.replace(b"situ-state 1", b"situ-state x"), "first line"),
        (b"situ-state 1", "first line"),
    ):
        file.write_bytes(damaged)
        with pytest.raises(SituError, match=reason) as error:
            folder.load("7.json")
        assert code_of(error) == "N101"
    file.write_bytes(b'{"a": 0}')
    assert folder.load("7.json") == b'{"a": 0}', "releases without checksums wrote it so"


def test_places_are_paths_or_uris(tmp_path: Path) -> None:
    assert open_folder("a b", tmp_path).location == f"{tmp_path}/a b"
    assert open_folder(f"file://{tmp_path}/a%20b") == open_folder("a b", tmp_path)
    there = open_folder("s3a://bucket/at/") / "events"
    assert (there.location, there.is_local, there.name) == ("s3a://bucket/at/events", False, "events")
    assert pickle.loads(pickle.dumps(there)) == there
    assert there._path("x") == "bucket/at/events/x"
    assert StateFolder("hdfs://host:9000/at")._path("x") == "/at/x"


def test_options_of_hadoop_are_those_of_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = {
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:8080",
        "spark.hadoop.fs.s3a.access.key": "me",
        "spark.hadoop.fs.s3a.secret.key": "hush",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.ui.enabled": "false",
    }
    (name, value), *_ = environment_of(conf).items()
    assert "SECRET" in name, "Spark shows no value of such a name"
    monkeypatch.setenv(name, value)
    use_options({})
    assert s3_arguments(state_folder._options()) == {
        "access_key": "me",
        "secret_key": "hush",
        "endpoint_override": "127.0.0.1:8080",
        "scheme": "http",
        "region": "us-east-1",
        "force_virtual_addressing": False,
        "connect_timeout": 5.0,
        "request_timeout": 20.0,
        "allow_delayed_open": True,
    }
    assert environment_of({"spark.ui.enabled": "false"}) == {}
    assert s3_arguments({})["scheme"] == "https"


class Failing(ArrowFiles):
    """A store that is away for the first few calls."""

    def __init__(self, failures: list[OSError], **options: Any) -> None:
        self.slept: list[float] = []
        self.failures = failures
        super().__init__(self, renames=False, sleep=self.slept.append, **options)

    def get_file_info(self, path: str) -> Any:
        if self.failures:
            raise self.failures.pop(0)
        return LocalFileSystem().get_file_info(path)


def test_a_store_that_is_away_is_tried_again_for_a_while(tmp_path: Path) -> None:
    files = Failing([OSError("connection refused")] * 3)
    assert files.exists(str(tmp_path))
    assert files.slept == [0.2, 0.4, 0.8]


@pytest.mark.parametrize(
    ("patience", "said"), [(0.0, "connection refused"), (90.0, "AWS Error ACCESS_DENIED during HeadObject")]
)
def test_one_that_stays_away_or_refuses_is_told(tmp_path: Path, patience: float, said: str) -> None:
    files = Failing([OSError(said)] * 9, patience=patience)
    with pytest.raises(SituError, match=said) as error:
        files.exists(str(tmp_path))
    assert code_of(error) == "N104"
    assert files.slept == []


def test_a_scheme_that_nobody_knows_is_told() -> None:
    with pytest.raises(SituError) as error:
        open_folder("nowhere://host/at").names()
    assert code_of(error) == "N104"
