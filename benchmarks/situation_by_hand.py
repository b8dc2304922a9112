"""The security policy written by hand for Spark, by people who know only this one policy.

What a detection is, :mod:`benchmarks.situation_recorded` says. Once as joins of streams, in Spark's own operators; once
as a function over a group with state, in numpy. Both have the answers of the policy.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.state import GroupState

WINDOW, LATENESS, NEAR = 5, 2, 5.0
_W = WINDOW * 1_000_000


# ── joins of streams ──────────────────────────────────────────────────────────────────────────────


def joined(session: SparkSession, events: DataFrame, folder: Path) -> DataFrame:
    """Guests in restricted rooms, outer-joined to those who have an employee with them; those who have none.

    - ``near``: guests and employees who came near each other. A join of streams needs something to be equal: the cell
      of a grid of 5 m, the employee in the cells around its own, too.
    - ``with_one``: what is near, and the employee in a restricted room about then.
    - The guest's event without any of these, when the watermark says that none will come.
    """
    from pyspark.sql import functions as sql

    guests, employees, inside = _sides(session, events, folder)
    near = _near(guests, employees)
    within = inside(employees).select(
        sql.col("person").alias("b"), sql.col("room").alias("r"), sql.col("time").alias("ti")
    )
    with_one = near.join(
        within,
        sql.expr(
            f"near_b = b AND ti >= tg - INTERVAL {2 * WINDOW} SECONDS AND ti <= tg + INTERVAL {3 * WINDOW} SECONDS "
            f"AND abs(unix_micros(ti) - tn) <= {2 * _W}"
        ),
    ).select("near_a", "r", "tg", "tn", sql.unix_micros("ti").alias("ti"))
    seen = inside(guests).select("id", "person", "room", "time")
    condition = sql.expr(
        f"person = near_a AND room = r AND tg >= time - INTERVAL {2 * WINDOW} SECONDS "
        f"AND tg <= time + INTERVAL {WINDOW} SECONDS "
        f"AND abs(tn - unix_micros(time)) <= {_W} AND abs(ti - unix_micros(time)) <= {_W}"
    )
    return seen.join(with_one, condition, "leftOuter").where("near_a IS NULL").select("id", "room")


def _sides(session: SparkSession, events: DataFrame, folder: Path) -> tuple[DataFrame, DataFrame, Any]:
    from pyspark.sql import functions as sql

    persons, rooms = (session.read.parquet(str(folder / f"{name}.parquet")) for name in ("persons", "rooms"))
    rooms = sql.broadcast(rooms.where("security = 'restricted'").withColumnRenamed("id", "room").drop("security"))
    stream = events.withWatermark("time", f"{LATENESS} seconds")

    def those(status: str) -> DataFrame:
        some = persons.where(sql.col("status") == status).select(sql.col("id").alias("person"))
        return stream.join(sql.broadcast(some), "person")

    def inside(people: DataFrame) -> DataFrame:
        return people.join(rooms, sql.expr("x BETWEEN x1 AND x2 AND y BETWEEN y1 AND y2"))

    return those("guest"), those("employee"), inside


def _near(guests: DataFrame, employees: DataFrame) -> DataFrame:
    """``near_a``, ``near_b``; ``tg`` when the guest was seen, ``tn`` when the later of the two was."""
    from pyspark.sql import functions as sql

    around = sql.explode(sql.array(*(sql.lit(each) for each in (-1, 0, 1))))
    cell_x, cell_y = sql.floor(sql.col("x") / NEAR), sql.floor(sql.col("y") / NEAR)
    left = guests.select(
        sql.col("person").alias("near_a"), sql.col("time").alias("tg"), "x", "y", cell_x.alias("cx"), cell_y.alias("cy")
    )
    right = (
        employees.select(sql.col("person").alias("near_b"), sql.col("time").alias("te"), "x", "y", around.alias("dx"))
        .select("near_b", "te", "x", "y", (cell_x + sql.col("dx")).alias("ex"), around.alias("dy"))
        .select(
            "near_b",
            "te",
            sql.col("x").alias("bx"),
            sql.col("y").alias("by"),
            "ex",
            (cell_y + sql.col("dy")).alias("ey"),
        )
    )
    condition = sql.expr(
        f"cx = ex AND cy = ey AND te >= tg - INTERVAL {WINDOW} SECONDS AND te <= tg + INTERVAL {WINDOW} SECONDS "
        f"AND (x - bx) * (x - bx) + (y - by) * (y - by) <= {NEAR * NEAR}"
    )
    found = left.join(right, condition)
    return found.select("near_a", "near_b", "tg", sql.unix_micros(sql.greatest("tg", "te")).alias("tn"))


def joined_with_care(session: SparkSession, events: DataFrame, folder: Path) -> DataFrame:
    """The same in an order that keeps what is between the joins small.

    A guest's event goes to the employees near, each once; a semi-join keeps it if one of these was in the room; and the
    guest's events are outer-joined to those that were kept.
    """
    from pyspark.sql import functions as sql

    guests, employees, inside = _sides(session, events, folder)
    near = _near(guests, employees)
    seen = inside(guests).select("id", "person", "room", "time")
    company = (
        seen.join(
            near,
            sql.expr(
                f"person = near_a AND tg >= time - INTERVAL {2 * WINDOW} SECONDS "
                f"AND tg <= time + INTERVAL {WINDOW} SECONDS AND abs(tn - unix_micros(time)) <= {_W}"
            ),
        )
        .select(sql.col("id").alias("cid"), sql.col("room").alias("croom"), "near_b", sql.col("time").alias("tc"))
        .dropDuplicates(["cid", "croom", "near_b", "tc"])
    )
    within = inside(employees).select(
        sql.col("person").alias("b"), sql.col("room").alias("r"), sql.col("time").alias("ti")
    )
    refuted = company.join(
        within,
        sql.expr(
            f"near_b = b AND croom = r AND ti >= tc - INTERVAL {WINDOW} SECONDS "
            f"AND ti <= tc + INTERVAL {WINDOW} SECONDS"
        ),
        "leftSemi",
    )
    again = sql.expr("id = cid AND room = croom AND tc >= time AND tc <= time")
    return seen.join(refuted, again, "leftOuter").where("cid IS NULL").select("id", "room")


# ── a function over groups with state ─────────────────────────────────────────────────────────────

GROUPS = 2
_Ints = npt.NDArray[np.int64]


def grouped(session: SparkSession, events: DataFrame, folder: Path) -> DataFrame:
    """Guests are divided among groups, employees go to all of them; a group remembers what may still count."""
    from pyspark.sql import functions as sql

    persons, rooms = (session.read.parquet(str(folder / f"{name}.parquet")) for name in ("persons", "rooms"))
    numbered = persons.selectExpr("id AS person", "status = 'guest' AS guest", "row_number() OVER (ORDER BY id) AS who")
    restricted = rooms.where("security = 'restricted'").selectExpr(
        "id AS room", "row_number() OVER (ORDER BY id) AS place", "x1", "y1", "x2", "y2"
    )
    stream = events.withWatermark("time", f"{LATENESS} seconds").join(sql.broadcast(numbered), "person")
    placed = stream.join(sql.broadcast(restricted), sql.expr("x BETWEEN x1 AND x2 AND y BETWEEN y1 AND y2"), "left")
    keys = sql.array(*map(sql.lit, _keys(session)))
    divided = placed.select(
        sql.explode(sql.when(sql.col("guest"), sql.slice(keys, sql.col("who") % GROUPS + 1, 1)).otherwise(keys)).alias(
            "group"
        ),
        sql.when(sql.col("guest"), sql.col("id")).alias("id"),
        "guest",
        "who",
        "x",
        "y",
        "time",
        sql.coalesce("place", sql.lit(0)).alias("place"),
        sql.when(sql.col("guest"), sql.col("room")).alias("room"),
    )
    return divided.groupBy("group").applyInPandasWithState(
        find_alone, "id string, room string", "kept binary", "append", "EventTimeTimeout"
    )


def _keys(session: SparkSession) -> list[int]:
    """Numbers of groups such that each partition gets one."""
    found: dict[int, int] = {}
    for row in session.range(1000).selectExpr("int(id) AS k", f"pmod(hash(int(id)), {GROUPS}) AS part").collect():
        found.setdefault(row["part"], row["k"])
    return [found[part] for part in range(GROUPS)]


class Sightings:
    """Sightings as columns; ``place`` is the number of the restricted room, 0 for none."""

    COLUMNS = ("time", "who", "x", "y", "place")

    def __init__(self, **columns: npt.NDArray[Any]) -> None:
        self.columns = columns

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns["time"])

    def take(self, rows: npt.NDArray[Any]) -> Sightings:
        return Sightings(**{name: column[rows] for name, column in self.columns.items()})

    def and_then(self, other: Sightings) -> Sightings:
        return Sightings(**{name: np.concatenate((column, other[name])) for name, column in self.columns.items()})


def find_alone(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    import pandas as pd

    kept = pickle.loads(state.get[0]) if state.exists else None
    for frame in frames:
        if frame.empty:  # a call because of time
            continue
        time = frame["time"].to_numpy().astype("datetime64[us]").astype(np.int64)
        columns = {name: frame[name].to_numpy() for name in ("who", "x", "y", "place")}
        is_guest = frame["guest"].to_numpy(bool)
        seen = Sightings(time=time, **columns)
        guests, employees = seen.take(is_guest), seen.take(~is_guest)
        waits = is_guest & (seen["place"] > 0)
        names = {name: frame[name].to_numpy(object)[waits] for name in ("id", "room")}
        waiting = Sightings(**seen.take(waits).columns, **names)
        some = (guests, employees, waiting)
        kept = some if kept is None else tuple(old.and_then(new) for old, new in zip(kept, some, strict=True))
    guests, employees, waiting = kept
    settled = state.getCurrentWatermarkMs() * 1000
    is_due = waiting["time"] + _W < settled
    due, waiting = waiting.take(is_due), waiting.take(~is_due)
    alone = due.take(~accompanied(due, guests, employees))
    guests, employees = (each.take(each["time"] >= settled - 3 * _W) for each in (guests, employees))
    state.update((pickle.dumps((guests, employees, waiting), protocol=5),))
    if len(waiting):
        state.setTimeoutTimestamp(max(int(waiting["time"].min() + _W), settled) // 1000 + 1)
    yield pd.DataFrame({"id": alone["id"], "room": alone["room"]})


def accompanied(due: Sightings, guests: Sightings, employees: Sightings) -> npt.NDArray[np.bool_]:
    """Whether somebody was with these guests: nearly always somebody who was near them and in the room just then."""
    found = np.zeros(len(due), bool)
    inside = employees.take(employees["place"] > 0)
    rows, others = _in_time(due["place"], due["time"] - _W, due["time"] + _W, inside["place"], inside["time"])
    found[rows[_close(due, rows, inside, others)]] = True
    left = ~found[rows]
    pairs = np.unique(np.stack((rows[left], inside["who"][others[left]])), axis=1)
    rows, partner = pairs
    time = due["time"][rows]
    which, ours = _in_time(due["who"][rows], time - 2 * _W, time + _W, guests["who"], guests["time"])
    rows, partner, time = rows[which], partner[which], guests["time"][ours]
    which, theirs = _in_time(partner, time - _W, time + _W, employees["who"], employees["time"])
    rows, ours = rows[which], ours[which]
    later = np.maximum(guests["time"][ours], employees["time"][theirs])
    found[rows[_close(guests, ours, employees, theirs) & (np.abs(later - due["time"][rows]) <= _W)]] = True
    return found


def _in_time(keys: _Ints, first: _Ints, last: _Ints, other_keys: _Ints, times: _Ints) -> tuple[_Ints, _Ints]:
    """All pairs of a row and another with the same key and a time from the first to the last."""
    if not len(keys) or not len(times):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    start = min(times.min(), first.min())
    packed = (other_keys.astype(np.int64) << 40) + (times - start)
    order = np.argsort(packed)
    packed, own = packed[order], keys.astype(np.int64) << 40
    begins = np.searchsorted(packed, own + (first - start))
    counts = np.searchsorted(packed, own + (last - start), side="right") - begins
    ends = np.cumsum(counts)
    places = np.arange(ends[-1]) + np.repeat(begins - (ends - counts), counts)
    return np.repeat(np.arange(len(keys)), counts), order[places]


def _close(one: Sightings, rows: _Ints, other: Sightings, others: _Ints) -> npt.NDArray[np.bool_]:
    across, along = one["x"][rows] - other["x"][others], one["y"][rows] - other["y"][others]
    close: npt.NDArray[np.bool_] = across * across + along * along <= NEAR * NEAR
    return close
