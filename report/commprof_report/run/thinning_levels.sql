-- Stores the final levels of the communicators.
UPDATE main.communicator SET sample_level = max(sample_level, (SELECT level FROM temp.sample_class WHERE class = identity))
WHERE identity IN (SELECT class FROM temp.sample_class);
