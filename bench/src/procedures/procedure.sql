CREATE PROCEDURE hand.run_{i}(p_first bigint, p_until timestamptz) LANGUAGE plpgsql AS $procedure$
DECLARE
  l_value bytea := hand.value({pool_bytes});
  l_tx bigint := 0;
  l_first bigint;
BEGIN
  WHILE clock_timestamp() < p_until LOOP
    l_first := p_first + l_tx % {ranges} * {rows};
    UPDATE {table} t SET n = n + 1, {set}{from} WHERE {keys}{join};
    COMMIT;
    l_tx := l_tx + 1;
  END LOOP;
END
$procedure$;
