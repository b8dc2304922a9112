"""How a session on a cluster is configured, and what those get who start it by ``spark-submit`` or on Kubernetes.

What a task needs comes with the job: the code as an archive, secrets in the environment of executors, under names
whose values Spark shows nowhere. Plans and tables come over the bus.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from situ.settings import Settings
from situ.spark.cluster.archive import build_archive, imported_packages

ARCHIVES = Path(".situ") / "cache" / "spark-archives"
_ENV = "env"
PYTHON = f"{_ENV}/bin/python"
"""Of executors, where the archive is unpacked, and of the driver, whose folder has a link of that name."""
_PORTS = {"spark.driver.port": "7078", "spark.driver.blockManager.port": "7079"}
"""In a manifest, where the project says nothing else."""


def is_remote(master: str) -> bool:
    """Whether executors are other processes than the driver, maybe on other machines."""
    return not master.startswith("local") or master.startswith("local-cluster")


def remote_settings(folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings for a session on a cluster, beside those that the project gives; builds the archive.

    ``variables`` are what executors need in their environment.
    """
    archive = build_archive(folder / ARCHIVES, imported_packages(folder))
    return {
        "spark.archives": f"{archive.resolve()}#{_ENV}",
        "spark.executorEnv.PYTHONHASHSEED": "0",
        "spark.pyspark.python": PYTHON,
        **{f"spark.executorEnv.{name}": value for name, value in variables.items()},
    }


def driver_folder(folder: Path, python: Path) -> Path:
    """A folder in which Java finds the driver's Python where executors find theirs."""
    at = folder / ".situ" / "cache" / "spark-driver"
    link_python(at, python)
    return at


def link_python(at: Path, python: Path) -> None:
    """Have the driver's Python at the place in this folder at which executors have theirs."""
    shutil.rmtree(at / _ENV, ignore_errors=True)
    program = at / PYTHON
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(str(python))} "$@"\n', encoding="utf-8")
    program.chmod(0o755)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Started by others. The driver is ``situ run`` itself, in client mode: it has the project folder and the registry.

_RUN = '''"""Runs the project of the folder it is started in, with the session that spark-submit has begun."""

import sys

from situ.cli.main import main

sys.exit(main(["run", *sys.argv[1:]]))
'''


def write_package(settings: Settings, folder: Path, out: Path) -> tuple[Path, str]:
    """Write archive, program and manifest into a folder; gives the archive, and the command that submits it."""
    out.mkdir(parents=True, exist_ok=True)
    archive = build_archive(out, imported_packages(folder))
    link_python(out, Path(sys.executable))
    (out / "run.py").write_text(_RUN, encoding="utf-8")
    (out / "kubernetes.yaml").write_text(_manifest(settings, archive.name), encoding="utf-8")
    return archive, submit_line(settings, folder, archive, out)


def submit_line(settings: Settings, folder: Path, archive: Path, out: Path) -> str:
    """``spark-submit`` for a driver on this machine. Secrets stand in files or the environment, not in the command."""
    options = {
        "spark.pyspark.python": PYTHON,
        "spark.pyspark.driver.python": sys.executable,
        **{name: value.written for name, value in settings.spark.conf},
    }
    words = ["spark-submit", "--master", settings.spark.master.written, "--deploy-mode", "client"]
    words += ["--archives", f"{archive.resolve()}#{_ENV}"]
    for name, value in sorted(options.items()):
        words += ["--conf", f"{name}={value}"]
    words += ["run.py", "--project", str(folder.resolve())]
    return f"cd {shlex.quote(str(out.resolve()))} && " + " ".join(map(shlex.quote, words))


_MANIFEST = """\
# The driver of project {name}: `situ run` in client mode, which asks Kubernetes for executors.
# Put in the place of IMAGE an image with Spark {spark}, Situ, and {archive} under /opt/situ; of PROJECT a volume
# with the project folder. The secret `situ-{label}` holds what situ.yaml reads from the environment.
apiVersion: v1
kind: ServiceAccount
metadata: {{name: situ-{label}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: situ-{label}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}}
subjects: [{{kind: ServiceAccount, name: situ-{label}}}]
---
apiVersion: v1
kind: Service
metadata: {{name: situ-{label}}}
spec:
  clusterIP: None  # executors call the driver by the name of its pod
  selector: {{app: situ-{label}}}
  ports:
    - {{name: driver, port: {driver}}}
    - {{name: blocks, port: {blocks}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: situ-{label}}}
spec:
  serviceName: situ-{label}
  replicas: 1  # one job on one checkpoint
  selector: {{matchLabels: {{app: situ-{label}}}}}
  template:
    metadata: {{labels: {{app: situ-{label}}}}}
    spec:
      serviceAccountName: situ-{label}
      containers:
        - name: driver
          image: IMAGE
          workingDir: /project
          command: [situ, run]
          envFrom: [{{secretRef: {{name: situ-{label}}}}}]
          ports: [{{containerPort: {driver}}}, {{containerPort: {blocks}}}]
          volumeMounts: [{{name: project, mountPath: /project}}]
      volumes:
        - name: project
          persistentVolumeClaim: {{claimName: PROJECT}}
"""


def _manifest(settings: Settings, archive: str) -> str:
    conf = {name: value.written for name, value in settings.spark.conf}
    driver, blocks = (conf.get(name, port) for name, port in _PORTS.items())
    label = settings.name.lower().replace("_", "-").replace(".", "-")
    return _MANIFEST.format(
        name=settings.name, label=label, archive=archive, spark=pyspark.__version__, driver=driver, blocks=blocks
    )
