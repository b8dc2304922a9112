"""A real nats-server for tests: on loopback, a free port, in a folder of the test; killed and started again at will."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from situ.bus.address import Address

PROGRAM = str(Path(sys.executable).parent / "nats-server")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class NatsServer:
    """One server that keeps its port and its store over restarts."""

    def __init__(self, folder: Path, *, config: str = "", token: str = "test-token") -> None:
        self.folder = folder
        self.port = free_port()
        self.token = token
        self._config = config
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "token").write_text(token)

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def address(self, zone: str = "main") -> Address:
        return Address(zone=zone, servers=(self.url,), token_file=str(self.folder / "token") if self.token else "")

    def start(self) -> None:
        authorization = f'authorization {{ token: "{self.token}" }}\n' if self.token else ""
        (self.folder / "server.conf").write_text(
            f"host: 127.0.0.1\nport: {self.port}\nmax_payload: 8388608\n{authorization}{self._config}\n"
            f'jetstream {{ store_dir: "{self.folder}/store", max_file_store: 1TB }}\n'
        )
        log = self.folder / "server.log"
        self._process = subprocess.Popen([PROGRAM, "-c", str(self.folder / "server.conf"), "-l", str(log)])
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            assert self._process.poll() is None, log.read_text()[-2000:]
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise AssertionError(log.read_text()[-2000:])

    def kill(self) -> None:
        """As by SIGKILL: nothing is flushed, nobody is told."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid


@contextmanager
def nats_server(folder: Path, *, config: str = "", token: str = "test-token") -> Iterator[NatsServer]:
    server = NatsServer(folder, config=config, token=token)
    server.start()
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder / "store", ignore_errors=True)
