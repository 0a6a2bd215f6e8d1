-- In which memory did the buffers of messages lie? Of the calls as they were made; the device says no more.
SELECT library, memory_kind, sum(count) AS count, sum(volume_bytes) AS volume_bytes
FROM chosen_cell
WHERE timed = 'call' AND volume_bytes > 0 AND family <> 'io'
GROUP BY library, memory_kind
ORDER BY library, sum(volume_bytes) DESC, memory_kind;
