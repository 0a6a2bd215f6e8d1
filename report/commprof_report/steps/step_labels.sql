-- The label of each communicator.
SELECT world_rank, communicator, label FROM communicator_of
UNION
SELECT world_rank, communicator, label FROM communicator JOIN run_communicator USING (identity);
