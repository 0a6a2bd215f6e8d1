-- The run's communicators, as the reports name them.
SELECT * FROM run_communicator ORDER BY identity;
