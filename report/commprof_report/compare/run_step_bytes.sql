-- How many bytes does a rank send in the calls that make up steps? Of the communicator that delimits them.
SELECT total(volume_bytes) / max(count(DISTINCT cell.world_rank), 1)
FROM cell
JOIN cell_traffic USING (cell)
JOIN communicator USING (world_rank, communicator)
WHERE communicator.identity = :identity AND cell.call IN (SELECT value FROM json_each(:calls))
  AND measure = 'call' AND traffic = 'bulk';
