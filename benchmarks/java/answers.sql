-- The meaning of the policy, exactly: the interval outer join that looks at one event of the employee finds the few who
-- may be alone; these are then joined to all events of the two, and left out where any two were near each other.
-- Times are compared as numbers. The intervals of the later joins are wider than that: what an outer join finds to be
-- alone comes later than its time, when it is cleared away, and what it has to meet must still be there.

CREATE TEMPORARY VIEW guests AS
SELECT id, person, x, y, `at`, ts FROM sightings WHERE status_of(person) = 'guest';

CREATE TEMPORARY VIEW employees AS
SELECT id, person, x, y, `at`, ts FROM sightings WHERE status_of(person) = 'employee';

CREATE TEMPORARY VIEW guest_rooms AS
SELECT s.id, s.person, s.x, s.y, s.`at`, s.ts, r.room
FROM guests AS s, LATERAL TABLE(restricted_at(s.x, s.y)) AS r;

CREATE TEMPORARY VIEW employee_rooms AS
SELECT s.id, s.person, s.x, s.y, s.`at`, s.ts, r.room
FROM employees AS s, LATERAL TABLE(restricted_at(s.x, s.y)) AS r;

CREATE TEMPORARY VIEW suspects AS
SELECT g.id, g.person, g.`at`, g.ts, g.room
FROM guest_rooms AS g LEFT JOIN employee_rooms AS e
  ON g.room = e.room AND e.ts BETWEEN g.ts - INTERVAL '5' SECOND AND g.ts + INTERVAL '5' SECOND
  AND (g.x - e.x) * (g.x - e.x) + (g.y - e.y) * (g.y - e.y) <= 25
WHERE e.id IS NULL;

CREATE TEMPORARY VIEW companions AS
SELECT id, room, person, `at`, ts, employee FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id, room, employee ORDER BY arrival) AS place FROM (
    SELECT s.id, s.room, s.person, s.`at`, s.ts, i.person AS employee, PROCTIME() AS arrival
    FROM suspects AS s JOIN employee_rooms AS i
      ON s.room = i.room AND i.ts BETWEEN s.ts - INTERVAL '25' SECOND AND s.ts + INTERVAL '25' SECOND
      AND i.`at` BETWEEN s.`at` - 5000 AND s.`at` + 5000))
WHERE place = 1;

CREATE TEMPORARY VIEW own AS
SELECT c.id, c.room, c.`at`, c.ts, c.employee, x.`at` AS own_at, x.x, x.y
FROM companions AS c JOIN guests AS x
  ON c.person = x.person AND x.ts BETWEEN c.ts - INTERVAL '25' SECOND AND c.ts + INTERVAL '25' SECOND
  AND x.`at` BETWEEN c.`at` - 10000 AND c.`at` + 5000;

CREATE TEMPORARY VIEW refuted AS
SELECT o.id, o.room, o.ts
FROM own AS o JOIN employees AS y
  ON o.employee = y.person AND y.ts BETWEEN o.ts - INTERVAL '25' SECOND AND o.ts + INTERVAL '25' SECOND
  AND y.`at` <= o.`at` + 5000 AND ABS(y.`at` - o.own_at) <= 5000 AND GREATEST(y.`at`, o.own_at) >= o.`at` - 5000
  AND (o.x - y.x) * (o.x - y.x) + (o.y - y.y) * (o.y - y.y) <= 25;

SELECT s.id, s.room
FROM suspects AS s LEFT JOIN refuted AS r
  ON s.id = r.id AND s.room = r.room AND r.ts BETWEEN s.ts - INTERVAL '25' SECOND AND s.ts + INTERVAL '25' SECOND
WHERE r.id IS NULL;
