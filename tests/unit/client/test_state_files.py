"""What a client remembers over restarts, and what it does where nothing can be written."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest

from situ.client import state_files as client_files
from situ.client import state_files as journal
from situ.client.state_files import ClientFiles, IdWindow, SeenFile, state_folder
from situ.event.seal import Seal


def test_numbers_rise_with_every_start(tmp_path: Path) -> None:
    first, second = ClientFiles(tmp_path), ClientFiles(tmp_path)
    assert second.incarnation > first.incarnation
    assert second.session > first.session
    first.close()
    second.close()


def test_numbers_rise_even_if_the_clock_goes_back(tmp_path: Path) -> None:
    ahead = {"incarnation": 2**62, "session": 2**62 + 5}
    (tmp_path / "numbers").write_text(json.dumps(ahead))
    files = ClientFiles(tmp_path)
    assert (files.incarnation, files.session) == (2**62 + 1, 2**62 + 6)
    files.close()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"incarnation": "x"}', "\x00\xff"])
def test_damaged_numbers_begin_at_the_clock(tmp_path: Path, damage: str) -> None:
    (tmp_path / "numbers").write_text(damage)
    files = ClientFiles(tmp_path)
    assert files.incarnation > 1_700_000_000_000
    files.close()


def test_without_a_folder_to_write_the_client_remembers_in_memory_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        files = ClientFiles(tmp_path / "file" / "below")
    assert not files.on_disk
    assert "cannot be written" in caplog.text
    files.ids.add("a")
    assert "a" in files.ids
    seen = files.seen("board")
    seen.add("pump.1.1")
    assert seen.window.has("pump", 1, 1)
    files.close()


def test_ids_of_stored_events_are_remembered_and_those_under_way_are_not(tmp_path: Path) -> None:
    ids = IdWindow(tmp_path / "ids")
    ids.expect("under way")
    ids.add('with "quotes"\n')
    assert "under way" in ids
    ids.close()
    again = IdWindow(tmp_path / "ids")
    assert 'with "quotes"\n' in again
    assert "under way" not in again
    again.close()


def test_ids_are_forgotten_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = IdWindow(tmp_path / "ids")
    ids.add("old")
    ids.discard("never")
    ids.close()
    monkeypatch.setattr(client_files, "_IDS_AGE", -1.0)
    again = IdWindow(tmp_path / "ids")
    assert "old" not in again
    again.close()


def test_only_the_last_ids_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_files, "_MOST_IDS", 3)
    monkeypatch.setattr(client_files, "_APPENDED", 2)
    ids = IdWindow(tmp_path / "ids")
    for number in range(10):
        ids.add(str(number))
    assert [str(number) in ids for number in (0, 6, 7, 9)] == [False, False, True, True]
    ids.close()


def test_what_was_done_is_seen_after_a_restart(tmp_path: Path) -> None:
    seen = SeenFile(tmp_path / "seen")
    for number in (1, 2, 4):
        seen.add(f"pump.7.{number}")
    seen.note_history(65_536, done=True)
    # No orderly end: the process is killed.
    again = SeenFile(tmp_path / "seen")
    assert [again.window.has("pump", 7, number) for number in range(1, 6)] == [True, True, False, True, False]
    assert again.history == {"after": 65_536, "done": True}
    seen.close()
    again.close()


def test_a_torn_line_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "seen").write_text('["pump",1,1]\n["pump",1,2]\n["pump",1')
    seen = SeenFile(tmp_path / "seen")
    assert [seen.window.has("pump", 1, number) for number in (1, 2, 3)] == [True, True, False]
    assert "cannot be read" in caplog.text
    seen.close()


def test_the_file_is_written_anew_before_it_grows_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "ROOM", 500)
    seen = SeenFile(tmp_path / "seen")
    for number in range(1, 1000):
        seen.add(f"pump.1.{number}")
    assert (tmp_path / "seen").stat().st_size < 1000
    seen.close()
    again = SeenFile(tmp_path / "seen")
    assert again.window.has("pump", 1, 999)
    assert again.window.has("pump", 1, 1)
    again.close()


def test_files_stand_in_the_project_or_with_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_folder(tmp_path, "main", "desk") == tmp_path / ".situ" / "clients" / "desk"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder(None, "main", "desk") == tmp_path / "situ" / "main" / "clients" / "desk"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder(None, "z", "desk") == tmp_path / ".local" / "state" / "situ" / "z" / "clients" / "desk"


def test_sealed_keys_are_seen_after_a_restart_and_events_numbered_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "ROOM", 500)
    seal, seen = Seal("secret"), SeenFile(tmp_path / "seen")
    keys = [seal.key(f"{client}.7.{number}") for number in range(300) for client in ("pump", "fan")]
    for key in keys:
        assert not seen.window.has_key(key)
        seen.add(key)
    seen.add("pump.7.1")
    assert seen.given == 601
    shutil.copy(tmp_path / "seen", tmp_path / "killed")
    seen.close()
    for name in ("killed", "seen"):
        restored = SeenFile(tmp_path / name)
        assert all(restored.window.has_key(key) for key in (*keys, "pump.7.1"))
        assert not restored.window.has_key(seal.key("pump.7.300"))
        assert restored.given == 601
        restored.close()
