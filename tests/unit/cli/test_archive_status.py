"""What `situ status` says of the archive."""

from __future__ import annotations

import io

from rich.console import Console

from situ.bus.interface import StreamState
from situ.cli.render.status import show_status
from situ.project.status import RunStatus
from situ.registry.run_metrics import ArchiveMetrics, RunMetrics, decode_metrics

NOW = 1_793_521_800_000_000


def shown(archive: ArchiveMetrics) -> str:
    figures = RunMetrics(engine="edge", at=NOW, archive=archive)
    assert decode_metrics(figures.encode()) == figures
    console = Console(width=200, record=True, file=io.StringIO())
    names = ("IN_main", "ROOT_main", "OUT_main", "DEAD_main", "LATE_main", "FEED_main")
    streams = {name: StreamState(first=1, last=0, messages=0, size=0) for name in names}
    for each in show_status(RunStatus(project="plant", zone="main", engines={"edge": figures}, streams=streams)):
        console.print(each)
    return console.export_text()


def test_an_archive_that_is_up_to_date() -> None:
    text = shown(ArchiveMetrics(place="s3a://bucket/plant", last=12_345))
    assert "archive s3a://bucket/plant: up to message 12,345 of the root log\n" in text
    assert "tried again" not in text


def test_an_archive_that_is_behind() -> None:
    text = shown(ArchiveMetrics(place="history", last=5, behind=3, oldest=NOW - 12_500_000))
    assert "up to message 5 of the root log, 3 messages behind, the oldest for 12.5 s" in text


def test_an_archive_that_fails_and_lost_some() -> None:
    failing = "N171 The archive cannot be used: No space left on device."
    text = shown(ArchiveMetrics(place="history", behind=9, failing=failing, since=NOW - 3_000_000, lost=1))
    assert f"{failing} It is tried again for 3.0 s." in text
    assert "What is not archived is in the root log alone, which keeps what log.age and log.size say." in text
    assert "Left the root log before they were archived, and in neither: 1 message" in text
