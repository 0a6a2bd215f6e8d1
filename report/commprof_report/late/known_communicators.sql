-- The run's communicators, as the reports name them.
SELECT identity, label, size, library FROM run_communicator;
