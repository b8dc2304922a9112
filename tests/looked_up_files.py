"""A project whose contexts look up in tables, for tests: cameras and readers of a building, and prices in dollars."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

TYPES = """
version: 1
types:
  PersonId(string): {}
  Money: {currency: string, amount: "decimal(18,2)"}
events:
  Sighting: {who: PersonId, at: Point m}
  Sale: {product: string, price: Money EUR, dynamicCost: Money EUR, parts: "[Money] EUR"}
"""
ROOT = """
version: 1
context: root
units: {EUR: currency, USD: currency}
"""
CAMERAS = """
version: 1
context: cameras
extends: root
types:
  FaceId(string): {}
  Polar: {r: double ft, theta: double deg}
events:
  Seen: {camera: string, face: FaceId, polar: Polar}
maps:
  - in: Seen -> Sighting
    attributes: {who: face, at: polar}
rules:
  in: [FaceId -> face_to_person, Polar -> polar_to_building]
functions:
  face_to_person: {signature: FaceId -> PersonId, lookup: {f: {source: faces, key: {face: value}}}, value: f.person}
  polar_to_building:
    signature: Polar -> Point
    lookup: {cam: {source: cameras, key: {id: event.camera}}}
    expr: struct(cam.x + 0.3048 * value.r * cos(radians(cam.heading + value.theta)) AS x,
      cam.y + 0.3048 * value.r * sin(radians(cam.heading + value.theta)) AS y)
"""
READERS = """
version: 1
context: readers
extends: root
types:
  TagId(string): {}
  Offset: {dx: double cm, dy: double cm}
events:
  Read: {reader: string, tag: TagId, offset: Offset}
maps:
  - in: Read -> Sighting
    attributes: {who: tag, at: offset}
rules:
  in: [TagId -> tag_to_person, Offset -> offset_to_building]
functions:
  tag_to_person:
    signature: TagId -> PersonId
    time: event
    lookup: {b: {source: badges, key: {tag: value}, as_of: since}}
    value: b.person
  offset_to_building:
    signature: Offset -> Point
    lookup: {mount: {source: readers, key: {id: event.reader}}}
    expr: struct(mount.x + value.dx / 100 AS x, mount.y + value.dy / 100 AS y)
"""
US = """
version: 1
context: us
extends: root
events:
  Sale: {product: string, price: Money USD, dynamicCost: Money EUR, parts: "[Money] USD"}
maps:
  - out: Sale -> Sale
rules:
  out: [Money -> to_dollars, Sale.dynamicCost -> identity]
functions:
  to_dollars:
    signature: Money EUR -> Money USD
    time: event
    lookup: {fx: {source: rates, key: {base: value.currency, quote: "'USD'"}, as_of: valid_from}}
    expr: struct('USD' AS currency, round(value.amount * fx.rate, 2) AS amount)
"""
DESK = """
version: 1
context: desk
extends: root
events:
  Arrival: {name: optional string, at: Point m}
maps:
  - out: Sighting -> Arrival
    attributes: {name: who}
rules:
  out: [PersonId -> name_of]
functions:
  name_of:
    signature: PersonId -> string
    lookup: {p: {source: people, key: {nr: value}}}
    missing: null
    value: p.name
"""
BELL = """
version: 1
context: bell
extends: desk
functions:
  name_of:
    signature: PersonId -> string
    lookup: {p: {source: people, key: {nr: value}}}
    missing: {default: somebody}
    value: p.name
"""
SOURCES = """
version: 1
pull:
  badges: {csv: data/badges.csv, columns: {tag: string, person: PersonId, since: timestamp}, key: tag, as_of: since}
  faces: {csv: data/faces.csv, columns: {face: string, person: PersonId}, key: face, max_age: 1 h}
  people: {csv: data/people.csv, columns: {nr: string, name: string}, key: nr}
  readers: {parquet: data/readers.parquet, columns: {id: string, x: double, y: double}, key: id}
  cameras:
    sql: "SELECT id, x, y, heading FROM cameras WHERE active"
    url: "DATABASE"
    columns: {id: string, x: double, y: double, heading: double}
    key: id
  rates:
    csv: data/rates.csv
    columns: {base: string, quote: string, rate: "decimal(18,6)", valid_from: timestamp}
    key: [base, quote]
    as_of: valid_from
"""
CLIENTS = """
version: 1
clients:
  camera-1: {context: cameras, advertisements: {Seen: {type: Seen}}}
  reader-1: {context: readers, advertisements: {Read: {type: Read}}}
  shop: {advertisements: {Sale: {type: Sale}}}
  hall: {advertisements: {Sighting: {type: Sighting}}}
  dollars: {context: us}
  desk: {context: desk}
  bell: {context: bell}
"""
DATA = {
    "data/badges.csv": "tag,person,since\nt17,p1,2026-11-01T00:00:00Z\nt18,p2,2026-11-01T00:00:00Z\n",
    "data/faces.csv": "face,person\nf9,p1\n",
    "data/people.csv": "nr,name\np1,Ann\np2,Bob\n",
    "data/rates.csv": (
        "base,quote,rate,valid_from\nEUR,USD,1.10,2026-11-01T00:00:00Z\nEUR,USD,1.20,2026-11-02T00:00:00Z\n"
    ),
}
CAMERA_ROWS = ("CREATE TABLE cameras (id TEXT, x FLOAT8, y FLOAT8, heading FLOAT8, active BOOLEAN)",
    "INSERT INTO cameras VALUES ('c1', 10, 5, 90, true), ('c2', 0, 0, 0, false)")  # fmt: skip


def building(database: str) -> dict[str, str]:
    """The files of the project; ``database`` is the address of the one that has :data:`CAMERA_ROWS`."""
    return {
        "types/all.yaml": TYPES,
        "contexts/root.yaml": ROOT,
        "contexts/cameras.yaml": CAMERAS,
        "contexts/readers.yaml": READERS,
        "contexts/us.yaml": US,
        "contexts/desk.yaml": DESK,
        "contexts/bell.yaml": BELL,
        "sources/all.yaml": SOURCES.replace("DATABASE", database),
        "clients/all.yaml": CLIENTS,
        **DATA,
    }


def write_readers(folder: Path, **rows: tuple[float, float]) -> None:
    """The readers, each with where it hangs."""
    columns = {"id": list(rows), "x": [x for x, _ in rows.values()], "y": [y for _, y in rows.values()]}
    (folder / "data").mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(pa.table(columns), folder / "data" / "readers.parquet")
