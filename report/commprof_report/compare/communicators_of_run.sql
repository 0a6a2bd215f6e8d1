-- The communicators of the run.
SELECT identity, parent_identity, name, constructor, ordinal, size, is_inter, library, members, label FROM run_communicator ORDER BY label;
