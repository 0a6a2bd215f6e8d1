-- How many collectives on a communicator can have samples? The calls that free it have none: no communicator is left to name.
SELECT max(collectives - (
    SELECT count(*)
    FROM recent_collective AS freeing
    WHERE freeing.world_rank = communicator.world_rank
        AND freeing.communicator = communicator.communicator
        AND freeing.call IN ('MPI_Comm_free', 'MPI_Comm_disconnect')
))
FROM communicator
WHERE identity = :identity;
