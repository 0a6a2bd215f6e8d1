-- Each rank's communicators, and how many ranks each has.
SELECT world_rank, communicator, identity, size + remote_size AS ranks, library FROM communicator ORDER BY world_rank, communicator;
