"""Whose a checkpoint is: the project it belongs to, the format it has, and the one job that may write there.

`CheckpointOwner.claim` is called before a job reads or writes anything, `check` before each batch, `release` at the
end. The lease is a small file that its holder writes again every few seconds. Who finds one that changes is refused;
one that stays as it is for longer is a dead job's. No clocks are compared. Stores of objects know no lock, so two jobs
that claim at the same moment both write: each reads the file once more after a while, and the last one has it.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil

from situ.lang.catalogue import CHECKPOINT_IN_USE, CHECKPOINT_OF_ANOTHER
from situ.lang.problems import Location, SituError
from situ.lang.records import replace
from situ.storage.state_folder import FORMAT, StateFolder

_ABOUT, _LEASE = "situ.json", "lease.json"
_RENEW = 3.0
_DEAD = 4 * _RENEW
"""Seconds for which a lease must not change before it is taken from its holder."""
_SETTLE = 1.0
"""Seconds after which a claim is looked at again, where two could have been made at once."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a checkpoint; ``renewed`` counts, and says no time."""

    holder: str
    machine: str
    pid: int
    started: float
    generation: int
    renewed: int = 0


_DECODER = msgspec.json.Decoder(Lease)


class CheckpointOwner:
    """This job, as one that wants the checkpoints in a folder to itself."""

    def __init__(
        self, folder: StateFolder, *, project: str, zone: str, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._folder = folder
        self._about: dict[str, Any] = {"format": FORMAT, "project": project, "zone": zone}
        self._sleep = sleep
        self._lease: Lease | None = None
        self._lost: SituError | None = None
        self._ending = threading.Event()
        self._renewing: threading.Thread | None = None

    def claim(self) -> None:
        """N105 if the checkpoint is of another project or format, N106 if another job is at work on it."""
        if self._lease is not None:
            self.check()
            return
        self._check_about()
        found = self._wait_for_holder()
        mine = Lease(
            holder=uuid.uuid4().hex,
            machine=_machine(),
            pid=os.getpid(),
            started=psutil.Process().create_time(),
            generation=1 if found is None else found.generation + 1,
        )
        self._write(mine)
        # On one disk the lock of the project folder tells two runs apart.
        if not self._folder.is_local:
            self._sleep(_SETTLE)
            if (now := self._read()) is None or now.holder != mine.holder:
                raise self._in_use(now)
        if found is None:
            self._folder.write(_ABOUT, json.dumps(self._about).encode())
        self._lease, self._lost = mine, None
        self._ending.clear()
        self._renewing = threading.Thread(target=self._renew, name="checkpoint lease", daemon=True)
        self._renewing.start()

    def check(self) -> None:
        """N106 if another job has taken the checkpoint since it was claimed."""
        if self._lost is not None:
            raise self._lost

    def release(self) -> None:
        """The next job need not wait."""
        self._ending.set()
        if self._renewing is not None:
            self._renewing.join()
            self._renewing = None
        if self._lease is not None and self._lost is None:
            now = self._read()
            if now is not None and now.holder == self._lease.holder:
                self._folder.remove(_LEASE)
        self._lease = None

    def _check_about(self) -> None:
        text = self._folder.read(_ABOUT)
        if text is None:
            return
        try:
            found = json.loads(text)
            whose = {name: found[name] for name in self._about}
        except (ValueError, KeyError, TypeError) as error:
            raise self._folder.damaged(error, _ABOUT) from None
        for name, value in self._about.items():
            if whose[name] != value:
                place = Location(file=str(self._folder))
                raise SituError(CHECKPOINT_OF_ANOTHER(place, what=name, found=str(whose[name]), expected=str(value)))

    def _wait_for_holder(self) -> Lease | None:
        """The lease that was left behind, if there is one."""
        found = self._read()
        if found is None or _is_gone(found):
            return found
        waited = 0.0
        while waited < _DEAD:
            self._sleep(_RENEW / 3)
            waited += _RENEW / 3
            now = self._read()
            if now is None or now != found:
                if now is None:
                    return found
                raise self._in_use(now)
        return found

    def _renew(self) -> None:
        assert self._lease is not None
        lease = self._lease
        while not self._ending.wait(_RENEW):
            try:
                now = self._read()
                if now is None or now.holder != lease.holder:
                    self._lost = self._in_use(now)
                    return
                lease = replace(lease, renewed=lease.renewed + 1)
                self._write(lease)
            except (SituError, OSError):
                continue  # the batch under way says what is wrong with the store; the lease is tried again

    def _read(self) -> Lease | None:
        text = self._folder.read(_LEASE)
        try:
            return None if text is None else _DECODER.decode(text)
        except msgspec.DecodeError:
            return None  # torn by a machine that lost its power

    def _write(self, lease: Lease) -> None:
        self._folder.write(_LEASE, msgspec.json.encode(lease))

    def _in_use(self, by: Lease | None) -> SituError:
        who = f"process {by.pid} on {by.machine.partition(' ')[0]}" if by is not None else "another job"
        return SituError(CHECKPOINT_IN_USE(Location(file=str(self._folder)), holder=who))


@contextmanager
def claimed(owner: CheckpointOwner) -> Iterator[None]:
    """The checkpoint is this job's meanwhile."""
    owner.claim()
    try:
        yield
    finally:
        owner.release()


def _is_gone(lease: Lease) -> bool:
    """Whether the holder is a process of this machine that has ended, or this very one."""
    if lease.machine != _machine():
        return False
    if lease.pid == os.getpid():
        return True
    try:
        return abs(psutil.Process(lease.pid).create_time() - lease.started) > 1
    except psutil.Error:
        return True


def _machine() -> str:
    """This machine, as it was started the last time, and this container: pids mean something within these."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    started = boot.read_text().strip() if boot.exists() else ""
    space = Path("/proc/self/ns/pid")
    return f"{socket.gethostname()} {started} {space.readlink() if space.exists() else ''}".strip()
