-- In which kind of memory were the buffers of messages? By calls as they were made, not by times on the device.
SELECT library, memory_kind, sum(count) AS count, sum(volume_bytes) AS volume_bytes
FROM chosen_cell
WHERE timed = 'call' AND volume_bytes > 0 AND family <> 'io'
GROUP BY library, memory_kind
ORDER BY library, sum(volume_bytes) DESC, memory_kind;
