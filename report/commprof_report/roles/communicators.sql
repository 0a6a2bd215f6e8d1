-- Which communicators did the run have, which members, and which traffic?
WITH seen AS (
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
SELECT every.label AS communicator, every.identity, every.size, every.remote_size, every.members,
       ranks, every.name, every.constructor, parent.label AS parent, every.ordinal, every.is_inter,
       is_freed, every.library
FROM every
LEFT JOIN run_communicator AS parent ON parent.identity = every.parent_identity
LEFT JOIN seen ON seen.identity = every.identity;
