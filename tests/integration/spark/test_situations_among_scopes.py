"""Situations among scopes on Spark: what the edge tells its audiences, with an end and a new start in between."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from situ.event.row import Row
from situ.event.subjects import DEPLOYMENTS
from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.model.deployment import encode_scopes, scopes_name
from situ.routing.delivery_groups import group_of
from situ.routing.model import Subscription
from situ.scopes.stamp_codec import stamps_in
from tests.integration.edge.test_situations_among_scopes import MORE, SIGHTINGS, TOLD, about, expected, longer
from tests.integration.spark.test_detection import running, wait_for
from tests.zone import Zone, event, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AUDIENCES = {
    name: Subscription(
        client=name,
        name="all",
        types=("situ.situation",),
        durable=True,
        scopes=TagSet.of({"site": name.removeprefix("at-")}, rest=True),
    )
    for name in TOLD
}


def told(at: Zone) -> dict[str, list[Row]]:
    delivered = at.delivered()
    return {name: delivered.get(group_of(each), []) for name, each in AUDIENCES.items()}


def counted(rows: list[Row]) -> Counter[tuple[str, str, str]]:
    return Counter(about(row.type, json.loads(row.data)) for row in rows)


def test_three_audiences_are_told_what_they_may_know(spark: SparkSession, tmp_path: Path) -> None:
    # Open until the engine has gone and come back.
    more = {name: longer(text).replace("hold 4 s", "hold 25 s") for name, text in MORE.items()}
    more["policies/again.dpl"] = more["policies/again.dpl"].replace("window 3 s", "window 3 s\nhold 25 s")
    types = more.pop("types/building.yaml")
    situ = "defaults: {lateness: 100 ms, idle: 1 s}\n"
    more["clients/all.yaml"] = ""
    with zone(tmp_path, AUDIENCES.values(), types=types, situ=situ, more=more) as at:
        declared = replace(at.deployment, epoch=1).numbered()
        at.bus.put_object(DEPLOYMENTS, scopes_name(1), encode_scopes(declared.scopes))
        at.publish(declared)
        with running(spark, at, tmp_path) as engine:
            for reader in ("reader-e", "reader-w"):
                some = [(who, x) for by, who, x in SIGHTINGS if by == reader]
                at.send(
                    reader,
                    [event(f"{who}-seen", "Sighting", {"who": who, "at": {"x": x, "y": 5.0}}) for who, x in some],
                )
            wait_for(lambda: len(told(at)["at-other"]) == 3, engine, seconds=120)  # others may still be to be opened
        with running(spark, at, tmp_path) as engine:
            wanted = {name: expected(name, "opened", "closed") for name in TOLD}
            wait_for(lambda: all(len(told(at)[name]) >= wanted[name].total() for name in TOLD), engine, seconds=180)
            assert {name: counted(rows) for name, rows in told(at).items()} == wanted
        rows = [row for row in at.root() if row.type.startswith("situ.situation.")]
        opened = {row.id.partition(".")[0]: stamps_in(row.parts) for row in rows if row.type.endswith("opened")}
        closed = {row.id.partition(".")[0]: stamps_in(row.parts) for row in rows if row.type.endswith("closed")}
        assert all(opened.values())
        assert opened == closed
        assert {row.ext for row in rows if row.client == "counted"} == {'"released":"site"'}
        for row in told(at)["at-other"]:
            said = json.loads(row.data)
            assert (said["causes"], said["bindings"], row.ext) == ([], [], '"released":"site"')
