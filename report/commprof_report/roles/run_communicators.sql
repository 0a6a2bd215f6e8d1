-- The communicators of the run, one row each.
SELECT identity, label, parent_identity, constructor, size, is_inter, members FROM run_communicator ORDER BY identity;
