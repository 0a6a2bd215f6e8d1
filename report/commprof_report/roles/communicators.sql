-- Which communicators did the run have, which members, and which traffic?
WITH used AS (
    SELECT identity, sum(CASE WHEN is_call THEN count ELSE 0 END) AS count,
           sum(CASE WHEN is_call THEN volume_bytes ELSE 0 END) AS volume_bytes,
           sum(CASE WHEN is_call THEN total_ns ELSE 0 END) AS total_ns, sum(CASE timed WHEN 'device' THEN total_ns END) AS device_ns
    FROM chosen_cell
    WHERE NOT is_completion
    GROUP BY identity
),
top AS (
    SELECT identity, call, row_number() OVER (PARTITION BY identity ORDER BY timed = 'device' DESC, sum(total_ns) DESC, call) AS place_of_call
    FROM chosen_cell
    WHERE NOT is_completion
    GROUP BY identity, call, timed
),
seen AS (
    SELECT identity, count(*) AS ranks, max(is_freed) AS is_freed FROM communicator GROUP BY identity
),
every AS (
    SELECT identity, parent_identity, name, constructor, ordinal, size, remote_size, is_inter, members, label, library
    FROM run_communicator
    UNION ALL
    SELECT DISTINCT identity, NULL, '', '', 0, NULL, NULL, 0, '', label, 'mpi'
    FROM communicator_of
    WHERE identity IN ('other', 'unknown')
)
SELECT every.label AS communicator,
       every.identity,
       every.size,
       every.remote_size,
       every.members,
       ranks,
       every.name,
       every.constructor,
       parent.label AS parent,
       every.ordinal,
       every.is_inter,
       is_freed,
       coalesce(count, 0) AS count,
       coalesce(volume_bytes, 0) AS volume_bytes,
       coalesce(total_ns, 0) AS total_ns,
       top.call AS top_call,
       NULL AS role, -- roles.py
       every.library,
       device_ns
FROM every
LEFT JOIN run_communicator AS parent ON parent.identity = every.parent_identity
LEFT JOIN seen ON seen.identity = every.identity
LEFT JOIN used ON used.identity = every.identity
LEFT JOIN top ON top.identity = every.identity AND place_of_call = 1
WHERE every.identity IN (SELECT identity FROM selected_communicator)
ORDER BY max(coalesce(total_ns, 0), coalesce(device_ns, 0)) DESC, every.size DESC, every.label;
