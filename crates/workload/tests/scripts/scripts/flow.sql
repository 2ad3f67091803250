\set n 3 \
  + 4
\sleep 1 ms
\sleep :n us
\if :n = 7
SELECT :n; SELECT
  :n + 1;
\set n :n * 2
\endif
\if null
SELECT 'null';
\elif 0
SELECT 'zero';
\elif :n
SELECT 'number', :n;
\endif
\set aid random(1, 100000 * :scale)
SELECT abalance FROM (SELECT :aid AS abalance) s WHERE abalance=:aid
