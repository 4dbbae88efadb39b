-- Events are delivered in the order of their numbers, and no longer get a position after their commit.

LOCK TABLE outbox; -- so that every number that was drawn is seen, or never will be
-- A reader goes on before the first event that it has not seen. It may see some events again, as it
-- may anyway; none is left out.
UPDATE event_consumers c SET position = coalesce(
    (SELECT min(e.event_id) - 1 FROM outbox e
        WHERE (e.position = 0 OR e.position > c.position) AND (c.org_id = 0 OR e.org_id = c.org_id)),
    (SELECT max(e.event_id) FROM outbox e),
    c.position);
UPDATE event_stream SET position = greatest(position,
    coalesce((SELECT max(e.event_id) FROM outbox e), 0));
ALTER TABLE outbox DROP COLUMN position;
DROP INDEX outbox_age;
CREATE INDEX outbox_order ON outbox (event_id);
