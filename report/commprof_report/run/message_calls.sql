-- The calls that send or receive one message, or start that.
SELECT name AS call, name IN ('MPI_Recv', 'MPI_Irecv', 'MPI_Mrecv', 'MPI_Imrecv') AS is_receive, form = 'blocking' AS is_blocking
FROM call
WHERE library = 'mpi' AND family = 'point-to-point' AND bandwidth = 'one-way' AND form <> 'persistent';
