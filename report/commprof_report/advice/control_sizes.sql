-- The sizes of each call with which a framework's thread only negotiates.
SELECT call, bytes
FROM cell
JOIN cell_traffic USING (cell)
GROUP BY call, bytes
HAVING total(is_told AND traffic = 'control') > count(*) / 2.0;
