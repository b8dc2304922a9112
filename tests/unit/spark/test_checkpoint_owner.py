"""Whose a checkpoint is: of one project, one format and one job at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from situ.lang.problems import SituError
from situ.spark.storage.owner import CheckpointOwner, Lease, _machine, claimed
from situ.storage.state_folder import StateFolder, open_folder


def owner(at: StateFolder, *, project: str = "plant", zone: str = "main") -> CheckpointOwner:
    return CheckpointOwner(at, project=project, zone=zone, sleep=lambda _: None)


def lease_of(at: StateFolder) -> Lease:
    return msgspec.json.decode(at.read("lease.json") or b"", type=Lease)


def leave(at: StateFolder, **changes: object) -> Lease:
    """A lease that somebody else holds."""
    known = {"holder": "x", "machine": "elsewhere", "pid": 1, "started": 0.0, "generation": 4, "renewed": 7, **changes}
    at.write("lease.json", json.dumps(known).encode())
    return lease_of(at)


def refusal(of: CheckpointOwner) -> str:
    with pytest.raises(SituError) as error:
        of.claim()
    return str(error.value)


def test_a_checkpoint_is_of_one_project_zone_and_format(tmp_path: Path) -> None:
    at = open_folder(tmp_path)
    with claimed(owner(at)):
        pass
    with claimed(owner(at)):
        pass
    assert "N105" in refusal(owner(at, project="other"))
    assert "N105" in refusal(owner(at, zone="north"))
    about = json.loads(at.read("situ.json") or b"")
    at.write("situ.json", json.dumps({**about, "format": 9}).encode())
    assert "another format: `9`, and not `1`" in refusal(owner(at))
    at.write("situ.json", b"{")
    assert "N101" in refusal(owner(at))


def test_two_jobs_on_one_checkpoint_are_refused(tmp_path: Path) -> None:
    at = open_folder(tmp_path)
    leave(at)

    def renew(_: float) -> None:
        leave(at, renewed=lease_of(at).renewed + 1)

    second = CheckpointOwner(at, project="plant", zone="main", sleep=renew)
    said = refusal(second)
    assert "N106" in said
    assert "process 1 on elsewhere" in said


def test_a_job_that_was_killed_is_forgotten(tmp_path: Path) -> None:
    at = open_folder(tmp_path)
    leave(at)  # on another machine: it does not change
    with claimed(owner(at)):
        assert lease_of(at).generation == 5
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started = psutil.Process(process.pid).create_time()
        here = {"machine": _machine(), "pid": process.pid, "started": started}
        leave(at, **here)
        assert not _claimed_at_once(at), "it lives"
        leave(at, **{**here, "started": started - 60})
        assert _claimed_at_once(at), "another process has its number"
        leave(at, **here)
    assert _claimed_at_once(at), "it has ended"
    leave(at, **{**here, "pid": os.getpid()})
    assert _claimed_at_once(at), "it was this one"


def _claimed_at_once(at: StateFolder) -> bool:
    slept: list[float] = []
    with claimed(CheckpointOwner(at, project="plant", zone="main", sleep=slept.append)):
        return not slept


def test_a_job_whose_checkpoint_was_taken_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situ.spark.storage.owner._RENEW", 0.01)
    at = open_folder(tmp_path)
    first = owner(at)
    first.claim()
    first.check()
    leave(at)
    assert first._renewing is not None
    first._renewing.join(60)
    with pytest.raises(SituError, match="N106"):
        first.check()
    first.release()
    assert lease_of(at).holder == "x", "what is another's stays"
