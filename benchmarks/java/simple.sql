-- One interval outer join: no employee in the same room, near where the guest was, five seconds before or after. It
-- looks at one event of the employee, which has to be both; the policy looks at all events of the two.

CREATE TEMPORARY VIEW guest_rooms AS
SELECT s.id, s.person, s.x, s.y, s.ts, r.room
FROM sightings AS s, LATERAL TABLE(restricted_at(s.x, s.y)) AS r
WHERE status_of(s.person) = 'guest';

CREATE TEMPORARY VIEW employee_rooms AS
SELECT s.id, s.person, s.x, s.y, s.ts, r.room
FROM sightings AS s, LATERAL TABLE(restricted_at(s.x, s.y)) AS r
WHERE status_of(s.person) = 'employee';

SELECT g.id, g.room
FROM guest_rooms AS g LEFT JOIN employee_rooms AS e
  ON g.room = e.room AND e.ts BETWEEN g.ts - INTERVAL '5' SECOND AND g.ts + INTERVAL '5' SECOND
  AND (g.x - e.x) * (g.x - e.x) + (g.y - e.y) * (g.y - e.y) <= 25
WHERE e.id IS NULL;
