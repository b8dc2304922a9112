"""Resolve what pyproject.toml asks for into ``requirements/*.lock``: versions and hashes, for every platform.

``all.lock`` is what a developer has: dependencies, Spark and all tools. ``java.lock`` is the Java runtime, for machines
that have none.
"""

from __future__ import annotations

import re
import subprocess
import sys

from bootstrap import JAVA_LOCK, LOCK, ROOT, UV, uv_settings

_ENTRY = re.compile(r"^[A-Za-z0-9][^\n]*(?:\n {4}[^\n]*)*", flags=re.MULTILINE)


def main() -> int:
    environment = uv_settings()
    subprocess.run([UV, "lock", *sys.argv[1:]], cwd=ROOT, env=environment, check=True)
    everything, developer = (
        export(environment, "spark", "kafka", "postgresql", "coordinates", "java"),
        export(environment, "spark", "kafka", "postgresql", "coordinates"),
    )
    LOCK.write_text("\n".join(developer) + "\n")
    JAVA_LOCK.write_text("\n".join(entry for entry in everything if entry not in developer) + "\n")
    return 0


def export(environment: dict[str, str], *extras: str) -> list[str]:
    wanted = [option for extra in extras for option in ("--extra", extra)]
    command = [UV, "export", "--quiet", "--locked", "--all-groups", *wanted, "--no-emit-project", "--no-annotate"]
    shown = subprocess.run(
        [*command, "--no-header"], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return _ENTRY.findall(shown.stdout)


if __name__ == "__main__":
    sys.exit(main())
