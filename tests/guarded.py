"""A guarded building as a project folder: sightings of persons, restricted rooms, and the policy about guests alone."""

from __future__ import annotations

from tests.domains import UNACCOMPANIED_GUEST

FILES = {
    "situ.yaml": "name: guarded\nengine: edge\ndefaults: {lateness: 1 s, idle: 2 s}\n",
    "types/building.yaml": "events:\n  Sighting: {who: string, at: Point m}\n  Note: {text: string}\n"
    "  GuestAlone: {text: string, status: optional string}\n",
    "ontology.yaml": """
        concepts:
          person: {id: string, status: string, position: Point m}
          room: {id: string, security: string, area: Box m}
        relationships:
          inside: {between: [person.position, room.area], function: inside}
          within:
            between: [person.position, person.position]
            function: within
            parameter: {name: distance, unit: m}
            symmetric: true
        """,
    "sources/building.yaml": """
        pull:
          persons:
            csv: people.csv
            columns: {nr: string, role: string}
            concept: person
            key: nr
            attributes: {status: role}
          rooms:
            csv: rooms.csv
            columns: {id: string, security: string, area: Box m}
            concept: room
            key: id
        push:
          seen: {event: Sighting, concept: person, id: who, attribute: position, value: at}
        """,
    "people.csv": "nr,role\ng1,guest\ng2,guest\ne1,employee\ne2,employee\n",
    "rooms.csv": 'id,security,area\nlab,restricted,"{""x1"":0,""y1"":0,""x2"":10,""y2"":10}"\n'
    'hall,open,"{""x1"":20,""y1"":0,""x2"":40,""y2"":10}"\n',
    "policies/unaccompanied-guest.dpl": UNACCOMPANIED_GUEST,
    "actions.yaml": """
        actions:
          raise alarm:
            - {publish: GuestAlone, data: {text: "{A} alone in {R.id}", status: "{A.status}"}}
            - {log: "{A} alone in {R.id}", level: warning}
        """,
    "clients/people.yaml": """
        clients:
          reader: {advertisements: {seen: {type: Sighting}, notes: {type: Note}}}
          desk: {subscriptions: {situations: {types: [situ.situation], durable: true}}}
        """,
}
