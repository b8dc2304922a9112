"""An S3-compatible server on loopback for tests, and what Spark needs to use it: from Maven Central, in a cache."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow.fs import S3FileSystem

from situ.storage.state_folder import s3_arguments
from tests.nats_server import free_port

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "situ-tests"
_CENTRAL = "https://repo1.maven.org/maven2"
_SERVER = "org/gaul/s3proxy/3.1.0/s3proxy-3.1.0-jar-with-dependencies.jar"  # 93 MB
_CLIENT = (
    "org/apache/hadoop/hadoop-aws/3.5.0/hadoop-aws-3.5.0.jar",
    "software/amazon/awssdk/bundle/2.35.4/bundle-2.35.4.jar",  # 686 MB
    "software/amazon/s3/analyticsaccelerator/analyticsaccelerator-s3/1.3.1/analyticsaccelerator-s3-1.3.1.jar",
)
_KEY, _SECRET, BUCKET = "tester", "tester-secret", "plant"
_CONFIGURATION = """\
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={key}
s3proxy.credential={secret}
s3proxy.endpoint=http://127.0.0.1:{port}
jclouds.provider=transient
jclouds.identity=x
jclouds.credential=x
"""


def fetched(path: str) -> Path:
    file = CACHE / path.rpartition("/")[2]
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(f".{os.getpid()}")
        urllib.request.urlretrieve(f"{_CENTRAL}/{path}", beside)
        with urllib.request.urlopen(f"{_CENTRAL}/{path}.sha1") as answer, beside.open("rb") as content:
            assert hashlib.file_digest(content, "sha1").hexdigest() == answer.read().decode().split()[0]
        beside.replace(file)
    return file


@dataclass(frozen=True)
class S3Server:
    """A server with one bucket."""

    port: int

    @property
    def conf(self) -> dict[str, str]:
        """Spark's settings; the client is on the class path of driver and executors."""
        jars = ":".join(str(fetched(each)) for each in _CLIENT)
        return {"spark.driver.extraClassPath": jars, "spark.executor.extraClassPath": jars, **self.store}

    @property
    def store(self) -> dict[str, str]:
        """Those of the store alone."""
        return {
            "spark.hadoop.fs.s3a.endpoint": f"http://127.0.0.1:{self.port}",
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.access.key": _KEY,
            "spark.hadoop.fs.s3a.secret.key": _SECRET,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """What it stores is in its memory: the folders of a disk are not those of an object store."""
    folder.mkdir(parents=True)
    port = free_port()
    settings = folder / "s3proxy.conf"
    settings.write_text(_CONFIGURATION.format(key=_KEY, secret=_SECRET, port=port))
    with (folder / "s3proxy.log").open("wb") as log:
        command = ["java", "-Xmx256m", "-jar", str(fetched(_SERVER)), "--properties", str(settings)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "s3proxy.log").read_text()
                assert time.monotonic() < deadline, "the server did not start"
                time.sleep(0.1)
        server = S3Server(port)
        options = {name.removeprefix("spark.hadoop."): value for name, value in server.store.items()}
        S3FileSystem(**s3_arguments(options), allow_bucket_creation=True).create_dir(BUCKET)
        yield server
    finally:
        process.kill()
        process.wait()
