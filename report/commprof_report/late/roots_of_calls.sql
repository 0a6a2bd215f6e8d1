-- Of how many sampled collectives is each rank the root?
SELECT world_rank, count(*)
FROM sample
JOIN communicator USING (world_rank, communicator)
WHERE root = comm_rank AND NOT is_inter AND size > 1
GROUP BY world_rank;
