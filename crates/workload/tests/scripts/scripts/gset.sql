-- a comment; with a semicolon
\set x random(1, 10)
SELECT :x + 1 AS y, 'a; b' AS z, NULL AS n \gset p_
SELECT :p_y, ':p_z', ':p_n', 1::int, '12:30:00', ':nosuch' /* c ; /* d */ */;
\if :p_y > 5
  SELECT 'high', :p_y;
\elif :p_y = 5
  SELECT 'five';
\else
  \if not true
    SELECT 'never';
  \else
    SELECT 'low', :client_id;
  \endif
\endif
