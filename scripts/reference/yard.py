"""The project in which the examples of the public names run: a yard with a gate, where trucks are seen."""

from __future__ import annotations

YARD = {
    "situ.yaml": """\
name: yard
engine: edge
defaults: {lateness: 100 ms, idle: 200 ms}
""",
    "types/yard.yaml": """\
events:
  TruckSeen: {truck: string, speed: double km/h}
""",
    "ontology.yaml": """\
concepts:
  truck: {id: string, owner: string, speed: double km/h}
""",
    "sources/yard.yaml": """\
pull:
  trucks: {csv: data/trucks.csv, columns: {id: string, owner: string}, concept: truck, key: id}
push:
  seen: {event: TruckSeen, concept: truck, id: truck, attribute: speed, value: speed}
""",
    "data/trucks.csv": """\
id,owner
LY-204,Lyra
""",
    "policies/speeding.dpl": """\
policy speeding
window 1 s
concepts
  truck T (owner = 'Lyra')
conditions
  T.speed > 50
actions
  log 'too fast'
""",
    "scopes.yaml": """\
dimensions:
  place: {scopes: {north: {}}}
grants:
  - {to: office, dimension: place, may: [admin]}
""",
}
