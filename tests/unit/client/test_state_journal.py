"""Journals: what was appended is there whatever becomes of the process that appended it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from situ.client import state_files as journal
from situ.client.state_files import Journal, read_journal

_APPEND_FOR_EVER = """
import sys
from pathlib import Path
from situ.client.state_files import Journal

journal = Journal(Path(sys.argv[1]))
for number in range(10_000_000):
    if not journal.append(b"%d\\n" % number):
        break
    if number == 1000:
        print("so far", flush=True)
"""


def test_lines_are_read_back_in_order_and_the_file_ends_with_them(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    opened = Journal(file, [b"one\n"])
    assert opened.append(b"two\n")
    assert list(read_journal(file)) == [b"one", b"two"]
    opened.close()
    assert file.read_bytes() == b"one\ntwo\n"
    assert list(read_journal(file)) == [b"one", b"two"]


def test_without_room_a_line_is_refused_and_nothing_is_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "ROOM", 10)
    opened = Journal(tmp_path / "lines", [b"first\n"])
    assert opened.append(b"12345\n")
    assert not opened.append(b"12345\n")
    assert opened.append(b"123\n")
    opened.close()
    assert list(read_journal(tmp_path / "lines")) == [b"first", b"12345", b"123"]


def test_a_file_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert list(read_journal(tmp_path / "lines")) == []


def test_a_killed_process_leaves_all_its_lines_but_perhaps_the_last(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    command = [sys.executable, "-c", _APPEND_FOR_EVER, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    lines = list(read_journal(file))
    assert len(lines) > 1000
    assert lines[:-1] == [b"%d" % number for number in range(len(lines) - 1)]
