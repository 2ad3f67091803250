-- What the procedures need: payloads, and a table of the rows of loadline's with the payload in one column.
DROP SCHEMA IF EXISTS hand CASCADE;
CREATE SCHEMA hand;
CREATE FUNCTION hand.value(p_bytes bigint) RETURNS bytea LANGUAGE sql VOLATILE AS
  $$SELECT substr(string_agg(sha256((i || ' ' || random())::bytea), ''), 1, p_bytes::integer) FROM generate_series(0, p_bytes / 32) i$$;
CREATE TABLE hand.pool (id bigint PRIMARY KEY, payload bytea NOT NULL);
ALTER TABLE hand.pool ALTER COLUMN payload SET STORAGE PLAIN;
INSERT INTO hand.pool SELECT i, hand.value({bytes}) FROM generate_series(0, {pool_rows} - 1) i;
ANALYZE hand.pool;
DO $block$ BEGIN EXECUTE format('CREATE TABLE {whole} (id bigint PRIMARY KEY, n bigint NOT NULL, payload bytea NOT NULL) WITH (%s)',
  (SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE oid = '{ours}'::regclass)); END $block$;
ALTER TABLE {whole} ALTER COLUMN payload SET STORAGE PLAIN;
INSERT INTO {whole} SELECT id, n, {payload} FROM {ours} ORDER BY id;
ANALYZE {whole};
