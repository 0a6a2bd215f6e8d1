-- Each rank's numbers for communicators, in the order of the communicators' identities.
SELECT world_rank, communicator, identity, comm_rank, size, is_inter, library = 'nccl' AS is_nccl
FROM communicator
ORDER BY identity, world_rank, communicator;
