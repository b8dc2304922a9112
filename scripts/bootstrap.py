"""Set up what the make targets need, in ``.venv``: locked dependencies, Situ itself, a Java runtime if there is none.

Needs nothing but Python 3.11 with ``venv``. Which package index is used, and how it is reached, is the machine's
business: settings made for pip (files or ``PIP_*``) and for uv (``UV_*``) are both honoured. The lock has versions and
hashes and no addresses.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - this script runs before anything has checked the version
    sys.exit(f"Situ needs Python 3.11 or later, this is {sys.version.split()[0]}: try make PYTHON=python3.11")

import tomllib

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
LOCK = ROOT / "requirements" / "all.lock"
JAVA_LOCK = ROOT / "requirements" / "java.lock"

# What uv calls the settings that pip has; the left is what `pip config list` shows.
UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "proxy": "ALL_PROXY",
    "cert": "SSL_CERT_FILE",
}

# Spark starts Java with this option, so a runtime without the module is as good as none.
SPARK_MODULE = "--add-modules=jdk.incubator.vector"
OLDEST_JAVA = 17


def main() -> None:
    started = time.monotonic()
    with (ROOT / ".bootstrap.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two makes at once must not build one environment between them
        make_environment()
        install_uv()
        java = has_java()
        install_locked([LOCK] if java else [LOCK, JAVA_LOCK])
        compile_once()
        print("keeping what Java loads for Spark, so that it starts in half the time …", flush=True)
        run(PYTHON, ROOT / "scripts" / "class_archive.py")
    runtime = "the Java at hand" if java else "a Java runtime of its own"
    print(f"set up in {time.monotonic() - started:.0f} s: {VENV}, with {runtime}")


def make_environment() -> None:
    works = PYTHON.exists() and subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True).returncode == 0
    if not works:
        run(sys.executable, "-m", "venv", "--clear", VENV)


def install_uv() -> None:
    """The version that pyproject.toml asks for; another might read the lock differently."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        required = tomllib.load(file)["tool"]["uv"]["required-version"]
    present = subprocess.run([UV, "--version"], capture_output=True, text=True).stdout if UV.exists() else ""
    if required.removeprefix("==") not in present.split():
        run(PYTHON, "-m", "pip", "install", "--quiet", f"uv{required}")


def has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return False
    answer = subprocess.run([java, SPARK_MODULE, "-version"], capture_output=True, text=True)
    version = re.search(r'version "(\d+)', answer.stderr)
    return answer.returncode == 0 and version is not None and int(version[1]) >= OLDEST_JAVA


def install_locked(locks: list[Path]) -> None:
    environment = {**uv_settings(), "VIRTUAL_ENV": str(VENV)}
    run(UV, "pip", "sync", "--quiet", "--require-hashes", *locks, environment=environment)
    run(UV, "pip", "install", "--quiet", "--no-deps", "--editable", ROOT, environment=environment)


def compile_once() -> None:
    """Where Python is told to write no bytecode, every process would compile all that it imports."""
    if sys.dont_write_bytecode:
        packages = next(VENV.glob("lib/python*/site-packages"))
        run(PYTHON, "-m", "compileall", "-q", "-q", "-j", "0", packages, ROOT / "src")


def uv_settings() -> dict[str, str]:
    """The environment for uv: what the user set for it, else what the user set for pip."""
    environment = dict(os.environ)
    for name, value in pip_settings().items():
        if name in UV_NAMES:
            environment.setdefault(UV_NAMES[name], ",".join(value.split()) if name == "find-links" else value)
    if "SSL_CERT_FILE" not in environment and has_system_certificates():
        environment.setdefault("UV_SYSTEM_CERTS", "true")
    return environment


def pip_settings() -> Mapping[str, str]:
    listing = subprocess.run([PYTHON, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^(global|install|:env:)\.([a-z-]+)='(.*)'$", listing, flags=re.MULTILINE)
    # The more special ones win, as they do in pip.
    ordered = sorted(found, key=lambda setting: ("global", "install", ":env:").index(setting[0]))
    return {name: value.replace("\\n", " ").strip() for _, name, value in ordered}


def has_system_certificates() -> bool:
    """uv brings certificates of its own, which do not know a company's; but a bare container may have no others."""
    paths = ssl.get_default_verify_paths()
    return paths.cafile is not None or (paths.capath is not None and any(Path(paths.capath).iterdir()))


def run(*command: str | Path, environment: Mapping[str, str] | None = None) -> None:
    answer = subprocess.run(command, cwd=ROOT, env=environment)
    if answer.returncode != 0:
        sys.exit(f"set-up stopped: {' '.join(map(str, command))} gave {answer.returncode}")


if __name__ == "__main__":
    main()
