SELECT 1 AS a \; SELECT 2 AS b \gset
SELECT 3 AS c \; SELECT 4 AS d WHERE false \; SELECT g AS e FROM generate_series(5, 7) g \aset q_
SELECT :b, :q_c, :q_e, ':q_d';
SELECT $$a;b$$, $t$;$$;$t$, E'\';', "relname" FROM pg_class WHERE (oid = 1);
BEGIN; SELECT 2; END
