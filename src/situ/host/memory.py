"""How much memory a run takes: this process, and what it started, told apart by what they are.

The figure is the resident set; of workers, which are forked from one another and share much of it, each counts its part
of what is shared, where the system says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import psutil

HOST, JAVA, WORKERS, BUS, OTHER = "situ", "java", "workers", "bus", "other"


def memory() -> Mapping[str, int]:
    """Bytes by kind of process; kinds of which there is none are left out."""
    found: dict[str, int] = {}
    for kind, size in _sizes():
        found[kind] = found.get(kind, 0) + size
    return found


def _sizes() -> Iterator[tuple[str, int]]:
    me = psutil.Process()
    yield HOST, me.memory_info().rss
    for child in me.children(recursive=True):
        try:
            kind = kind_of(child.name())
            yield kind, _share(child) if kind == WORKERS else child.memory_info().rss
        except psutil.Error:
            continue  # it has ended meanwhile


def _share(process: psutil.Process) -> int:
    try:
        full = process.memory_full_info()
    except psutil.AccessDenied:
        return process.memory_info().rss
    return int(getattr(full, "pss", 0) or full.rss)


def kind_of(name: str) -> str:
    """Of a process of this name that a run started."""
    if name.startswith("nats-server"):
        return BUS
    if name.startswith("java"):
        return JAVA
    return WORKERS if name.startswith("python") else OTHER
